-- Versions of jobs, one beside the other
-- Of each version of a recorded job: its runs, how many failed, and per run the average minutes, rows written, share in
-- quarantine and checks in which records failed. Newest version first.
-- R-OWN-14
WITH versions AS (
  SELECT pipeline_id, update_id, json_extract_string(details, '$.create_update.config.version') AS version
  FROM all_pipelines_event_log
  WHERE pipeline_type = 'JOB' AND event_type = 'create_update'
),
checks AS (
  SELECT pipeline_id, update_id, count(*) FILTER (failed_records > 0) AS failed_checks
  FROM expectation_results GROUP BY ALL
)
SELECT r.pipeline_name, v.version, count(*) AS runs, count(*) FILTER (r.status = 'FAILED') AS failed_runs,
       round(avg(r.duration_seconds) / 60, 2) AS avg_duration_min, round(avg(r.rows_written), 1) AS avg_rows_written,
       round(100 * sum(r.rows_dropped) / nullif(sum(r.rows_dropped) + sum(r.rows_written), 0), 2) AS quarantined_pct,
       round(avg(c.failed_checks), 2) AS avg_failed_checks, max(r.start_ts) AS last_run, r.pipeline_id
FROM pipeline_runs r
JOIN versions v USING (pipeline_id, update_id)
LEFT JOIN checks c USING (pipeline_id, update_id)
WHERE r.status IN ('COMPLETED', 'FAILED')
GROUP BY ALL
ORDER BY r.pipeline_name, last_run DESC, v.version, r.pipeline_id
