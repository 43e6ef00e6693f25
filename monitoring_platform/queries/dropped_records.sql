-- Records dropped by expectations
-- Of each flow in the runs of 7 days. Null = the flow has no quality data, 0 = it reported zero.
-- R-QUAL-07
SELECT r.pipeline_name, f.flow_name, r.start_ts, f.rows_dropped, f.rows_written, r.rows_dropped AS dropped_in_run,
       f.update_id
FROM flow_metrics f JOIN pipeline_runs r USING (pipeline_id, update_id)
WHERE r.run_kind = 'normal' AND r.start_ts > (SELECT max(last_event_ts) - INTERVAL 7 DAY FROM pipelines)
ORDER BY f.rows_dropped DESC NULLS LAST, r.start_ts DESC, f.update_id, f.flow_name
LIMIT 200
