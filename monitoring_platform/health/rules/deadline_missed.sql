-- A deadline has passed without a success in its window, and none has come since.
SELECT u.pipeline_id, u.missed_since AS since, u.missed_since AS due_at, u.missed_days, u.last_success, e.expected_at,
       e.basis, 'not ready by ' || u.due AS title
FROM unmet u JOIN limits USING (pipeline_id) LEFT JOIN expected e USING (pipeline_id)
WHERE u.missed_since IS NOT NULL
