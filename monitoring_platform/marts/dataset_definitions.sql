-- One row per (pipeline_id, update_id, dataset): a dataset as it was defined for one update, with its rules. The newest
-- definition counts; one without a schema does not take away the schema that one before it gave.
WITH given AS (
  SELECT pipeline_id, update_id, dataset_name, event_ts, dataset, fields, catalog_name, schema_name,
         row_number() OVER (PARTITION BY pipeline_id, update_id, dataset_name
                            ORDER BY position.trusted DESC, event_ts DESC, event_id DESC) AS age,
         row_number() OVER (PARTITION BY pipeline_id, update_id, dataset_name
                            ORDER BY fields IS NULL, position.trusted DESC, event_ts DESC, event_id DESC) AS fields_age
  FROM events
  WHERE event_type = 'dataset_definition' AND update_id IS NOT NULL AND dataset_name IS NOT NULL
)
SELECT g.pipeline_id, g.update_id, g.dataset_name AS dataset,
       g.dataset.dataset_type AS dataset_type, g.dataset.num_flows AS num_flows, g.dataset.rules AS rules, f.fields,
       g.catalog_name, g.schema_name, g.event_ts
FROM given g
JOIN given f
  ON f.pipeline_id = g.pipeline_id AND f.update_id = g.update_id AND f.dataset_name = g.dataset_name
 AND f.fields_age = 1
WHERE g.age = 1
