-- Events of each pipeline
-- One statement over the whole fleet: how many events, since when, until when.
-- R-UNI-01
SELECT pipeline_id, max_by(pipeline_name, event_ts) AS pipeline_name, count(*) AS events,
       min(event_ts) AS first_event, max(event_ts) AS last_event
FROM all_pipelines_event_log
GROUP BY pipeline_id
ORDER BY events DESC, pipeline_id
