-- Continuous pipelines by day
-- Their update never ends, so a duration says nothing: rows and batches of each UTC day do. 14 days.
-- R-NEW-05
SELECT r.pipeline_name, h.hour_ts::DATE AS day, count(DISTINCT h.hour_ts) AS active_hours, sum(h.batches) AS batches,
       sum(h.rows_written) AS rows_written, sum(h.rows_dropped) AS rows_dropped,
       max(h.peak_backlog_bytes) AS peak_backlog_bytes, h.pipeline_id
FROM flow_hours h JOIN pipeline_runs r USING (pipeline_id, update_id)
WHERE (r.continuous OR r.end_ts IS NULL)
  AND h.hour_ts > (SELECT max(last_event_ts) - INTERVAL 14 DAY FROM pipelines)
GROUP BY r.pipeline_name, day, h.pipeline_id
ORDER BY r.pipeline_name, h.pipeline_id, day DESC
