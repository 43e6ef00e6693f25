-- Runs and durations of each day, 30 days
-- Minutes of ended runs by the UTC day on which they began; second and later attempts are counted apart.
-- R-DUR-03
SELECT start_ts::DATE AS run_date, count(*) FILTER (attempt_number = 1) AS num_runs,
       round(avg(duration_seconds) FILTER (attempt_number = 1) / 60, 1) AS avg_duration_min,
       round(max(duration_seconds) FILTER (attempt_number = 1) / 60, 2) AS max_duration_min,
       count(*) FILTER (attempt_number > 1) AS retries
FROM pipeline_runs
WHERE run_kind = 'normal' AND start_ts > (SELECT max(last_event_ts)::DATE - 29 FROM pipelines)
GROUP BY run_date
ORDER BY run_date DESC
