-- Report of each month and pipeline
-- Also for months that the pipeline's own log has lost. Unknown is not zero.
-- R-RET-04, R-DASH-03
WITH runs AS (
  SELECT pipeline_id, date_trunc('month', start_ts)::DATE AS month, max_by(pipeline_name, start_ts) AS pipeline_name,
         count(*) AS runs, count(*) FILTER (attempt_number > 1) AS retries,
         round(avg(duration_seconds) / 60, 1) AS avg_minutes, sum(rows_written) AS rows_written,
         sum(rows_dropped) AS rows_dropped
  FROM pipeline_runs WHERE run_kind = 'normal' GROUP BY pipeline_id, month
),
asked AS (
  SELECT pipeline_id, date_trunc('month', start_ts)::DATE AS month, count(*) AS requests,
         count(*) FILTER (outcome = 'FAILED') AS failed_requests
  FROM requests WHERE run_kind = 'normal' GROUP BY pipeline_id, month
),
quality AS (
  SELECT d.pipeline_id, date_trunc('month', d.day)::DATE AS month,
         round(100 * sum(d.passed_records) / nullif(sum(d.passed_records) + sum(d.failed_records), 0), 2)
           AS pass_rate_pct
  FROM expectation_days d JOIN pipeline_runs r USING (pipeline_id, update_id)
  WHERE r.run_kind = 'normal' GROUP BY d.pipeline_id, month
)
SELECT r.month, r.pipeline_name, a.requests, a.failed_requests, r.runs, r.retries, r.avg_minutes, r.rows_written,
       r.rows_dropped, q.pass_rate_pct, pipeline_id
FROM runs r LEFT JOIN asked a USING (pipeline_id, month) LEFT JOIN quality q USING (pipeline_id, month)
ORDER BY r.month DESC, a.failed_requests DESC NULLS LAST, r.pipeline_name, pipeline_id
