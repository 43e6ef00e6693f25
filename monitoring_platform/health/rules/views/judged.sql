-- The newest three runs of each pipeline that can be compared with others: done or under way, triggered, no full refresh.
SELECT pipeline_id, pipeline_name, update_id, request_id, start_ts, end_ts, rows_written, rows_dropped,
       coalesce(duration_seconds, epoch(now - start_ts)) AS seconds, end_ts IS NULL AS is_open,
       isodow(timezone(time_zone, start_ts)) AS weekday, hour(timezone(time_zone, start_ts)) AS hour,
       row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, update_id DESC) AS place
FROM pipeline_runs, clock
WHERE run_kind = 'normal' AND NOT coalesce(is_full_refresh, false) AND NOT coalesce(continuous, false)
  AND (status = 'COMPLETED' OR end_ts IS NULL)
QUALIFY place <= 3
