-- One row per (pipeline_id, update_id, flow_name): where the time of an update went. On the critical path at any moment
-- is the active flow that ends last; a flow's critical seconds are those in which no flow that ends later was active.
WITH flows AS (
  SELECT f.pipeline_id, f.update_id, f.flow_name, f.status, f.start_ts, f.last_event_ts, f.duration_seconds,
         f.active_seconds, f.rows_written, f.peak_backlog_bytes, r.run_kind, r.is_full_refresh,
         r.start_ts AS run_start_ts,
         -- Queueing is no work: from the first STARTING or RUNNING, where the flow says so.
         coalesce(f.active_seconds, f.duration_seconds) AS work_seconds,
         CAST(floor(coalesce(f.active_seconds, f.duration_seconds) * 1000000 + 0.5) AS BIGINT) AS work_micros,
         unix_micros(f.last_event_ts)
           - CAST(floor(coalesce(f.active_seconds, f.duration_seconds) * 1000000 + 0.5) AS BIGINT) AS begin_micros,
         unix_micros(f.last_event_ts) AS end_micros
  FROM flow_metrics f
  JOIN pipeline_runs r ON r.pipeline_id = f.pipeline_id AND r.update_id = f.update_id
  WHERE f.start_ts IS NOT NULL
),
paths AS (
  SELECT *,
         greatest(0L, least(end_micros, coalesce(min(begin_micros) OVER (
             PARTITION BY pipeline_id, update_id ORDER BY end_micros, flow_name
             ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), end_micros)) - begin_micros) AS critical_micros,
         row_number() OVER (PARTITION BY pipeline_id, update_id ORDER BY work_seconds DESC, flow_name)
           AS duration_rank
  FROM flows
),
shared AS (
  SELECT *, sum(critical_micros) OVER (PARTITION BY pipeline_id, update_id) AS path_micros,
         row_number() OVER (PARTITION BY pipeline_id, update_id ORDER BY critical_micros DESC, flow_name)
           AS critical_rank
  FROM paths
),
finished AS (
  SELECT pipeline_id, flow_name, update_id, run_start_ts, work_micros,
         row_number() OVER (PARTITION BY pipeline_id, flow_name ORDER BY run_start_ts, update_id) AS place
  FROM flows
  WHERE upper(status) = 'COMPLETED' AND run_kind = 'normal' AND NOT coalesce(is_full_refresh, false)
),
placed AS (
  -- How many finished runs of the flow came before: a window over all runs, so that any run has a place among them.
  SELECT f.pipeline_id, f.update_id, f.flow_name, f.run_start_ts, count(p.place) AS before
  FROM flows f
  LEFT JOIN finished p
    ON p.pipeline_id = f.pipeline_id AND p.flow_name = f.flow_name
   AND (p.run_start_ts < f.run_start_ts OR p.run_start_ts = f.run_start_ts AND p.update_id < f.update_id)
  GROUP BY f.pipeline_id, f.update_id, f.flow_name, f.run_start_ts
),
usual AS (
  SELECT c.pipeline_id, c.update_id, c.flow_name,
         floor(percentile(p.work_micros, 0.5) + 0.5) / 1e6 AS usual_seconds, count(*) AS usual_runs
  FROM placed c
  JOIN finished p
    ON p.pipeline_id = c.pipeline_id AND p.flow_name = c.flow_name
   AND p.place BETWEEN c.before - 9 AND c.before AND p.run_start_ts >= c.run_start_ts - INTERVAL 35 DAYS
  GROUP BY c.pipeline_id, c.update_id, c.flow_name
),
listings AS (
  SELECT pipeline_id, update_id, flow_name, max(duration_ms) / 1000 AS listing_seconds
  FROM operation_progress
  WHERE operation_type = 'AUTO_LOADER_LISTING' AND flow_name IS NOT NULL
  GROUP BY pipeline_id, update_id, flow_name
)
SELECT s.pipeline_id, s.update_id, s.flow_name, s.run_start_ts, s.status, s.duration_seconds, s.active_seconds,
       s.duration_rank, s.critical_micros / 1e6 AS critical_seconds,
       100 * CAST(s.critical_micros AS DOUBLE) / nullif(s.path_micros, 0) AS critical_share_pct,
       s.critical_rank = 1 AS is_bottleneck,
       u.usual_seconds, coalesce(u.usual_runs, 0L) AS usual_runs,
       s.work_seconds / nullif(u.usual_seconds, 0) AS times_usual,
       s.rows_written, s.peak_backlog_bytes, CAST(l.listing_seconds AS DOUBLE) AS listing_seconds
FROM shared s
LEFT JOIN usual u ON u.pipeline_id = s.pipeline_id AND u.update_id = s.update_id AND u.flow_name = s.flow_name
LEFT JOIN listings l ON l.pipeline_id = s.pipeline_id AND l.update_id = s.update_id AND l.flow_name = s.flow_name
