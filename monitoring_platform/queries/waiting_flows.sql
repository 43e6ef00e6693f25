-- Slow flows that only waited
-- Flows of 7 days that listed, fetched or copied for more than half of their time. More compute would not help them.
-- R-FLOW-05, R-FLOW-06
WITH since AS (SELECT max(last_event_ts) - INTERVAL 7 DAY AS since FROM pipelines),
operations AS (
  SELECT pipeline_id, update_id, flow_name, operation_type, max(duration_ms) / 1000 AS operation_seconds,
         max(num_files_listed) AS files_listed
  FROM operation_progress, since WHERE event_ts >= since AND duration_ms IS NOT NULL
  GROUP BY ALL
)
SELECT r.pipeline_name, o.flow_name, o.operation_type, o.operation_seconds, o.files_listed,
       f.duration_seconds AS flow_seconds, f.rows_written, r.start_ts, o.update_id
FROM operations o
JOIN flow_metrics f USING (pipeline_id, update_id, flow_name)
JOIN pipeline_runs r USING (pipeline_id, update_id)
WHERE o.operation_seconds > f.duration_seconds / 2
ORDER BY o.operation_seconds DESC, o.update_id, o.flow_name
