-- One row per (pipeline_id, event_id): every event at level ERROR, and every other event that carries an error.
SELECT pipeline_id, event_id, event_ts, pipeline_name, update_id, flow_name, flow_id, event_type, level,
       level <> 'ERROR' AS is_warning,
       coalesce(exception_message, message) AS message,
       message AS event_message,
       exception_class, error_class, sql_state, error_fatal AS fatal,
       root_error.message AS root_message, root_error.class_name AS root_exception_class,
       root_error.error_class AS root_error_class, root_error.sql_state AS root_sql_state,
       root_error.fingerprint AS fingerprint
FROM events
WHERE level = 'ERROR' OR error_fatal OR exception_class IS NOT NULL OR exception_message IS NOT NULL
