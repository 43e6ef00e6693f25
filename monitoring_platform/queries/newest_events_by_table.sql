-- Newest 100 events of one pipeline, by a table that it writes
-- Write the table in the first line; as it stands, a table of the pipeline with the newest event.
-- R-UNI-12
WITH chosen AS (
  SELECT t.dataset FROM table_status t JOIN pipelines p USING (pipeline_id)
  ORDER BY p.last_event_ts DESC NULLS LAST, p.pipeline_id, t.dataset LIMIT 1
)
SELECT e.event_ts, e.event_type, e.level, e.update_id, e.flow_name, e.message
FROM all_pipelines_event_log e
WHERE e.pipeline_id IN (SELECT pipeline_id FROM table_status JOIN chosen USING (dataset))
ORDER BY e.event_ts DESC, e.event_id
LIMIT 100
