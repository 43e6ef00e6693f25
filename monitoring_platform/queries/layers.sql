-- Layers: bronze, silver, gold
-- Pipelines and jobs by the layer that their names begin with, such as silver_orders; all others are `other`. Runs of 7
-- days, how many failed, rows written and the share that rules dropped.
-- R-OWN-17
WITH clock AS (SELECT max(last_event_ts) AS now FROM pipelines),
layered AS (
  SELECT *, coalesce(nullif(regexp_extract(lower(pipeline_name), '^(bronze|silver|gold)(?:[^a-z]|$)', 1), ''), 'other')
              AS layer
  FROM pipelines
)
SELECT l.layer, count(DISTINCT l.pipeline_id) AS pipelines, count(DISTINCT l.pipeline_id) FILTER (l.pipeline_type = 'JOB') AS jobs,
       count(r.update_id) AS runs, count(*) FILTER (r.status = 'FAILED') AS failed_runs,
       sum(r.rows_written)::BIGINT AS rows_written,
       round(100 * sum(r.rows_dropped) / nullif(sum(r.rows_dropped) + sum(r.rows_written), 0), 2) AS dropped_pct
FROM layered l CROSS JOIN clock
LEFT JOIN pipeline_runs r ON r.pipeline_id = l.pipeline_id AND r.run_kind = 'normal' AND r.start_ts > now - INTERVAL 7 DAY
GROUP BY l.layer
ORDER BY l.layer
