-- The newest run that completed wrote no rows, and rows are usual. Not reported is not zero.
WITH finished AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, update_id DESC) AS place
  FROM pipeline_runs WHERE run_kind = 'normal' AND status = 'COMPLETED' AND NOT coalesce(continuous, false)
),
before AS (
  SELECT pipeline_id, median(rows_written) AS usual_rows, count(rows_written) AS runs,
         100 * count(*) FILTER (rows_written > 0) / count(rows_written) AS with_rows_percent
  FROM finished WHERE place BETWEEN 2 AND 61 GROUP BY pipeline_id  -- fewer would take a lucky streak for the usual
)
SELECT f.pipeline_id, f.end_ts AS since, f.update_id, b.usual_rows, b.runs AS compared_runs,
       format('0 rows, usually {:.0f}', b.usual_rows) AS title
FROM finished f JOIN before b USING (pipeline_id) JOIN limits USING (pipeline_id)
WHERE f.place = 1 AND f.rows_written = 0 AND b.runs >= min_runs AND b.with_rows_percent >= usual_percent
