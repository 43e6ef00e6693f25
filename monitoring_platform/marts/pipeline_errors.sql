-- One row per (pipeline_id, event_id): every event at level ERROR, and every other event that carries an error.
SELECT pipeline_id, event_id, event_ts, pipeline_name, update_id, flow_name, flow_id, event_type, level,
       level <> 'ERROR' AS is_warning,
       coalesce(exception_message, message) AS message,
       message AS event_message,
       exception_class, error_class, sql_state, error_fatal AS fatal
FROM events
WHERE level = 'ERROR' OR error_fatal OR exception_class IS NOT NULL OR exception_message IS NOT NULL
