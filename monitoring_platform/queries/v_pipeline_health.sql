-- Health of today in two figures
-- Failures of today and average minutes of the runs that ended today. Today is the UTC day of the newest event; a run
-- across midnight counts wholly on the day on which it ended.
-- R-DUR-06
WITH clock AS (SELECT max(last_event_ts) AS now FROM pipelines)
SELECT 'error_count' AS metric_name,
       (SELECT count(*) FROM failures, clock
        WHERE kind = 'failed' AND run_kind = 'normal' AND failed_at::DATE = now::DATE)::DOUBLE AS metric_value,
       now AS checked_at
FROM clock
UNION ALL
SELECT 'avg_duration_min',
       (SELECT avg(duration_seconds) / 60 FROM pipeline_runs, clock
        WHERE run_kind = 'normal' AND end_ts::DATE = now::DATE),
       now
FROM clock
