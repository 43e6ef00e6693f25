-- Pipelines with a deadline, past or next, that has no success yet: with one, all deadlines before it are done with too.
SELECT d.pipeline_id, any_value(d.due) AS due, any_value(d.time_zone) AS time_zone,
       min(d.due_at) FILTER (d.due_at <= now) AS missed_since, count(*) FILTER (d.due_at <= now) AS missed_days,
       min(d.due_at) FILTER (d.due_at > now) AS next_due_at, any_value(r.last_success) AS last_success
FROM deadlines d JOIN refreshed r USING (pipeline_id) CROSS JOIN clock
WHERE d.window_start BETWEEN r.known_since AND now AND (r.last_success IS NULL OR r.last_success < d.window_start)
GROUP BY d.pipeline_id
