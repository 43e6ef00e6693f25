-- Failed records of each rule and day, 30 days
-- UTC days, newest first, then most failures.
-- R-QUAL-03
SELECT d.day, d.dataset, d.expectation, sum(d.passed_records) AS passed, sum(d.failed_records) AS failed,
       round(100 * sum(d.failed_records) / nullif(sum(d.passed_records) + sum(d.failed_records), 0), 2) AS failed_pct
FROM expectation_days d JOIN pipeline_runs r USING (pipeline_id, update_id)
WHERE r.run_kind = 'normal' AND d.day > (SELECT max(last_event_ts)::DATE - 30 FROM pipelines)
GROUP BY d.day, d.dataset, d.expectation
ORDER BY d.day DESC, failed DESC NULLS LAST, d.dataset, d.expectation
