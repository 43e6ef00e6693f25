-- The same error in several pipelines
-- Ids, numbers, quoted names, times and paths are masked before errors are compared. One cause, one incident.
-- R-NEW-09, R-PEER-07
SELECT error_class, sql_state, pipeline_count, failures, first_seen, last_seen, latest_message, pipeline_ids,
       flow_names, fingerprint
FROM error_groups
WHERE pipeline_count > 1
ORDER BY pipeline_count DESC, failures DESC, fingerprint
