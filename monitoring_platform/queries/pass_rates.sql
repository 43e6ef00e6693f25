-- Pass rate of each rule in its latest update
-- Rounded as pages show it, the stored figure is not; null where nothing was evaluated. Worst first.
-- R-QUAL-01, R-QUAL-02
SELECT r.pipeline_name, e.dataset, e.expectation, e.passed_records, e.failed_records,
       round(e.pass_rate_pct, 2) AS pass_rate_pct, round(e.failed_pct, 2) AS failed_pct, r.start_ts, e.update_id
FROM expectation_results e JOIN pipeline_runs r USING (pipeline_id, update_id)
WHERE r.run_kind = 'normal'
QUALIFY row_number() OVER (PARTITION BY e.pipeline_id, e.qualified_dataset, e.expectation
                           ORDER BY r.start_ts DESC, e.update_id DESC) = 1
ORDER BY e.pass_rate_pct NULLS LAST, r.pipeline_name, e.dataset, e.expectation
