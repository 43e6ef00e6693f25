-- The pass rate of an expectation fell in the last complete week and in the one before, each time beyond its noise, and
-- its newest result is not back where it was between.
WITH weeks AS (
  SELECT e.pipeline_id, e.dataset, e.expectation,
         date_diff('week', date_trunc('week', timezone(time_zone, r.start_ts)),
                   date_trunc('week', timezone(time_zone, now))) AS ago,
         100 * sum(e.passed_records) / sum(e.evaluated_records) AS rate, sum(e.evaluated_records) AS records,
         coalesce(var_samp(e.pass_rate_pct), 0) / count(e.pass_rate_pct) AS variance,
         arg_max(e.pass_rate_pct, r.start_ts) AS newest_rate
  FROM expectation_results e JOIN pipeline_runs r USING (pipeline_id, update_id), clock
  WHERE r.run_kind = 'normal' AND e.evaluated_records > 0
  GROUP BY ALL
),
wide AS (
  SELECT pipeline_id, dataset, expectation, arg_min(newest_rate, ago) AS newest_rate,
         min(records) FILTER (ago BETWEEN 1 AND 3) AS fewest_records, count(*) FILTER (ago BETWEEN 1 AND 3) AS weeks,
         max(rate) FILTER (ago = 3) AS w3, max(rate) FILTER (ago = 2) AS w2, max(rate) FILTER (ago = 1) AS w1,
         max(variance) FILTER (ago = 3) AS v3, max(variance) FILTER (ago = 2) AS v2, max(variance) FILTER (ago = 1) AS v1
  FROM weeks WHERE ago <= 3 GROUP BY ALL
)
SELECT pipeline_id, dataset || '.' || expectation AS subject,
       [round(w3, 2), round(w2, 2), round(w1, 2)] AS pass_rate_by_week,
       format('{} falls week by week: {:.2f}, {:.2f}, {:.2f} %', expectation, w3, w2, w1) AS title
FROM wide JOIN limits USING (pipeline_id)
WHERE newest_rate < w2 AND weeks = 3 AND fewest_records >= min_records AND w2 < w3 - 0.05 AND w1 < w2 - 0.05
  AND w3 - w2 > deviations * sqrt(v3 + v2) AND w2 - w1 > deviations * sqrt(v2 + v1)
