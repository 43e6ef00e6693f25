-- One row per (pipeline_id, update_id) that a workspace knows and no log has.
SELECT k.pipeline_id, k.update_id, k.created_at, k.ended_at, k.first_known_at,
       CASE WHEN p.first_event_ts IS NULL THEN 'log_not_read'
            WHEN k.created_at < p.first_event_ts THEN 'before_log'
            ELSE 'not_in_log' END AS reason,
       k.request_id, k.state, k.update_type, k.trigger_type, k.known_from, k.source
FROM known_updates k
LEFT ANTI JOIN pipeline_runs r ON r.pipeline_id = k.pipeline_id AND r.update_id = k.update_id
LEFT JOIN pipelines p ON p.pipeline_id = k.pipeline_id
