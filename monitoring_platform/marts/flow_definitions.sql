-- One row per (pipeline_id, update_id, flow_name): a flow as it was defined for one update.
WITH defaults AS (
  SELECT pipeline_id, update_id,
         max_by(default_catalog, CASE WHEN default_catalog IS NOT NULL THEN position END) AS catalog,
         max_by(default_schema, CASE WHEN default_schema IS NOT NULL THEN position END) AS target
  FROM events
  WHERE event_type = 'create_update' AND update_id IS NOT NULL
  GROUP BY pipeline_id, update_id
),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id, update_id, flow_name
                               ORDER BY position.trusted DESC, event_ts DESC, event_id DESC) AS age
  FROM events
  WHERE event_type = 'flow_definition' AND update_id IS NOT NULL AND flow_name IS NOT NULL
)
SELECT r.pipeline_id, r.update_id, r.flow_name, r.flow_id, r.event_ts,
       coalesce(r.output_dataset, r.dataset_name) AS output_dataset,
       coalesce(r.definition.output_sink, r.sink_name) AS output_sink,
       r.definition.flow_type AS flow_type, r.definition.language AS language, r.definition.once AS once,
       r.definition.input_datasets AS input_datasets,
       coalesce(r.catalog_name, d.catalog) AS default_catalog, coalesce(r.schema_name, d.target) AS default_schema,
       r.fields AS fields, r.definition.comment AS comment, r.definition.explain_text AS explain_text
FROM ranked r
LEFT JOIN defaults d ON d.pipeline_id = r.pipeline_id AND d.update_id = r.update_id
WHERE r.age = 1
