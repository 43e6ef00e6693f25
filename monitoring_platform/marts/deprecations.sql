-- One row per (pipeline_id, event_id): something that the pipeline uses will change or go.
SELECT pipeline_id, event_id, event_ts, update_id, event_type, level, notice.name AS code,
       coalesce(notice.text, message) AS message
FROM events
WHERE event_type IN ('deprecation', 'behavior_change_in_spark_connect')
