-- The last success is older than promised, or none came since the pipeline is known.
SELECT pipeline_id, coalesce(last_success, known_since) + to_seconds(3600 * target) AS since, last_success, known_since,
       round(epoch(now - coalesce(last_success, known_since)) / 3600, 1) AS hours, target AS wanted_hours, e.expected_at,
       e.basis,
       format(CASE WHEN last_success IS NULL THEN 'no success for {:.1f} hours, at most {:g} wanted'
                   ELSE 'last success {:.1f} hours ago, at most {:g} wanted' END,
              epoch(now - coalesce(last_success, known_since)) / 3600, target) AS title
FROM targets JOIN refreshed USING (pipeline_id) JOIN limits USING (pipeline_id) CROSS JOIN clock
LEFT JOIN expected e USING (pipeline_id)
WHERE objective = 'fresh' AND epoch(now - coalesce(last_success, known_since)) > 3600 * target
