-- A rule whose failure rate rises for three weeks
-- In the newest calendar week with results more than in the week before, there more than in the one before that, and in
-- all by a quarter of a point at least: less is noise.
-- R-RUN-09, R-QUAL-06
WITH rates AS (
  SELECT *, 100 - pass_rate_pct AS failed_pct,
         row_number() OVER (PARTITION BY pipeline_id, dataset, expectation ORDER BY week_start DESC) AS age
  FROM weekly_quality WHERE pass_rate_pct IS NOT NULL
)
SELECT p.pipeline_name, w.dataset, w.expectation, w.week_start,
       round(before.failed_pct, 2) AS failed_pct_2_weeks_before, round(last.failed_pct, 2) AS failed_pct_week_before,
       round(w.failed_pct, 2) AS failed_pct, w.pipeline_id
FROM rates w
JOIN rates last ON last.pipeline_id = w.pipeline_id AND last.dataset = w.dataset
  AND last.expectation = w.expectation AND last.week_start = w.week_start - 7
JOIN rates before ON before.pipeline_id = w.pipeline_id AND before.dataset = w.dataset
  AND before.expectation = w.expectation AND before.week_start = w.week_start - 14
LEFT JOIN pipelines p ON p.pipeline_id = w.pipeline_id
WHERE w.age = 1 AND w.failed_pct > last.failed_pct AND last.failed_pct > before.failed_pct
  AND w.failed_pct >= before.failed_pct + 0.25
ORDER BY w.failed_pct - before.failed_pct DESC, w.pipeline_id, w.dataset, w.expectation
