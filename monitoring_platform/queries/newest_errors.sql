-- Newest 20 errors of the fleet
-- Warnings that carry an error are kept in the table and left out here.
-- R-ERR-01
SELECT event_ts, pipeline_name, update_id, flow_name, level, error_class, exception_class, message
FROM pipeline_errors
WHERE NOT is_warning
ORDER BY event_ts DESC, event_id
LIMIT 20
