-- Cost and rows of each pipeline and month
-- All usage, by what it was for: updates that completed, attempts that failed, other updates, maintenance, the rest.
-- The five add up to the cost of the month, and the costs of all pipelines to what was billed. Where some usage has no
-- price the month says so, and has no ratio: its true cost is higher.
-- R-COST-02, R-COST-01
WITH unpriced AS (
  SELECT DISTINCT pipeline_id, date_trunc('month', usage_date)::DATE AS month FROM pipeline_costs WHERE cost IS NULL
),
months AS (
  SELECT pipeline_id, date_trunc('month', usage_date)::DATE AS month, currency, sum(cost) AS cost,
         sum(cost) FILTER (kind = 'update' AND outcome = 'COMPLETED') AS completed,
         sum(cost) FILTER (kind = 'update' AND outcome = 'FAILED') AS failed,
         sum(cost) FILTER (kind = 'update' AND coalesce(outcome, '') NOT IN ('COMPLETED', 'FAILED')) AS other_updates,
         sum(cost) FILTER (kind = 'maintenance') AS maintenance, sum(cost) FILTER (kind = 'other') AS other
  FROM pipeline_costs WHERE cost IS NOT NULL
  GROUP BY pipeline_id, month, currency
),
written AS (
  SELECT pipeline_id, date_trunc('month', day)::DATE AS month, sum(rows_written) AS rows_written
  FROM daily_trends GROUP BY pipeline_id, month
)
SELECT m.month, p.pipeline_name, m.cost, m.currency, m.completed, m.failed, m.other_updates, m.maintenance, m.other,
       w.rows_written, u.month IS NOT NULL AS is_partly_unpriced,
       CASE WHEN u.month IS NULL THEN round(m.cost::DOUBLE / nullif(w.rows_written, 0) * 1e6, 4) END
         AS cost_per_million_rows, m.pipeline_id
FROM months m LEFT JOIN written w USING (pipeline_id, month) LEFT JOIN unpriced u USING (pipeline_id, month)
LEFT JOIN pipelines p USING (pipeline_id)
ORDER BY m.month DESC, m.cost DESC, m.pipeline_id, m.currency
