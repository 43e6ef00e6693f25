-- Objectives now
-- What is missed or at risk first, then by what is left of the error budget of 28 days. For ready_by the deadline and
-- when the data is expected at the present pace.
-- R-SLO-02, R-NEW-06, R-SLO-06
SELECT pipeline_name, objective, state, target, unit, latest_value, latest_met, due_at, expected_at, basis,
       round(actual_pct, 2) AS actual_pct, goal_pct, round(error_budget_left_pct, 1) AS error_budget_left_pct,
       round(burn_rate_1d, 1) AS burn_rate_1d, round(burn_rate_7d, 1) AS burn_rate_7d, total, missed, owner, pipeline_id
FROM slo_status
ORDER BY list_position(['missed', 'at_risk', 'met', 'unknown'], state), error_budget_left_pct NULLS LAST, pipeline_id,
         objective
