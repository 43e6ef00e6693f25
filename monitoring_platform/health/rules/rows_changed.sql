-- The newest run that completed wrote far fewer rows than usual. For information: far more, or as few as at times.
WITH newest AS (
  SELECT j.*, u.rows AS usual_rows, u.rows_mad, u.rows_low, u.known_days, u.runs_with_rows, u.basis
  FROM judged j JOIN usual u USING (pipeline_id, update_id)
  WHERE NOT j.is_open AND j.rows_written > 0
  QUALIFY row_number() OVER (PARTITION BY pipeline_id ORDER BY j.place) = 1
)
SELECT pipeline_id, end_ts AS since, update_id, rows_written AS rows, round(usual_rows) AS usual_rows,
       round(100 * (rows_written / usual_rows - 1), 1) AS change_percent, runs_with_rows AS compared_runs, basis,
       CASE WHEN rows_written < least(usual_rows, 0.8 * rows_low) THEN 'warning' ELSE 'info' END AS severity,
       format('{} rows, usually {:.0f} ({:+.0f} %)', rows_written, usual_rows, 100 * (rows_written / usual_rows - 1))
         AS title
FROM newest JOIN limits USING (pipeline_id)
WHERE runs_with_rows >= min_runs AND known_days >= min_days AND usual_rows > 0
  AND (rows_written <= usual_rows * (1 - drop_percent / 100) OR rows_written >= usual_rows * (1 + rise_percent / 100))
  AND abs(rows_written - usual_rows) > deviations * 1.4826 * rows_mad
