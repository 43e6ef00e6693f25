-- One row per (pipeline_id, request_id): what was asked for, over all its attempts.
WITH ordered AS (
  SELECT *,
         status IN ('COMPLETED', 'FAILED', 'CANCELED') AS has_ended,
         lag(status) OVER (PARTITION BY pipeline_id, request_id ORDER BY attempt_number, start_ts, update_id)
           AS previous_status,
         row_number() OVER (PARTITION BY pipeline_id, request_id
                            ORDER BY attempt_number DESC, start_ts DESC, update_id DESC) AS from_last,
         row_number() OVER (PARTITION BY pipeline_id, request_id ORDER BY attempt_number, start_ts, update_id)
           AS from_first
  FROM pipeline_runs
)
SELECT pipeline_id, request_id,
       max(CASE WHEN from_last = 1 THEN pipeline_name END) AS pipeline_name,
       max(CASE WHEN from_last = 1 THEN run_kind END) AS run_kind,
       max(CASE WHEN from_first = 1 THEN cause END) AS cause,
       max(attempt_number) AS attempts,
       count(*) AS attempts_seen,
       count(CASE WHEN status = 'FAILED' THEN 1 END) AS failed_attempts,
       max(CASE WHEN from_first = 1 THEN update_id END) AS first_update_id,
       max(CASE WHEN from_last = 1 THEN update_id END) AS last_update_id,
       max(CASE WHEN from_last = 1 THEN status END) AS outcome,
       max(CASE WHEN from_last = 1 THEN previous_status END) AS previous_attempt_status,
       NOT coalesce(bool_or(from_last = 1 AND has_ended), false) AS is_open,
       min(start_ts) AS start_ts,
       max(CASE WHEN from_last = 1 THEN start_ts END) AS last_start_ts,
       max(CASE WHEN from_last = 1 THEN end_ts END) AS end_ts,
       (unix_micros(max(CASE WHEN from_last = 1 THEN end_ts END)) - unix_micros(min(start_ts))) / 1e6
         AS duration_seconds,
       -- From the first failure to the success that ended the chain; null without either.
       (unix_micros(max(CASE WHEN from_last = 1 AND status = 'COMPLETED' THEN end_ts END))
         - unix_micros(min(CASE WHEN status = 'FAILED' THEN end_ts END))) / 1e6 AS time_to_recovery_seconds
FROM ordered
GROUP BY pipeline_id, request_id
