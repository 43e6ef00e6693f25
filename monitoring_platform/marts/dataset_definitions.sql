-- One row per (pipeline_id, update_id, dataset): a dataset as it was defined for one update, with its rules.
SELECT pipeline_id, update_id, dataset_name AS dataset,
       max_by(dataset.dataset_type, CASE WHEN dataset.dataset_type IS NOT NULL THEN position END) AS dataset_type,
       max_by(dataset.num_flows, CASE WHEN dataset.num_flows IS NOT NULL THEN position END) AS num_flows,
       max_by(dataset.rules, position) AS rules,
       max_by(fields, CASE WHEN fields IS NOT NULL THEN position END) AS fields,
       max_by(catalog_name, CASE WHEN catalog_name IS NOT NULL THEN position END) AS catalog_name,
       max_by(schema_name, CASE WHEN schema_name IS NOT NULL THEN position END) AS schema_name,
       max(event_ts) AS event_ts
FROM events
WHERE event_type = 'dataset_definition' AND update_id IS NOT NULL AND dataset_name IS NOT NULL
GROUP BY pipeline_id, update_id, dataset_name
