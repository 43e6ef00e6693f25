-- The newest result of an expectation is below the limit.
WITH newest AS (
  SELECT e.*, r.end_ts
  FROM expectation_results e JOIN pipeline_runs r USING (pipeline_id, update_id)
  WHERE r.run_kind = 'normal'
  QUALIFY row_number() OVER (PARTITION BY e.pipeline_id, e.dataset, e.expectation
                             ORDER BY r.start_ts DESC, e.update_id DESC) = 1
)
SELECT pipeline_id, dataset || '.' || expectation AS subject, end_ts AS since, update_id, passed_records, failed_records,
       round(pass_rate_pct, 2) AS pass_rate_percent, percent AS limit_percent,
       format('{} passes {:.2f} %, limit {:.2f} %', expectation, pass_rate_pct, percent) AS title
FROM newest JOIN limits USING (pipeline_id)
WHERE pass_rate_pct < percent
