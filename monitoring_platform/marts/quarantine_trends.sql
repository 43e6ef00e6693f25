-- One row per (pipeline_id, day): how many records rules let fail and dropped on one UTC day.
WITH dropped AS (
  SELECT h.pipeline_id, CAST(h.hour_ts AS DATE) AS day,
         try_sum(h.rows_dropped) AS rows_dropped, try_sum(h.rows_written) AS rows_written
  FROM flow_hours h
  LEFT JOIN pipeline_runs r ON r.pipeline_id = h.pipeline_id AND r.update_id = h.update_id
  -- LEFT: a cycle does not read runs that began more than 35 days before, and those still count what they do now.
  WHERE coalesce(r.run_kind, 'normal') = 'normal'
  GROUP BY h.pipeline_id, CAST(h.hour_ts AS DATE)
),
judged AS (
  SELECT e.pipeline_id, e.day, try_sum(e.failed_records) AS failed_records, try_sum(e.passed_records) AS passed_records
  FROM expectation_days e
  LEFT JOIN pipeline_runs r ON r.pipeline_id = e.pipeline_id AND r.update_id = e.update_id
  WHERE coalesce(r.run_kind, 'normal') = 'normal'
  GROUP BY e.pipeline_id, e.day
)
SELECT coalesce(d.pipeline_id, j.pipeline_id) AS pipeline_id, coalesce(d.day, j.day) AS day,
       d.rows_dropped, d.rows_written, j.failed_records, j.passed_records,
       100 * CAST(d.rows_dropped AS DOUBLE)
         / nullif(CAST(d.rows_dropped AS DOUBLE) + CAST(d.rows_written AS DOUBLE), 0) AS dropped_pct
FROM dropped d
FULL OUTER JOIN judged j ON j.pipeline_id = d.pipeline_id AND j.day = d.day
WHERE d.rows_dropped IS NOT NULL OR j.failed_records IS NOT NULL
