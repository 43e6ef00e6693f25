-- An objective is missed so often that its error budget of four weeks is used up in days (fast) or a week (slow).
-- A failed request misses all; where nothing else is missed, that it should succeed is told alone.
WITH speeds AS (
  SELECT b.*, l.*, burn_1d >= fast AND missed_1d >= min_missed AS is_fast,
         burn_7d >= slow AND burn_1d >= slow AND missed_7d >= min_missed AS is_slow  -- and still burns
  FROM budgets b JOIN limits l USING (pipeline_id)
  QUALIFY objective NOT IN ('duration', 'pass_rate')
       OR missed_7d IS DISTINCT FROM max(missed_7d) FILTER (objective = 'success') OVER (PARTITION BY b.pipeline_id)
)
SELECT pipeline_id, objective AS subject,
       -- different people answer for data and for runs
       pipeline_id || CASE objective WHEN 'pass_rate' THEN ' data' ELSE ' runs' END AS cause,
       CASE WHEN is_fast THEN first_missed_1d ELSE first_missed_7d END AS since,
       CASE WHEN is_fast THEN 'error' ELSE 'warning' END AS severity, goal_pct AS goal_percent,
       round(left_pct, 1) AS budget_left_percent, round(burn_1d, 1) AS burn_rate_1_day, missed_1d AS missed_1_day,
       round(burn_7d, 1) AS burn_rate_7_days, missed_7d AS missed_7_days, total_7d AS judged_7_days,
       format('{} missed {} of {} times in {}, {:.0f} times as often as allowed', objective,
              CASE WHEN is_fast THEN missed_1d ELSE missed_7d END, CASE WHEN is_fast THEN total_1d ELSE total_7d END,
              CASE WHEN is_fast THEN 'a day' ELSE '7 days' END, CASE WHEN is_fast THEN burn_1d ELSE burn_7d END) AS title
FROM speeds
WHERE is_fast OR is_slow
