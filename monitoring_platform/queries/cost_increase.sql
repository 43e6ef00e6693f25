-- Pipelines whose cost grew most
-- The newest 7 days of usage that are final against the 7 before.
-- R-COST-02, R-PEER-17
WITH known AS (
  SELECT CASE WHEN count(*) = count(complete_to) THEN min(complete_to) END AS usage_to
  FROM context_reads WHERE kind = 'usage'
),
clock AS (
  SELECT coalesce(max(usage_date) FILTER (final_at <= usage_to), max(usage_date)) AS today FROM pipeline_costs, known
),
weeks AS (
  SELECT pipeline_id, currency,
         sum(cost) FILTER (usage_date > today - INTERVAL 7 DAY) AS cost,
         coalesce(sum(cost) FILTER (usage_date <= today - INTERVAL 7 DAY), 0) AS cost_before
  FROM pipeline_costs, clock
  WHERE cost IS NOT NULL AND usage_date > today - INTERVAL 14 DAY AND usage_date <= today
  GROUP BY pipeline_id, currency
)
SELECT p.pipeline_name, w.cost, w.cost_before, w.cost - w.cost_before AS increase, w.currency,
       round(100 * (w.cost - w.cost_before)::DOUBLE / nullif(w.cost_before::DOUBLE, 0), 1) AS increase_pct, w.pipeline_id
FROM weeks w LEFT JOIN pipelines p USING (pipeline_id)
WHERE w.cost > w.cost_before
ORDER BY increase DESC, w.pipeline_id
