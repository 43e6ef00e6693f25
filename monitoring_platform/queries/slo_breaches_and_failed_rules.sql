-- Runs that breached an objective, with the quality rules that failed in them
-- 30 days, newest first: one row for each rule that failed in the run; without one the columns of the rule are empty.
-- rules_judged says how many were evaluated: 0 = the run has no checks.
-- R-SLO-04, R-QUAL-09
WITH clock AS (SELECT max(last_event_ts) AS now FROM pipelines),
breaches AS (
  SELECT s.pipeline_id, s.occurrence_id AS request_id, s.update_id, max(s.at) AS ended_at,
         max(s.pipeline_name) AS pipeline_name, string_agg(s.objective, ', ' ORDER BY s.objective) AS breached,
         max(s.value) FILTER (s.objective = 'duration') AS minutes,
         max(s.target) FILTER (s.objective = 'duration') AS target_minutes
  FROM slo_results s, clock
  WHERE NOT s.met AND s.objective IN ('duration', 'success', 'pass_rate') AND s.at > now - INTERVAL 30 DAY
  GROUP BY ALL
),
rules AS (
  SELECT *, count(evaluated_records) OVER (PARTITION BY pipeline_id, update_id) AS rules_judged FROM expectation_results
)
SELECT b.pipeline_name, b.ended_at, b.breached, round(b.minutes, 1) AS minutes, b.target_minutes,
       r.dataset AS failed_dataset, r.expectation AS failed_rule, r.failed_records, round(r.pass_rate_pct, 2) AS pass_rate_pct,
       coalesce(j.rules_judged, 0) AS rules_judged, b.request_id, b.update_id, b.pipeline_id
FROM breaches b
LEFT JOIN (SELECT DISTINCT pipeline_id, update_id, rules_judged FROM rules) j USING (pipeline_id, update_id)
LEFT JOIN rules r ON r.pipeline_id = b.pipeline_id AND r.update_id = b.update_id AND r.failed_records > 0
ORDER BY b.ended_at DESC, b.pipeline_id, b.request_id, failed_dataset, failed_rule
