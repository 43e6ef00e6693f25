-- Backlog of each flow and run
-- Peak and latest in bytes, records, files and seconds, newest runs first. Flows whose source reports none are left
-- out.
-- R-ROW-06
SELECT r.pipeline_name, f.flow_name, r.start_ts, f.peak_backlog_bytes, f.last_backlog_bytes, f.peak_backlog_records,
       f.last_backlog_records, f.peak_backlog_files, f.last_backlog_files, f.peak_backlog_seconds,
       f.last_backlog_seconds, f.update_id
FROM flow_metrics f JOIN pipeline_runs r USING (pipeline_id, update_id)
WHERE coalesce(f.peak_backlog_bytes, f.peak_backlog_records, f.peak_backlog_files, f.peak_backlog_seconds) IS NOT NULL
ORDER BY r.start_ts DESC, f.update_id, f.flow_name
LIMIT 200
