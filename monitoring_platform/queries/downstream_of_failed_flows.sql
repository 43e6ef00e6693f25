-- What lies downstream of a failed flow
-- From each flow that failed in the newest normal update that ran it, along the newest definitions, across pipelines:
-- tables meet by their full names.
-- R-LIN-01
WITH RECURSIVE newest_flows AS (
  SELECT f.pipeline_id, f.flow_name, f.status, f.update_id, r.pipeline_name
  FROM flow_metrics f JOIN pipeline_runs r USING (pipeline_id, update_id)
  WHERE r.run_kind = 'normal' AND f.status IS NOT NULL
  QUALIFY row_number() OVER (PARTITION BY f.pipeline_id, f.flow_name ORDER BY r.start_ts DESC, f.update_id DESC) = 1
),
definitions AS (
  SELECT pipeline_id, flow_name, output_dataset, default_catalog, default_schema,
         len(regexp_extract_all(output_dataset, '`(?:[^`]|``)*`|[^.`]+')) AS parts
  FROM flow_definitions
  QUALIFY row_number() OVER (PARTITION BY pipeline_id, flow_name ORDER BY event_ts DESC, update_id DESC) = 1
),
outputs AS (
  SELECT pipeline_id, flow_name,
         concat_ws('.', CASE WHEN parts < 2 AND default_schema IS NOT NULL OR parts = 2 THEN default_catalog END,
                   CASE WHEN parts < 2 THEN default_schema END, replace(output_dataset, '`', '')) AS table_name
  FROM definitions WHERE output_dataset IS NOT NULL
),
edges AS (
  SELECT pipeline_id, flow_name, qualified_input AS table_name
  FROM flow_lineage
  QUALIFY rank() OVER (PARTITION BY pipeline_id, flow_name ORDER BY event_ts DESC, update_id DESC) = 1
),
failed AS (
  SELECT f.pipeline_id, f.pipeline_name, f.flow_name, f.update_id, o.table_name
  FROM newest_flows f JOIN outputs o USING (pipeline_id, flow_name)
  WHERE f.status = 'FAILED'
),
reached AS (
  SELECT pipeline_id AS failed_pipeline_id, flow_name AS failed_flow, table_name, pipeline_id, flow_name FROM failed
  UNION
  SELECT r.failed_pipeline_id, r.failed_flow, o.table_name, e.pipeline_id, e.flow_name
  FROM reached r
  JOIN edges e ON e.table_name = r.table_name
  LEFT JOIN outputs o ON o.pipeline_id = e.pipeline_id AND o.flow_name = e.flow_name
)
SELECT f.pipeline_name AS failed_pipeline, f.flow_name AS failed_flow, f.table_name AS failed_table,
       r.table_name AS stale_table, p.pipeline_name AS stale_pipeline, r.flow_name AS stale_flow,
       r.pipeline_id <> r.failed_pipeline_id AS in_another_pipeline, f.update_id
FROM reached r
JOIN failed f ON f.pipeline_id = r.failed_pipeline_id AND f.flow_name = r.failed_flow
LEFT JOIN pipelines p ON p.pipeline_id = r.pipeline_id
WHERE (r.pipeline_id, r.flow_name) <> (r.failed_pipeline_id, r.failed_flow)
ORDER BY failed_pipeline, failed_flow, in_another_pipeline, stale_pipeline, stale_flow
