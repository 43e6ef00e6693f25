-- Failures of each pipeline and day, 30 days
-- Failed updates, not ERROR rows: one failure usually writes several.
-- R-ERR-03
SELECT failed_at::DATE AS day, max(pipeline_name) AS pipeline_name, count(*) AS failures,
       sum(error_events) AS error_events, pipeline_id
FROM failures
WHERE kind = 'failed' AND run_kind = 'normal'
  AND failed_at > (SELECT max(last_event_ts) - INTERVAL 30 DAY FROM pipelines)
GROUP BY day, pipeline_id
ORDER BY day DESC, failures DESC, pipeline_name
