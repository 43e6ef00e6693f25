-- Last 10 runs with their duration
-- An open run has no end and no duration; running_for says how long it has been seen running.
-- R-DUR-01
SELECT pipeline_name, update_id, status, start_ts, end_ts, duration_seconds,
       round(duration_seconds / 60, 2) AS duration_minutes,
       CASE WHEN end_ts IS NULL THEN last_event_ts - start_ts END AS running_for
FROM pipeline_runs
ORDER BY start_ts DESC, update_id
LIMIT 10
