-- Warnings and error rate of 7 days
-- Of each pipeline, the window is stated. Rates: ERROR events of all events, failed updates of those that ended.
-- R-PEER-13
WITH span AS (
  SELECT max(last_event_ts) - INTERVAL 7 DAY AS window_start, max(last_event_ts) AS window_end FROM pipelines
),
events AS (
  SELECT pipeline_id, max(pipeline_name) AS pipeline_name, count(*) AS events,
         count(*) FILTER (level = 'WARN') AS warnings, count(*) FILTER (level = 'ERROR') AS errors
  FROM all_pipelines_event_log, span
  WHERE event_date >= window_start::DATE AND event_ts > window_start AND event_ts <= window_end
  GROUP BY pipeline_id
),
runs AS (
  SELECT pipeline_id, count(*) AS updates, count(*) FILTER (status = 'FAILED') AS failed_updates
  FROM pipeline_runs, span
  WHERE run_kind = 'normal' AND end_ts > window_start AND end_ts <= window_end
  GROUP BY pipeline_id
)
SELECT e.pipeline_name, e.events, e.warnings, e.errors, round(100.0 * e.errors / e.events, 2) AS error_events_pct,
       r.updates, r.failed_updates, round(100.0 * r.failed_updates / r.updates, 2) AS failed_updates_pct,
       window_start, window_end, pipeline_id
FROM events e LEFT JOIN runs r USING (pipeline_id), span
ORDER BY failed_updates_pct DESC NULLS LAST, e.errors DESC, e.pipeline_name, pipeline_id
