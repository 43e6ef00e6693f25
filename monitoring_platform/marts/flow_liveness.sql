-- One row per (pipeline_id, flow_name): signs of life of a flow in the newest open update of its pipeline. Whether silence
-- is trouble is a matter of the clock and of the backlog: idle = nothing waits, working = something waits, unknown = the
-- source says nothing or no batch was ever finished.
WITH newest AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, update_id DESC) AS age
  FROM pipeline_runs
  WHERE run_kind = 'normal'
)
SELECT f.pipeline_id, f.flow_name, f.update_id, r.pipeline_name, r.continuous, r.pipeline_type, f.status,
       f.last_batch_ts, f.last_event_ts,
       f.last_backlog_bytes, f.last_backlog_records, f.last_backlog_files, f.last_backlog_seconds,
       CASE WHEN f.last_batch_ts IS NULL
              OR coalesce(f.last_backlog_bytes, f.last_backlog_records, f.last_backlog_files, f.last_backlog_seconds)
                 IS NULL THEN 'unknown'
            WHEN greatest(coalesce(f.last_backlog_bytes, 0L), coalesce(f.last_backlog_records, 0L),
                          coalesce(f.last_backlog_files, 0L), coalesce(f.last_backlog_seconds, 0L)) = 0 THEN 'idle'
            ELSE 'working' END AS state
FROM newest r
JOIN flow_metrics f ON f.pipeline_id = r.pipeline_id AND f.update_id = r.update_id
WHERE r.age = 1 AND r.end_ts IS NULL AND f.end_ts IS NULL
