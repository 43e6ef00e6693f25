-- A flow of a continuous update has records waiting and has finished no batch for long: where batches are rare,
-- for twice as long as usual, at most 6 hours. Unknown is not stalled: hours are known when they are complete, so
-- the time without a batch counts up to the end of the newest complete one.
WITH flows AS (
  SELECT h.pipeline_id, h.flow_name, max(h.last_batch_ts) AS last_batch_ts,
         max_by(coalesce(last_backlog_bytes, last_backlog_records, last_backlog_files, last_backlog_seconds), h.hour_ts)
           AS backlog,
         epoch(max(h.last_batch_ts) - min(h.hour_ts)) / nullif(sum(h.batches), 0) AS usual_seconds
  FROM flow_hours h JOIN pipeline_runs r USING (pipeline_id, update_id)
  WHERE r.end_ts IS NULL AND r.continuous
  GROUP BY ALL
)
SELECT pipeline_id, flow_name AS subject, last_batch_ts AS since, backlog,
       round(epoch(now - last_batch_ts) / 60) AS minutes_without_batch,
       format('{} has finished no batch for {:.0f} min', flow_name, epoch(now - last_batch_ts) / 60) AS title
FROM flows JOIN limits USING (pipeline_id) CROSS JOIN clock
WHERE backlog > 0 AND epoch(date_trunc('hour', now) - last_batch_ts) > greatest(60 * minutes, least(2 * usual_seconds, 21600))
