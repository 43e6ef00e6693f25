-- Weekly quality with the change against the week before
-- A week without results gives null in the next one, not the last known rate. Newest week first, worst rate first.
-- R-QUAL-04, R-DASH-03
SELECT w.week_start, w.flow_name, w.expectation AS rule_name, w.passed_records AS total_passed,
       w.failed_records AS total_failed, round(w.pass_rate_pct, 2) AS pass_rate_pct,
       round(w.previous_week_pass_rate_pct, 2) AS prev_week_rate, round(w.change_points, 2) AS change_points,
       p.pipeline_name, w.dataset
FROM weekly_quality w LEFT JOIN pipelines p USING (pipeline_id)
ORDER BY w.week_start DESC, w.pass_rate_pct NULLS LAST, p.pipeline_name, w.dataset, w.expectation
