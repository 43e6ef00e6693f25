-- The log of a pipeline cannot be read.
SELECT pipeline_id, state, reason, remedy, remedy_sql, 'log not read: ' || state AS title
FROM pipelines JOIN limits USING (pipeline_id)
WHERE state IN ('log_not_published', 'no_grant', 'not_owner', 'unreadable')
