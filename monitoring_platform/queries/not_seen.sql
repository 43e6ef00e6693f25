-- Pipelines that are not seen, why, and what to do
-- Every known pipeline has one state; these are neither seen nor left out on purpose.
-- R-NEW-02, R-RUN-04
SELECT pipeline_name, state, reason, remedy, remedy_sql, owner, last_event_ts, logs, pipeline_id
FROM pipelines
WHERE state NOT IN ('seen', 'excluded')
ORDER BY state, pipeline_name NULLS LAST, pipeline_id
