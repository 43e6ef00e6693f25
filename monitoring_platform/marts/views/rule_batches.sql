-- What one rule counted in one batch of one flow, by the counting rule of views/events.sql, under the dataset's full
-- name: rule names repeat across datasets, and datasets are spelt in one to three parts.
WITH defaults AS (
  SELECT pipeline_id, update_id,
         max_by(default_catalog, CASE WHEN default_catalog IS NOT NULL THEN position END) AS catalog,
         max_by(default_schema, CASE WHEN default_schema IS NOT NULL THEN position END) AS target
  FROM events
  WHERE update_id IS NOT NULL
  GROUP BY pipeline_id, update_id
),
definitions AS (
  SELECT pipeline_id, update_id, flow_name, max_by(output_dataset, position) AS output_dataset
  FROM events
  WHERE output_dataset IS NOT NULL AND flow_name IS NOT NULL AND update_id IS NOT NULL
  GROUP BY pipeline_id, update_id, flow_name
),
carriers AS (
  SELECT pipeline_id, update_id, event_id, event_ts, flow_name, batch_id, basis, dataset_name, expectations,
         catalog_name, schema_name,
         coalesce(flow_id, CASE WHEN min(flow_id) OVER f = max(flow_id) OVER f THEN max(flow_id) OVER f END) AS flow_id
  FROM events
  WHERE expectations IS NOT NULL AND update_id IS NOT NULL
  WINDOW f AS (PARTITION BY pipeline_id, update_id, flow_name)
),
rules AS (
  SELECT pipeline_id, update_id, event_id, event_ts, flow_name, flow_id, batch_id, basis, dataset_name,
         catalog_name, schema_name, explode(expectations) AS rule
  FROM carriers
),
named AS (
  SELECT r.pipeline_id, r.update_id, r.event_id, r.event_ts, r.flow_name, r.flow_id, r.batch_id,
         r.rule.name AS expectation, r.rule.passed_records AS passed_records, r.rule.failed_records AS failed_records,
         -- Part of the key, so never null.
         coalesce(r.rule.dataset, r.dataset_name, d.output_dataset, r.flow_name, '') AS dataset,
         coalesce(r.catalog_name, v.catalog) AS catalog, coalesce(r.schema_name, v.target) AS target,
         CASE WHEN r.basis = 'batch_max' THEN coalesce(r.flow_id, r.flow_name, '') ELSE r.event_id END AS counter_of,
         CASE WHEN r.basis = 'batch_max' THEN r.batch_id END AS counter_batch
  FROM rules r
  LEFT JOIN definitions d
    ON d.pipeline_id = r.pipeline_id AND d.update_id = r.update_id AND d.flow_name = r.flow_name
  LEFT JOIN defaults v ON v.pipeline_id = r.pipeline_id AND v.update_id = r.update_id
),
qualified AS (
  -- One, two or three name parts, each possibly in back-ticks; a quoted part may hold a dot.
  SELECT *,
         CASE size(regexp_extract_all(dataset, '(`(?:[^`]|``)*`|[^.`]+)', 1))
           WHEN 1 THEN concat_ws('.', CASE WHEN target IS NOT NULL THEN catalog END, target, replace(dataset, '`', ''))
           WHEN 2 THEN concat_ws('.', catalog, replace(dataset, '`', ''))
           ELSE replace(dataset, '`', '') END AS qualified_dataset
  FROM named
)
SELECT pipeline_id, update_id, qualified_dataset, expectation, counter_of, counter_batch,
       -- The fullest spelling stands for the dataset.
       max(struct(length(dataset) AS size, dataset AS name)).name AS dataset,
       min(flow_name) AS flow_name,
       max(passed_records) AS passed_records,
       max(failed_records) AS failed_records,
       max(event_ts) AS event_ts
FROM qualified
GROUP BY pipeline_id, update_id, qualified_dataset, expectation, counter_of, counter_batch
