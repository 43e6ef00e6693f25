-- Views that were recomputed in full, and why
-- Newest 200 decisions for a full recompute instead of an incremental refresh.
-- R-LIN-02
SELECT d.event_ts, p.pipeline_name, d.flow_name, d.maintenance_type, d.reasons, d.offending_tables,
       d.offending_expressions, d.target_bytes, d.change_bytes, d.update_id
FROM refresh_decisions d LEFT JOIN pipelines p USING (pipeline_id)
WHERE d.technique = 'full'
ORDER BY d.event_ts DESC, d.event_id
LIMIT 200
