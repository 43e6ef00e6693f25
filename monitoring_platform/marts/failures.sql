-- One row per (pipeline_id, update_id): an update that failed or was refused, with its root error; one row however many
-- ERROR events were written. A flow's error comes before the update's, the first one before those that follow from it.
WITH errors AS (
  SELECT pipeline_id, update_id, event_id, event_ts, flow_name, level, root_error, position,
         row_number() OVER (PARTITION BY pipeline_id, update_id
                            ORDER BY flow_name IS NULL, position.trusted DESC, event_ts, event_id) AS place,
         count(*) OVER (PARTITION BY pipeline_id, update_id) AS error_events
  FROM events
  WHERE level = 'ERROR' AND update_id IS NOT NULL
),
roots AS (
  SELECT * FROM errors WHERE place = 1
),
judged AS (
  SELECT r.pipeline_id, r.update_id, r.pipeline_name, r.run_kind, r.status, r.start_ts,
         coalesce(r.end_ts, e.event_ts, r.last_event_ts, r.start_ts) AS failed_at,
         e.event_id, e.flow_name, e.root_error.error_class AS error_class, e.root_error.sql_state AS sql_state,
         e.root_error.class_name AS exception_class, e.root_error.message AS message,
         e.root_error.fingerprint AS fingerprint, coalesce(e.error_events, 0) AS error_events,
         CASE WHEN lower(e.root_error.message) LIKE '%already running%'
                OR lower(e.root_error.message) LIKE '%active update%already%'
                OR lower(e.root_error.message) LIKE '%update is already%' THEN 'refused'
              WHEN r.status = 'FAILED' THEN 'failed' END AS kind
  FROM pipeline_runs r
  LEFT JOIN roots e ON e.pipeline_id = r.pipeline_id AND e.update_id = r.update_id
)
SELECT pipeline_id, update_id, kind, pipeline_name, run_kind, start_ts, failed_at,
       event_id, flow_name, error_class, sql_state, exception_class, message, fingerprint, error_events
FROM judged
WHERE kind IS NOT NULL
