-- Each objective of each pipeline now: what is wanted, how often it was met, and what to expect.
WITH judged_last AS (
  SELECT t.*, b.* EXCLUDE (pipeline_id, objective, goal_pct)
  FROM targets t LEFT JOIN budgets b USING (pipeline_id, objective)
  QUALIFY row_number() OVER (PARTITION BY t.pipeline_id, t.objective
                             ORDER BY t.unit = b.latest.unit DESC NULLS LAST, t.unit) = 1
),
next_days AS (
  SELECT pipeline_id, min(due_at) AS due_at, min_by(window_start, due_at) AS window_start
  FROM deadlines CROSS JOIN clock WHERE due_at > now GROUP BY pipeline_id
),
seen AS (
  SELECT j.*, now, coalesce(r.last_success, r.known_since) AS refreshed_at, d.due_at AS next_due_at,
         r.last_success >= d.window_start AS is_ready, u.missed_since, e.started_at,
         CASE WHEN j.objective = 'ready_by' AND u.pipeline_id IS NULL THEN NULL
              WHEN j.objective = 'duration' AND e.started_at IS NULL THEN NULL
              WHEN j.objective IN ('ready_by', 'duration', 'fresh') THEN e.expected_at END AS expected_at,
         e.basis
  FROM judged_last j CROSS JOIN clock
  LEFT JOIN refreshed r USING (pipeline_id)
  LEFT JOIN next_days d USING (pipeline_id)
  LEFT JOIN unmet u USING (pipeline_id)
  LEFT JOIN expected e USING (pipeline_id)
),
-- The newest occurrence: the last one that was judged, or what is under way now.
newest AS (
  SELECT *, CASE objective WHEN 'fresh' THEN epoch(now - refreshed_at) / 3600 ELSE latest.value END AS latest_value,
         CASE objective WHEN 'fresh' THEN latest_value <= target ELSE latest.met END AS latest_met,
         CASE objective WHEN 'fresh' THEN now ELSE latest.judged_at END AS latest_at,
         CASE objective WHEN 'fresh' THEN refreshed_at + to_seconds(3600 * target)
                        WHEN 'ready_by' THEN next_due_at END AS due_at,
         CASE objective WHEN 'ready_by' THEN missed_since IS NOT NULL
                        WHEN 'duration' THEN epoch(now - started_at) > 60 * target END AS is_missed,
         CASE objective WHEN 'duration' THEN epoch(expected_at - started_at) > 60 * target
                        ELSE expected_at > due_at END AS is_at_risk
  FROM seen
)
SELECT pipeline_id, objective, pipeline_name, owner, now - INTERVAL 28 DAYS AS period_start, now AS period_end,
       CASE objective WHEN 'ready_by' THEN epoch(next_due_at) ELSE target END AS target, unit, goal_pct,
       coalesce(total, 0) AS total, coalesce(total - missed, 0) AS met, coalesce(missed, 0) AS missed,
       100 * (total - missed) / nullif(total, 0) AS actual_pct, left_pct AS error_budget_left_pct,
       burn_1d AS burn_rate_1d, burn_7d AS burn_rate_7d, latest_value, latest_met, latest_at, due_at, expected_at,
       CASE WHEN expected_at IS NOT NULL THEN basis END AS basis,
       CASE WHEN is_missed OR objective = 'fresh' AND NOT latest_met THEN 'missed'
            WHEN is_at_risk THEN 'at_risk'
            WHEN objective = 'ready_by' AND is_ready THEN 'met'
            ELSE CASE latest_met WHEN true THEN 'met' WHEN false THEN 'missed' ELSE 'unknown' END END AS state
FROM newest
