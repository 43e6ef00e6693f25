-- Cost beside rows, of each pipeline and day
-- The newest 30 days of usage. Cost for a million rows is unknown where no rows were written or a part of the usage has
-- no price; figures are provisional while billing may still bring records.
-- R-COST-02, R-NEW-08
WITH costs AS (
  SELECT pipeline_id, usage_date AS day, max(currency) AS currency,
         CASE WHEN count(unpriced_reason) = 0 AND count(DISTINCT currency) = 1 THEN sum(cost) END AS cost,
         count(*) FILTER (unpriced_reason IS NOT NULL) > 0 AS is_partly_unpriced, max(final_at) AS final_at
  FROM pipeline_costs
  WHERE usage_date > (SELECT max(usage_date) - INTERVAL 30 DAY FROM pipeline_costs)
  GROUP BY pipeline_id, day
),
known AS (
  SELECT CASE WHEN count(*) = count(complete_to) THEN min(complete_to) END AS usage_to
  FROM context_reads WHERE kind = 'usage'
)
SELECT c.day, p.pipeline_name, c.cost, c.currency, d.rows_written,
       round(c.cost::DOUBLE / nullif(d.rows_written, 0) * 1e6, 4) AS cost_per_million_rows, d.runs, d.failed_runs,
       c.is_partly_unpriced, coalesce(c.final_at > usage_to, true) AS is_provisional, c.pipeline_id
FROM costs c LEFT JOIN daily_trends d USING (pipeline_id, day) LEFT JOIN pipelines p USING (pipeline_id), known
ORDER BY c.day DESC, c.cost DESC NULLS LAST, c.pipeline_id
