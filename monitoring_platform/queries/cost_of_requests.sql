-- What each request cost with all its attempts, 30 days
-- And how much of that was spent on attempts that failed.
-- R-NEW-08, R-NEW-01
WITH costs AS (
  SELECT pipeline_id, request_id, max(currency) AS currency,
         CASE WHEN count(unpriced_reason) = 0 AND count(DISTINCT currency) = 1 THEN sum(cost) END AS cost,
         coalesce(sum(cost) FILTER (outcome = 'FAILED'), 0) AS cost_of_failed_attempts, max(final_at) AS final_at
  FROM pipeline_costs WHERE request_id IS NOT NULL
  GROUP BY pipeline_id, request_id
),
written AS (
  SELECT pipeline_id, request_id, sum(rows_written) AS rows_written FROM pipeline_runs GROUP BY pipeline_id, request_id
),
clock AS (SELECT max(last_event_ts) AS now FROM pipelines),
known AS (
  SELECT CASE WHEN count(*) = count(complete_to) THEN min(complete_to) END AS usage_to
  FROM context_reads WHERE kind = 'usage'
)
SELECT r.pipeline_name, r.start_ts, r.outcome, r.attempts, c.cost, c.cost_of_failed_attempts, c.currency,
       w.rows_written, round(c.cost::DOUBLE / nullif(w.rows_written, 0) * 1e6, 4) AS cost_per_million_rows,
       coalesce(c.final_at > usage_to, true) AS is_provisional, r.request_id, r.pipeline_id
FROM costs c JOIN requests r USING (pipeline_id, request_id) LEFT JOIN written w USING (pipeline_id, request_id),
     clock, known
WHERE r.start_ts > now - INTERVAL 30 DAY
ORDER BY c.cost DESC NULLS LAST, r.pipeline_id, r.request_id
