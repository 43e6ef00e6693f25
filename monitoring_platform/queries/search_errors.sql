-- Search the errors of the whole history
-- Write what you look for in place of 'schema mismatch'; each word must occur. Found with the run and what came after:
-- the next completed update of the pipeline.
-- R-ERR-05
WITH words AS (SELECT unnest(string_split('schema mismatch', ' ')) AS word)
SELECT e.event_ts, e.pipeline_name, e.flow_name, e.error_class, e.message, e.update_id, r.status, r.cause,
       (SELECT min(n.end_ts) FROM pipeline_runs n
        WHERE n.pipeline_id = e.pipeline_id AND n.status = 'COMPLETED' AND n.end_ts > e.event_ts) AS solved_at
FROM pipeline_errors e LEFT JOIN pipeline_runs r USING (pipeline_id, update_id)
WHERE (SELECT bool_and(contains(
         lower(concat_ws(' ', e.message, e.root_message, e.event_message, e.error_class, e.root_error_class)), word
       )) FROM words)
ORDER BY e.event_ts DESC, e.event_id
