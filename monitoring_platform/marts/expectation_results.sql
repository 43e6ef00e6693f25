-- One row per (pipeline_id, update_id, dataset, expectation): what a data-quality rule counted in one update.
WITH totals AS (
  SELECT pipeline_id, update_id, qualified_dataset, expectation,
         max(struct(length(dataset) AS size, dataset AS name)).name AS dataset,
         array_join(array_sort(collect_set(flow_name)), ', ') AS flow_names,
         try_sum(passed_records) AS passed_records,
         try_sum(failed_records) AS failed_records,
         max(event_ts) AS last_event_ts
  FROM rule_batches
  GROUP BY pipeline_id, update_id, qualified_dataset, expectation
),
keyed AS (
  -- One spelling can stand for datasets of several schemas: there the qualified name tells them apart.
  SELECT *, count(*) OVER (PARTITION BY pipeline_id, update_id, expectation, dataset) > 1 AS is_shared
  FROM totals
)
SELECT pipeline_id, update_id, CASE WHEN is_shared THEN qualified_dataset ELSE dataset END AS dataset, expectation,
       qualified_dataset,
       CASE WHEN flow_names <> '' THEN flow_names END AS flow_names,
       passed_records, failed_records,
       try_add(passed_records, failed_records) AS evaluated_records,
       100 * CAST(passed_records AS DOUBLE)
         / nullif(CAST(passed_records AS DOUBLE) + CAST(failed_records AS DOUBLE), 0) AS pass_rate_pct,
       100 * CAST(failed_records AS DOUBLE)
         / nullif(CAST(passed_records AS DOUBLE) + CAST(failed_records AS DOUBLE), 0) AS failed_pct,
       last_event_ts
FROM keyed
