-- The four morning questions
-- Of each pipeline, in the 24 hours up to the newest event: did it run, how long did it take (all attempts together),
-- how many rows did it move, how many did expectations drop. Those that did not run come first; unknown is not zero.
-- R-RUN-04
WITH clock AS (SELECT max(last_event_ts) AS now FROM pipelines),
night AS (
  SELECT r.* FROM pipeline_runs r, clock
  WHERE r.run_kind = 'normal' AND r.last_event_ts > now - INTERVAL 24 HOUR
)
SELECT p.pipeline_name, p.state, count(n.update_id) > 0 AS ran, count(n.update_id) AS runs,
       max_by(n.status, (n.start_ts, n.update_id)) AS latest_status,
       sum(n.duration_seconds) AS duration_seconds, sum(n.rows_written) AS rows_moved,
       sum(n.rows_dropped) AS rows_dropped, p.last_event_ts, p.pipeline_id
FROM pipelines p LEFT JOIN night n USING (pipeline_id)
GROUP BY ALL
ORDER BY ran, p.pipeline_name NULLS LAST, p.pipeline_id
