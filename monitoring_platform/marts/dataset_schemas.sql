-- One row per (pipeline_id, update_id, dataset, column_name): the columns that a dataset had in one update.
WITH given AS (
  SELECT pipeline_id, update_id, dataset, event_ts, fields, 1 AS preference FROM dataset_definitions
  WHERE fields IS NOT NULL
  UNION ALL
  SELECT pipeline_id, update_id, output_dataset AS dataset, event_ts, fields, 2 AS preference FROM flow_definitions
  WHERE fields IS NOT NULL AND output_dataset IS NOT NULL
),
preferred AS (
  -- What the dataset's own definition says, else what its flow says; by the last part of the name they are the same.
  SELECT *, min(preference) OVER (PARTITION BY pipeline_id, update_id,
                                  replace(regexp_extract(dataset, '(`(?:[^`]|``)*`|[^.`]+)$', 1), '`', '')) AS best
  FROM given
),
columns AS (
  SELECT pipeline_id, update_id, dataset, event_ts, explode(fields) AS field
  FROM preferred
  WHERE preference = best
)
SELECT pipeline_id, update_id, dataset, field.name AS column_name,
       max(field.data_type) AS data_type, max(field.comment) AS comment, max(event_ts) AS event_ts
FROM columns
GROUP BY pipeline_id, update_id, dataset, field.name
