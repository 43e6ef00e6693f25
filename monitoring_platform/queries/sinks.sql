-- Flows that write to a sink
-- They have no table; newest update of each.
-- R-FLOW-10
SELECT r.pipeline_name, f.flow_name, f.sink, f.status, f.rows_written, f.last_event_ts, f.update_id
FROM flow_metrics f JOIN pipeline_runs r USING (pipeline_id, update_id)
WHERE f.sink IS NOT NULL
QUALIFY row_number() OVER (PARTITION BY f.pipeline_id, f.flow_name ORDER BY r.start_ts DESC, f.update_id DESC) = 1
ORDER BY r.pipeline_name, f.flow_name, f.pipeline_id
