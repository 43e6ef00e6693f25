-- Flows whose identity changed
-- A new flow_id means a full refresh, a full recompute or a lost checkpoint; once for each change.
-- R-LIN-03
SELECT p.pipeline_name, f.flow_name, f.reset_at, f.explanation, f.previous_flow_id, f.flow_id, f.previous_update_id,
       f.update_id
FROM flow_resets f LEFT JOIN pipelines p USING (pipeline_id)
ORDER BY f.reset_at DESC, f.pipeline_id, f.flow_name
