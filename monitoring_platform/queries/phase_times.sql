-- How much of a run was waiting
-- Newest 100 runs, seconds in each state. A state that was not seen is null, not 0.
-- R-DUR-02, R-PEER-04
SELECT pipeline_name, start_ts, status, queued_seconds, created_seconds, waiting_seconds, initializing_seconds,
       resetting_seconds, setting_up_seconds, running_seconds, stopping_seconds, duration_seconds, update_id
FROM pipeline_runs
WHERE run_kind = 'normal'
ORDER BY start_ts DESC, update_id
LIMIT 100
