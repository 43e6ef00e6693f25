-- Money spent on attempts that failed, 30 days
-- Of each pipeline, and its share of what the pipeline cost; the newest 30 days of usage.
-- R-NEW-08, R-PEER-17
SELECT p.pipeline_name, sum(c.cost) FILTER (c.outcome = 'FAILED') AS cost_of_failed_attempts, c.currency,
       count(DISTINCT c.update_id) FILTER (c.outcome = 'FAILED') AS failed_attempts, sum(c.cost) AS cost,
       round(100 * (sum(c.cost) FILTER (c.outcome = 'FAILED'))::DOUBLE / nullif(sum(c.cost)::DOUBLE, 0), 1) AS failed_pct,
       c.pipeline_id
FROM pipeline_costs c LEFT JOIN pipelines p USING (pipeline_id)
WHERE c.cost IS NOT NULL AND c.usage_date > (SELECT max(usage_date) - INTERVAL 30 DAY FROM pipeline_costs)
GROUP BY c.pipeline_id, p.pipeline_name, c.currency
HAVING cost_of_failed_attempts > 0
ORDER BY cost_of_failed_attempts DESC, c.pipeline_id
