-- Rules that got worse than the week before
-- By at least a quarter of a point, and by more than chance explains (3 standard errors). Newest week of each rule.
-- R-QUAL-06
WITH weeks AS (
  SELECT *, lag(passed_records + failed_records) OVER rule AS records_before,
         row_number() OVER (PARTITION BY pipeline_id, dataset, expectation ORDER BY week_start DESC) AS age
  FROM weekly_quality
  WINDOW rule AS (PARTITION BY pipeline_id, dataset, expectation ORDER BY week_start)
),
judged AS (
  SELECT *, passed_records + failed_records AS records,
         sqrt(pass_rate_pct * (100 - pass_rate_pct) / (passed_records + failed_records)
              + previous_week_pass_rate_pct * (100 - previous_week_pass_rate_pct) / records_before) AS standard_error
  FROM weeks
  WHERE age = 1 AND change_points IS NOT NULL
)
SELECT p.pipeline_name, j.dataset, j.expectation, j.week_start,
       round(j.previous_week_pass_rate_pct, 2) AS prev_week_rate, round(j.pass_rate_pct, 2) AS pass_rate_pct,
       round(j.change_points, 2) AS change_points, j.records, j.pipeline_id
FROM judged j LEFT JOIN pipelines p USING (pipeline_id)
WHERE j.change_points <= -0.25 AND j.change_points < -3 * j.standard_error
ORDER BY j.change_points, j.pipeline_id, j.dataset, j.expectation
