-- Which flow made this update slow
-- Flows of one update, longest first. Write the update in the first lines; as it stands, the longest one of 7 days.
-- Slow with few rows means waiting: listing_seconds says how long files were listed.
-- R-FLOW-03, R-FLOW-05
WITH chosen AS (
  SELECT pipeline_id, update_id FROM pipeline_runs
  WHERE run_kind = 'normal' AND start_ts > (SELECT max(last_event_ts) - INTERVAL 7 DAY FROM pipelines)
  ORDER BY duration_seconds DESC NULLS LAST, update_id LIMIT 1
)
SELECT f.flow_name, f.duration_seconds AS seconds, m.rows_written, m.rows_output, f.peak_backlog_bytes, f.status,
       f.listing_seconds, f.active_seconds, f.usual_seconds
FROM flow_durations f JOIN chosen USING (pipeline_id, update_id)
LEFT JOIN flow_metrics m USING (pipeline_id, update_id, flow_name)
ORDER BY f.duration_seconds DESC NULLS LAST, f.flow_name
