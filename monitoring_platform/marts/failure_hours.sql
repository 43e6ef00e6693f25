-- One row per (pipeline_id, weekday, hour, flow_name, fingerprint): when an error strikes, in the configured time zone.
-- The hour is that of the start of the run: what a run meets depends on when it was started.
WITH local AS (
  SELECT f.*, from_utc_timestamp(f.start_ts, s.time_zone) AS local_start, s.time_zone
  FROM failures f
  CROSS JOIN settings s
  WHERE f.run_kind = 'normal' AND f.kind = 'failed'
)
SELECT pipeline_id, (dayofweek(local_start) + 5) % 7 + 1 AS weekday, hour(local_start) AS hour,
       coalesce(flow_name, '') AS flow_name, coalesce(fingerprint, '') AS fingerprint, max(time_zone) AS time_zone,
       max_by(error_class, struct(failed_at, update_id)) AS error_class,
       max_by(message, struct(failed_at, update_id)) AS latest_message,
       count(*) AS failures, min(failed_at) AS first_seen, max(failed_at) AS last_seen
FROM local
GROUP BY pipeline_id, (dayofweek(local_start) + 5) % 7 + 1, hour(local_start), coalesce(flow_name, ''),
         coalesce(fingerprint, '')
