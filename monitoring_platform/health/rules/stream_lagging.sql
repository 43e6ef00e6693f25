-- A stream of an open update has files or bytes waiting and reported no batch for long. Rests on EVOLVING events.
WITH newest AS (
  SELECT s.* FROM stream_progress s JOIN pipeline_runs r USING (pipeline_id, update_id)
  WHERE r.end_ts IS NULL
  QUALIFY row_number() OVER (PARTITION BY s.pipeline_id, s.stream_id ORDER BY s.event_ts DESC, s.event_id DESC) = 1
)
SELECT pipeline_id, coalesce(flow_name, stream_name, stream_id) AS subject, event_ts AS since, backlog_bytes, backlog_files,
       format('{} reported no batch for {:.0f} min', coalesce(flow_name, stream_name, stream_id),
              epoch(now - event_ts) / 60) AS title
FROM newest JOIN limits USING (pipeline_id) CROSS JOIN clock
WHERE greatest(coalesce(backlog_bytes, 0), coalesce(backlog_files, 0)) > 0 AND epoch(now - event_ts) > 60 * minutes
