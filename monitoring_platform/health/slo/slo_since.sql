-- From when on an objective is judged now: what was decided in the last two days may still change, what was decided
-- before is kept as it was judged then. Where nothing is kept, the whole period is judged.
SELECT pipeline_id, objective, least(coalesce(max(r.at), now - INTERVAL 28 DAYS), now - INTERVAL 2 DAYS) AS since
FROM (SELECT DISTINCT pipeline_id, objective FROM targets) t CROSS JOIN clock
LEFT JOIN slo_results r USING (pipeline_id, objective)
GROUP BY pipeline_id, objective, now
