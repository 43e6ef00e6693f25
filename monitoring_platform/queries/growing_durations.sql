-- Pipelines whose runs take longer every week
-- Average of completed runs against the calendar week before; 5 % or more is a sign of growing volume. Full refreshes
-- are left out. A missing week gives no change.
-- R-DUR-04
WITH weeks AS (
  SELECT pipeline_id, date_trunc('week', start_ts)::DATE AS week_start,
         max_by(pipeline_name, start_ts) AS pipeline_name, count(*) AS runs, avg(duration_seconds) AS avg_seconds
  FROM pipeline_runs
  WHERE run_kind = 'normal' AND status = 'COMPLETED' AND NOT coalesce(is_full_refresh, false)
    AND duration_seconds IS NOT NULL
  GROUP BY pipeline_id, week_start
)
SELECT w.pipeline_name, w.week_start, w.runs, round(w.avg_seconds / 60, 2) AS avg_minutes,
       round(b.avg_seconds / 60, 2) AS avg_minutes_week_before,
       round(100 * (w.avg_seconds - b.avg_seconds) / nullif(b.avg_seconds, 0), 1) AS growth_pct,
       coalesce(w.avg_seconds >= 1.05 * b.avg_seconds, false) AS is_growing, w.pipeline_id
FROM weeks w LEFT JOIN weeks b ON b.pipeline_id = w.pipeline_id AND b.week_start = w.week_start - 7
ORDER BY w.week_start DESC, growth_pct DESC NULLS LAST, w.pipeline_name, w.pipeline_id
