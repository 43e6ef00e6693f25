-- One row per (pipeline_id, update_id, dataset, column_name): a column that differs from the update before.
WITH versions AS (
  SELECT DISTINCT s.pipeline_id, s.dataset, s.update_id, r.start_ts
  FROM dataset_schemas s
  JOIN pipeline_runs r ON r.pipeline_id = s.pipeline_id AND r.update_id = s.update_id
  WHERE r.run_kind = 'normal'
),
ordered AS (
  SELECT *, CASE WHEN previous_start_ts >= start_ts - INTERVAL 35 DAYS THEN last_update_id END AS previous_update_id
  FROM (
    SELECT *, lag(update_id) OVER (PARTITION BY pipeline_id, dataset ORDER BY start_ts, update_id) AS last_update_id,
           lag(start_ts) OVER (PARTITION BY pipeline_id, dataset ORDER BY start_ts, update_id) AS previous_start_ts
    FROM versions
  )
),
sides AS (
  SELECT o.pipeline_id, o.dataset, o.update_id, o.previous_update_id, o.start_ts, s.column_name,
         s.data_type AS new_type, CAST(NULL AS STRING) AS old_type, 1 AS is_new, 0 AS is_old
  FROM ordered o
  JOIN dataset_schemas s ON s.pipeline_id = o.pipeline_id AND s.dataset = o.dataset AND s.update_id = o.update_id
  WHERE o.previous_update_id IS NOT NULL
  UNION ALL
  SELECT o.pipeline_id, o.dataset, o.update_id, o.previous_update_id, o.start_ts, s.column_name,
         CAST(NULL AS STRING), s.data_type, 0, 1
  FROM ordered o
  JOIN dataset_schemas s
    ON s.pipeline_id = o.pipeline_id AND s.dataset = o.dataset AND s.update_id = o.previous_update_id
),
compared AS (
  SELECT pipeline_id, update_id, previous_update_id, dataset, column_name, start_ts AS changed_at,
         max(old_type) AS old_type, max(new_type) AS new_type,
         CASE WHEN max(is_old) = 0 THEN 'added' WHEN max(is_new) = 0 THEN 'dropped'
              WHEN NOT max(old_type) <=> max(new_type) THEN 'type_changed' END AS change
  FROM sides
  GROUP BY pipeline_id, update_id, previous_update_id, dataset, column_name, start_ts
)
SELECT * FROM compared WHERE change IS NOT NULL
