-- Jobs behind updates that failed, 7 days
-- With the newest root error, and how sure it is that the job started them: exact, by request, or by nearest start.
-- R-JOB-03, R-JOB-01
SELECT m.job_name, count(*) AS failed_updates, count(DISTINCT m.job_run_id) AS job_runs,
       string_agg(DISTINCT m.pipeline_name, ', ' ORDER BY m.pipeline_name) AS pipelines,
       string_agg(DISTINCT m.method, ', ' ORDER BY m.method) AS known_by, max(f.failed_at) AS last_failed_at,
       max_by(f.error_class, (f.failed_at, f.update_id)) AS last_error_class,
       max_by(left(f.message, 200), (f.failed_at, f.update_id)) AS last_error, m.job_id
FROM job_matches m JOIN failures f USING (pipeline_id, update_id)
WHERE f.kind = 'failed' AND f.failed_at > (SELECT max(last_event_ts) - INTERVAL 7 DAY FROM pipelines)
GROUP BY m.job_id, m.job_name
ORDER BY failed_updates DESC, last_failed_at DESC, m.job_id
