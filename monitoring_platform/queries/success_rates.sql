-- Success by request and by attempt, 30 days
-- Side by side: retries make the second rate worse than what people experience. What is still open is not judged.
-- R-NEW-01
WITH since AS (SELECT max(last_event_ts) - INTERVAL 30 DAY AS since FROM pipelines),
requested AS (
  SELECT pipeline_id, count(*) AS requests, 100 * avg((outcome = 'COMPLETED')::DOUBLE) AS request_success_pct
  FROM requests, since
  WHERE run_kind = 'normal' AND NOT is_open AND start_ts >= since
  GROUP BY pipeline_id
),
attempted AS (
  SELECT pipeline_id, max_by(pipeline_name, start_ts) AS pipeline_name, count(*) AS attempts,
         100 * avg((status = 'COMPLETED')::DOUBLE) AS attempt_success_pct
  FROM pipeline_runs, since
  WHERE run_kind = 'normal' AND end_ts IS NOT NULL AND start_ts >= since
  GROUP BY pipeline_id
)
SELECT a.pipeline_name, r.requests, round(r.request_success_pct, 2) AS request_success_pct, a.attempts,
       round(a.attempt_success_pct, 2) AS attempt_success_pct, pipeline_id
FROM attempted a LEFT JOIN requested r USING (pipeline_id)
ORDER BY a.attempt_success_pct, a.pipeline_name, pipeline_id
