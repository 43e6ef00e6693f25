-- One row per (pipeline_id, what): an event type, member or value that was never seen before; since when, how often, and
-- one example, redacted like everything that is stored.
SELECT pipeline_id, what, sum(events) AS events, min(first_seen) AS first_seen, max(last_seen) AS last_seen,
       min_by(example_event_id, struct(first_seen, example_event_id)) AS example_event_id,
       min_by(example, struct(first_seen, example_event_id)) AS example
FROM drift_days
GROUP BY pipeline_id, what
