-- Duration targets of 7 days
-- Of each pipeline: requests that ended, how many met their duration target and how many breached it (a failed one
-- always does), and their average duration in minutes. Most breaches first.
-- R-SLO-03, R-SLO-01
WITH clock AS (SELECT max(last_event_ts) AS now FROM pipelines)
SELECT coalesce(p.pipeline_name, s.pipeline_id) AS pipeline_name, count(*) AS total_runs,
       count(*) FILTER (s.met) AS slo_met_count, count(*) FILTER (NOT s.met) AS slo_breach_count,
       round(avg(s.value), 1) AS avg_duration_min, s.pipeline_id
FROM slo_results s LEFT JOIN pipelines p USING (pipeline_id), clock
WHERE s.objective = 'duration' AND s.at > now - INTERVAL 7 DAY
GROUP BY ALL
ORDER BY slo_breach_count DESC, pipeline_name, s.pipeline_id
