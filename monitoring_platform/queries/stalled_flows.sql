-- Flows that stand still although something waits
-- Flows of open updates with a backlog and no finished batch for an hour before the newest event. A flow that says
-- nothing about its backlog is unknown, not stalled.
-- R-NEW-05
WITH clock AS (SELECT max(last_event_ts) AS now FROM pipelines)
SELECT l.pipeline_name, l.flow_name, l.status, l.last_batch_ts,
       round(epoch(now - l.last_batch_ts) / 60) AS minutes_without_a_batch, l.last_backlog_bytes,
       l.last_backlog_records, l.last_backlog_files, l.last_backlog_seconds, t.trend AS backlog_trend, l.update_id
FROM flow_liveness l CROSS JOIN clock
LEFT JOIN backlog_trends t USING (pipeline_id, flow_name)
WHERE l.state = 'working' AND l.last_batch_ts < now - INTERVAL 1 HOUR
ORDER BY minutes_without_a_batch DESC, l.pipeline_name, l.flow_name
