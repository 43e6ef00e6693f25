-- Quality of today
-- Today is the UTC day of the newest event.
-- R-QUAL-05
SELECT d.flow_name, d.expectation AS rule_name, sum(d.passed_records) AS total_passed,
       sum(d.failed_records) AS total_failed,
       round(100 * sum(d.passed_records) / nullif(sum(d.passed_records) + sum(d.failed_records), 0), 2)
         AS pass_rate_pct,
       max(r.pipeline_name) AS pipeline_name, d.dataset
FROM expectation_days d JOIN pipeline_runs r USING (pipeline_id, update_id)
WHERE r.run_kind = 'normal' AND d.day = (SELECT max(last_event_ts)::DATE FROM pipelines)
GROUP BY d.pipeline_id, d.flow_name, d.dataset, d.expectation
ORDER BY pass_rate_pct NULLS LAST, pipeline_name, d.dataset, rule_name
