-- Pipelines that are retried most, 7 days
-- Second and later attempts, and the time spent on attempts that failed.
-- R-PEER-17, R-NEW-08
SELECT max_by(pipeline_name, start_ts) AS pipeline_name, count(*) FILTER (attempt_number > 1) AS retries,
       max(attempt_number) AS most_attempts,
       round(coalesce(sum(duration_seconds) FILTER (status = 'FAILED'), 0) / 60, 1) AS minutes_on_failed_attempts,
       pipeline_id
FROM pipeline_runs
WHERE run_kind = 'normal' AND start_ts > (SELECT max(last_event_ts) - INTERVAL 7 DAY FROM pipelines)
GROUP BY pipeline_id
HAVING retries > 0
ORDER BY retries DESC, minutes_on_failed_attempts DESC, pipeline_name
