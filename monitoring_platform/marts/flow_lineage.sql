-- One row per (pipeline_id, update_id, flow_name, input_dataset): an edge of the graph as it was in one update.
-- Names are qualified with the pipeline's catalog and schema, without back-ticks, so that edges of two pipelines meet.
WITH edges AS (
  SELECT pipeline_id, update_id, flow_name, flow_type, language, output_dataset, output_sink, default_catalog,
         default_schema, event_ts, explode(input_datasets) AS input_dataset
  FROM flow_definitions
),
distinct_edges AS (
  SELECT DISTINCT pipeline_id, update_id, flow_name, flow_type, language, input_dataset,
         CASE WHEN output_sink IS NULL THEN output_dataset END AS output_dataset, output_sink, default_catalog,
         default_schema, event_ts
  FROM edges
)
SELECT pipeline_id, update_id, flow_name, input_dataset, output_dataset, output_sink,
       CASE size(regexp_extract_all(input_dataset, '(`(?:[^`]|``)*`|[^.`]+)', 1))
         WHEN 1 THEN concat_ws('.', CASE WHEN default_schema IS NOT NULL THEN default_catalog END, default_schema,
                               replace(input_dataset, '`', ''))
         WHEN 2 THEN concat_ws('.', default_catalog, replace(input_dataset, '`', ''))
         ELSE replace(input_dataset, '`', '') END AS qualified_input,
       CASE WHEN output_dataset IS NULL THEN NULL
            ELSE CASE size(regexp_extract_all(output_dataset, '(`(?:[^`]|``)*`|[^.`]+)', 1))
         WHEN 1 THEN concat_ws('.', CASE WHEN default_schema IS NOT NULL THEN default_catalog END, default_schema,
                               replace(output_dataset, '`', ''))
         WHEN 2 THEN concat_ws('.', default_catalog, replace(output_dataset, '`', ''))
         ELSE replace(output_dataset, '`', '') END END AS qualified_output,
       flow_type, language, event_ts
FROM distinct_edges
