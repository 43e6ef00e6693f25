-- One row per (pipeline_id, week_start, dataset, expectation): the pass rate of a rule in one calendar week (Monday, UTC)
-- against the week before; a week without results is null, not the last known one.
WITH weeks AS (
  SELECT d.pipeline_id, CAST(date_trunc('WEEK', d.day) AS DATE) AS week_start, d.dataset, d.expectation,
         min(d.flow_name) AS flow_name,
         try_sum(d.passed_records) AS passed_records, try_sum(d.failed_records) AS failed_records
  FROM expectation_days d
  LEFT JOIN pipeline_runs r ON r.pipeline_id = d.pipeline_id AND r.update_id = d.update_id
  -- LEFT: a cycle does not read runs that began more than 35 days before, and those still count what they do now.
  WHERE coalesce(r.run_kind, 'normal') = 'normal'
  GROUP BY d.pipeline_id, CAST(date_trunc('WEEK', d.day) AS DATE), d.dataset, d.expectation
),
rated AS (
  SELECT *, 100 * CAST(passed_records AS DOUBLE)
              / nullif(CAST(passed_records AS DOUBLE) + CAST(failed_records AS DOUBLE), 0) AS pass_rate_pct
  FROM weeks
)
SELECT w.pipeline_id, w.week_start, w.dataset, w.expectation, w.flow_name, w.passed_records, w.failed_records,
       w.pass_rate_pct, p.pass_rate_pct AS previous_week_pass_rate_pct,
       w.pass_rate_pct - p.pass_rate_pct AS change_points
FROM rated w
LEFT JOIN rated p
  ON p.pipeline_id = w.pipeline_id AND p.dataset = w.dataset AND p.expectation = w.expectation
 AND p.week_start = date_sub(w.week_start, 7)
