-- From when on an objective is judged now: what was decided in the last two days may still change, what was decided
-- before is kept as it was judged then. Where nothing is kept, the whole period is judged.
SELECT t.pipeline_id, t.objective, least(coalesce(max(r.at), now - INTERVAL 28 DAYS), now - INTERVAL 2 DAYS) AS since
FROM (SELECT DISTINCT pipeline_id, objective FROM targets) t CROSS JOIN clock
LEFT JOIN slo_results r ON r.pipeline_id = t.pipeline_id AND r.objective = t.objective AND r.at <= now
GROUP BY t.pipeline_id, t.objective, now
