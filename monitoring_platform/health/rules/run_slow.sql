-- The newest run, done or still going, takes a multiple of its usual time. Once is for information; twice in a row, or
-- still going at three times the limit, is a warning.
WITH slow AS (
  SELECT j.*, u.seconds AS usual_seconds, u.runs, u.basis, l.times,
         j.seconds > l.times * u.seconds
           AND j.seconds - u.seconds > greatest(60 * l.min_extra_minutes, 3 * 1.4826 * u.seconds_mad) AS is_slow
  FROM judged j JOIN usual u USING (pipeline_id, update_id) JOIN limits l USING (pipeline_id)
  WHERE u.runs >= l.min_runs
),
guilty AS (
  SELECT pipeline_id, update_id, max_by(flow_name, active_seconds - usual_seconds) AS flow,
         max(active_seconds - usual_seconds) AS extra_seconds
  FROM flow_durations WHERE usual_seconds IS NOT NULL GROUP BY ALL
)
SELECT s.pipeline_id, s.start_ts + to_seconds(s.times * s.usual_seconds) AS since, s.update_id, s.is_open AS still_running,
       round(s.seconds / 60, 1) AS minutes, round(s.usual_seconds / 60, 1) AS usual_minutes,
       round(s.seconds / s.usual_seconds, 1) AS times_usual, s.runs AS compared_runs, s.basis,
       g.flow AS slowest_flow, round(g.extra_seconds / 60, 1) AS extra_minutes_of_flow,
       CASE WHEN before.is_slow OR s.is_open AND s.seconds > 3 * s.times * s.usual_seconds THEN 'warning' ELSE 'info' END
         AS severity,
       format('{:.1f} min, usually {:.1f} min', s.seconds / 60, s.usual_seconds / 60) AS title
FROM slow s
LEFT JOIN slow before ON before.pipeline_id = s.pipeline_id AND before.place = 2
LEFT JOIN guilty g ON g.pipeline_id = s.pipeline_id AND g.update_id = s.update_id
WHERE s.place = 1 AND s.is_slow
