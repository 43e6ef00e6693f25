-- How often each objective was met in the last 28 days, how fast its error budget is used, and how it was met last.
WITH judged_days AS (
  SELECT n.pipeline_id, n.objective, n.occurrence_id, n.at, n.unit, n.value, n.met FROM slo_news n
  UNION ALL
  SELECT r.pipeline_id, r.objective, r.occurrence_id, r.at, r.unit, r.value, r.met
  FROM slo_results r JOIN slo_since s USING (pipeline_id, objective) CROSS JOIN clock
  ANTI JOIN slo_news n ON n.pipeline_id = r.pipeline_id AND n.objective = r.objective AND n.occurrence_id = r.occurrence_id
  WHERE r.at <= s.since AND r.at > now - INTERVAL 28 DAYS
),
counted AS (
  SELECT pipeline_id, objective, count(met) AS total, count(*) FILTER (NOT met) AS missed,
         count(met) FILTER (j.at > now - INTERVAL 1 DAY) AS total_1d,
         count(*) FILTER (NOT met AND j.at > now - INTERVAL 1 DAY) AS missed_1d,
         count(met) FILTER (j.at > now - INTERVAL 7 DAYS) AS total_7d,
         count(*) FILTER (NOT met AND j.at > now - INTERVAL 7 DAYS) AS missed_7d,
         min(j.at) FILTER (NOT met AND j.at > now - INTERVAL 1 DAY) AS first_missed_1d,
         min(j.at) FILTER (NOT met AND j.at > now - INTERVAL 7 DAYS) AS first_missed_7d,
         max_by({value: value, met: met, unit: unit, judged_at: j.at}, (j.at, occurrence_id)) AS latest
  FROM judged_days j CROSS JOIN clock
  GROUP BY pipeline_id, objective
),
goals AS (
  SELECT DISTINCT pipeline_id, objective, goal_pct, 1 - goal_pct / 100 AS allowed FROM targets
)
SELECT c.*, g.goal_pct, 100 * (1 - missed / nullif(total * allowed, 0)) AS left_pct,
       missed_1d / nullif(total_1d, 0) / allowed AS burn_1d, missed_7d / nullif(total_7d, 0) / allowed AS burn_7d
FROM counted c JOIN goals g USING (pipeline_id, objective)
