-- Status of each table
-- Latest, latest successful and latest failed run of every table that a pipeline writes, and when it changed last.
-- R-PEER-06
SELECT t.dataset AS table_name, p.pipeline_name, t.latest_status, t.latest_run_ts, t.latest_success_ts,
       t.latest_failure_ts, t.latest_change_ts, t.latest_update_id, t.latest_success_update_id,
       t.latest_failure_update_id, t.flow_names
FROM table_status t LEFT JOIN pipelines p USING (pipeline_id)
ORDER BY t.dataset, p.pipeline_name, t.pipeline_id
