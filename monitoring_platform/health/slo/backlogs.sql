-- What waited for each flow at the end of an hour, where a backlog is promised to stay small.
SELECT h.pipeline_id, h.update_id, h.flow_name, h.hour_ts, t.pipeline_name, t.target, t.unit,
       CASE t.unit WHEN 'bytes' THEN h.last_backlog_bytes WHEN 'records' THEN h.last_backlog_records
                   WHEN 'files' THEN h.last_backlog_files ELSE h.last_backlog_seconds END AS value
FROM flow_hours h JOIN targets t USING (pipeline_id)
WHERE t.objective = 'backlog' AND value IS NOT NULL
