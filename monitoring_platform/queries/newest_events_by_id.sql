-- Newest 100 events of one pipeline, by its id
-- Write the id in the first line; as it stands, the pipeline with the newest event.
-- R-UNI-12
WITH chosen AS (SELECT pipeline_id FROM pipelines ORDER BY last_event_ts DESC NULLS LAST, pipeline_id LIMIT 1)
SELECT e.event_ts, e.event_type, e.level, e.update_id, e.flow_name, e.message
FROM all_pipelines_event_log e JOIN chosen USING (pipeline_id)
ORDER BY e.event_ts DESC, e.event_id
LIMIT 100
