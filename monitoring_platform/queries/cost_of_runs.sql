-- What each run cost, 7 days
-- Of each update (attempt), over all its days; for a million rows where it wrote any.
-- R-NEW-08
WITH costs AS (
  SELECT pipeline_id, update_id, max(currency) AS currency,
         CASE WHEN count(unpriced_reason) = 0 AND count(DISTINCT currency) = 1 THEN sum(cost) END AS cost,
         max(unpriced_reason) AS unpriced_reason, max(final_at) AS final_at
  FROM pipeline_costs WHERE kind = 'update'
  GROUP BY pipeline_id, update_id
),
clock AS (SELECT max(last_event_ts) AS now FROM pipelines),
known AS (
  SELECT CASE WHEN count(*) = count(complete_to) THEN min(complete_to) END AS usage_to
  FROM context_reads WHERE kind = 'usage'
)
SELECT r.pipeline_name, r.start_ts, r.status, r.attempt_number, c.cost, c.currency, r.rows_written,
       round(c.cost::DOUBLE / nullif(r.rows_written, 0) * 1e6, 4) AS cost_per_million_rows, c.unpriced_reason,
       coalesce(c.final_at > usage_to, true) AS is_provisional, r.request_id, r.update_id, r.pipeline_id
FROM costs c JOIN pipeline_runs r USING (pipeline_id, update_id), clock, known
WHERE r.start_ts > now - INTERVAL 7 DAY
ORDER BY c.cost DESC NULLS LAST, r.pipeline_id, r.update_id
