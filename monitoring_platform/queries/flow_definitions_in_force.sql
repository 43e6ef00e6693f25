-- Flows as they are defined
-- The newest definition of each flow: what it reads and writes, kind and language. The table has those of every update.
-- R-FLOW-09
SELECT p.pipeline_name, d.flow_name, d.flow_type, d.language, d.input_datasets, d.output_dataset, d.output_sink,
       [f.name || ' ' || coalesce(f.data_type, '?') FOR f IN d.fields] AS columns, d.comment, d.explain_text,
       d.update_id, d.event_ts
FROM flow_definitions d LEFT JOIN pipelines p USING (pipeline_id)
QUALIFY row_number() OVER (PARTITION BY d.pipeline_id, d.flow_name ORDER BY d.event_ts DESC, d.update_id DESC) = 1
ORDER BY p.pipeline_name, d.pipeline_id, d.flow_name
