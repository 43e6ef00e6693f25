-- One row per (pipeline_id, flow_name): where a flow's backlog goes, from its last 24 hourly readings within 7 days of the
-- newest. Bytes where reported, else records, files, seconds. Fewer than 3 readings, or none: unknown.
WITH readings AS (
  SELECT h.pipeline_id, h.flow_name, h.hour_ts, h.rows_written,
         CASE WHEN h.last_backlog_bytes IS NOT NULL THEN 'bytes' WHEN h.last_backlog_records IS NOT NULL THEN 'records'
              WHEN h.last_backlog_files IS NOT NULL THEN 'files' WHEN h.last_backlog_seconds IS NOT NULL THEN 'seconds'
         END AS unit,
         coalesce(h.last_backlog_bytes, h.last_backlog_records, h.last_backlog_files, h.last_backlog_seconds)
           AS backlog,
         max(h.hour_ts) OVER (PARTITION BY h.pipeline_id, h.flow_name) AS newest
  FROM flow_hours h
  JOIN pipeline_runs r ON r.pipeline_id = h.pipeline_id AND r.update_id = h.update_id
  WHERE r.run_kind = 'normal'
),
recent AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id, flow_name ORDER BY hour_ts DESC, backlog DESC) AS age
  FROM readings
  WHERE backlog IS NOT NULL AND hour_ts >= newest - INTERVAL 7 DAYS
),
counted AS (
  SELECT *, count(*) OVER (PARTITION BY pipeline_id, flow_name) AS readings
  FROM recent
  WHERE age <= 24
),
halves AS (
  SELECT pipeline_id, flow_name, max(readings) AS readings, max(CASE WHEN age = 1 THEN unit END) AS unit,
         min(backlog) AS lowest, max(backlog) AS highest, max(CASE WHEN age = 1 THEN backlog END) AS latest,
         percentile(CASE WHEN age > readings / 2 THEN backlog END, 0.5) AS earlier_median,
         percentile(CASE WHEN age <= readings / 2 THEN backlog END, 0.5) AS later_median,
         coalesce(sum(rows_written), 0) AS rows_written
  FROM counted
  GROUP BY pipeline_id, flow_name
),
flows AS (
  SELECT pipeline_id, flow_name, max(newest) AS last_hour_ts FROM readings GROUP BY pipeline_id, flow_name
)
SELECT f.pipeline_id, f.flow_name, f.last_hour_ts, coalesce(h.readings, 0L) AS readings, h.unit,
       h.latest AS latest_backlog, h.highest AS peak_backlog, h.earlier_median, h.later_median,
       CASE WHEN coalesce(h.readings, 0) < 3 THEN 'unknown'
            WHEN h.highest = 0 THEN 'none'
            WHEN h.lowest = h.highest AND h.rows_written = 0 THEN 'stuck'
            WHEN h.later_median >= 1.2D * h.earlier_median AND h.later_median > h.earlier_median THEN 'growing'
            WHEN h.later_median <= 0.8D * h.earlier_median THEN 'shrinking'
            ELSE 'steady' END AS trend
FROM flows f
LEFT JOIN halves h ON h.pipeline_id = f.pipeline_id AND h.flow_name = f.flow_name
