-- Run history with cause and person
-- Newest 500 runs. A run with cause USER_ACTION shows who asked: the action that names the update, else the nearest
-- START in the 15 minutes before the run; each action stands for one run.
-- R-AUD-02, R-LIN-04
WITH candidates AS (
  SELECT r.pipeline_id, r.update_id, a.user_name, a.event_ts, a.event_id, r.start_ts,
         coalesce(a.update_id = r.update_id, false) AS names_it
  FROM pipeline_runs r JOIN user_actions a USING (pipeline_id)
  WHERE r.cause = 'USER_ACTION' AND a.action = 'START'
    AND (a.update_id = r.update_id
         OR a.update_id IS NULL AND a.event_ts BETWEEN r.start_ts - INTERVAL 15 MINUTE AND r.start_ts)
),
asked AS (
  SELECT * FROM candidates
  QUALIFY row_number() OVER (PARTITION BY pipeline_id, update_id ORDER BY names_it DESC, event_ts DESC, event_id) = 1
      AND row_number() OVER (PARTITION BY pipeline_id, event_id ORDER BY names_it DESC, start_ts, update_id) = 1
)
SELECT r.pipeline_name, r.start_ts, r.cause, a.user_name, r.status, r.duration_seconds, r.is_full_refresh,
       r.attempt_number, r.run_kind, a.event_ts AS asked_at, r.update_id, r.pipeline_id
FROM pipeline_runs r LEFT JOIN asked a USING (pipeline_id, update_id)
ORDER BY r.start_ts DESC, r.update_id
LIMIT 500
