-- The dearest pipelines, 30 days
-- By what it went into, and as a share of all; the newest 30 days of usage. Also pipelines that are not watched, such
-- as tables of Databricks SQL: they have no name here.
-- R-COST-01, R-PEER-11
SELECT p.pipeline_name, sum(c.cost) AS cost, c.currency,
       round(100 * sum(c.cost)::DOUBLE / nullif(sum(sum(c.cost)) OVER (PARTITION BY c.currency)::DOUBLE, 0), 1) AS share_pct,
       sum(c.cost) FILTER (c.kind = 'update') AS updates, sum(c.cost) FILTER (c.kind = 'maintenance') AS maintenance,
       sum(c.cost) FILTER (c.kind = 'other') AS other, string_agg(DISTINCT c.product, ', ' ORDER BY c.product) AS products,
       p.owner, c.pipeline_id
FROM pipeline_costs c LEFT JOIN pipelines p USING (pipeline_id)
WHERE c.cost IS NOT NULL AND c.usage_date > (SELECT max(usage_date) - INTERVAL 30 DAY FROM pipeline_costs)
GROUP BY c.pipeline_id, p.pipeline_name, p.owner, c.currency
ORDER BY sum(c.cost) DESC, c.pipeline_id
