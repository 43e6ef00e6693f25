-- Pipelines ranked by failures, duration and rows, 7 days
-- Rank 1 = most failed requests, most hours of running, most rows.
-- R-DASH-04
WITH since AS (SELECT max(last_event_ts) - INTERVAL 7 DAY AS since FROM pipelines),
asked AS (
  SELECT pipeline_id, count(*) AS requests, count(*) FILTER (outcome = 'FAILED') AS failed_requests
  FROM requests, since WHERE run_kind = 'normal' AND start_ts > since GROUP BY pipeline_id
),
ran AS (
  SELECT pipeline_id, max_by(pipeline_name, start_ts) AS pipeline_name, sum(duration_seconds) / 3600 AS hours,
         sum(rows_written) AS rows_written
  FROM pipeline_runs, since WHERE run_kind = 'normal' AND start_ts > since GROUP BY pipeline_id
)
SELECT r.pipeline_name, a.requests, a.failed_requests,
       rank() OVER (ORDER BY a.failed_requests DESC NULLS LAST) AS by_failures,
       round(r.hours, 2) AS hours, rank() OVER (ORDER BY r.hours DESC NULLS LAST) AS by_duration,
       r.rows_written, rank() OVER (ORDER BY r.rows_written DESC NULLS LAST) AS by_rows, pipeline_id
FROM ran r LEFT JOIN asked a USING (pipeline_id)
ORDER BY by_failures, by_duration, r.pipeline_name, pipeline_id
