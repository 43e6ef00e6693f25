-- The newest run that completed dropped far more records than usual, also as a share of what it read.
WITH newest AS (
  SELECT j.*, u.dropped AS usual_dropped, u.dropped_mad, u.dropped_share, u.runs, u.basis
  FROM judged j JOIN usual u USING (pipeline_id, update_id)
  WHERE NOT j.is_open AND j.rows_dropped IS NOT NULL
  QUALIFY row_number() OVER (PARTITION BY pipeline_id ORDER BY j.place) = 1
)
SELECT pipeline_id, end_ts AS since, update_id, rows_dropped, round(usual_dropped) AS usual_dropped,
       runs AS compared_runs, basis, format('{} records dropped, usually {:.0f}', rows_dropped, usual_dropped) AS title
FROM newest JOIN limits USING (pipeline_id)
WHERE runs >= min_runs AND rows_dropped >= min_records AND rows_dropped > times * coalesce(usual_dropped, 0)
  AND coalesce(rows_dropped > times * dropped_share * (rows_written + rows_dropped), true)
  AND rows_dropped - coalesce(usual_dropped, 0) > deviations * 1.4826 * coalesce(dropped_mad, 0)
