-- One row per (pipeline_id, event_date, what): an unknown thing in the events of one pipeline and UTC day.
WITH things AS (
  SELECT pipeline_id, event_date, event_id, event_ts, substring(details, 1, 500) AS text,
         explode(drift) AS what
  FROM events
  WHERE drift IS NOT NULL
)
SELECT pipeline_id, event_date, what, count(*) AS events, min(event_ts) AS first_seen, max(event_ts) AS last_seen,
       min_by(event_id, struct(event_ts, event_id)) AS example_event_id,
       min_by(text, struct(event_ts, event_id)) AS example
FROM things
GROUP BY pipeline_id, event_date, what
