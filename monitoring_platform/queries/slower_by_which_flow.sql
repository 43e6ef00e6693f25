-- The flow that made an update slow
-- Updates that took at least twice their usual time (median of the 10 completed ones before, at least 3), and in each
-- the flow that grew most against its own usual time. Full refreshes are neither judged nor usual.
-- R-RUN-09, R-DUR-07, R-DUR-05
WITH completed AS (
  SELECT pipeline_id, update_id, pipeline_name, start_ts, duration_seconds,
         median(duration_seconds) OVER before AS usual_seconds, count(duration_seconds) OVER before AS usual_runs
  FROM pipeline_runs
  WHERE run_kind = 'normal' AND status = 'COMPLETED' AND NOT coalesce(is_full_refresh, false)
  WINDOW before AS (PARTITION BY pipeline_id ORDER BY start_ts, update_id ROWS BETWEEN 10 PRECEDING AND 1 PRECEDING)
),
slow AS (
  SELECT * FROM completed WHERE usual_runs >= 3 AND duration_seconds >= 2 * usual_seconds
),
flows AS (
  SELECT f.*, coalesce(f.active_seconds, f.duration_seconds) - f.usual_seconds AS grown_seconds
  FROM flow_durations f JOIN slow USING (pipeline_id, update_id)
  QUALIFY row_number() OVER (PARTITION BY f.pipeline_id, f.update_id
                             ORDER BY grown_seconds DESC NULLS LAST, f.flow_name) = 1
)
SELECT s.pipeline_name, s.update_id, s.start_ts, round(s.usual_seconds / 60, 1) AS usual_minutes,
       round(s.duration_seconds / 60, 1) AS minutes, f.flow_name, f.usual_seconds AS flow_usual_seconds,
       coalesce(f.active_seconds, f.duration_seconds) AS flow_seconds, f.rows_written, f.listing_seconds, s.pipeline_id
FROM slow s LEFT JOIN flows f USING (pipeline_id, update_id)
ORDER BY s.start_ts DESC, s.update_id
