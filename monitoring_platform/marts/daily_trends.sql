-- One row per (pipeline_id, day): what a pipeline did on one UTC day. Updates and requests count on the day they began,
-- rows on the day they were written, so that an update that never ends has figures for each day.
WITH timed AS (
  -- Whole microseconds, so that sums and percentiles depend neither on the order nor on the engine.
  SELECT *, CAST(floor(duration_seconds * 1000000 + 0.5) AS BIGINT) AS duration_micros
  FROM pipeline_runs
  WHERE run_kind = 'normal'
),
runs AS (
  SELECT pipeline_id, CAST(start_ts AS DATE) AS day,
         count(*) AS runs,
         count(CASE WHEN status = 'COMPLETED' THEN 1 END) AS completed_runs,
         count(CASE WHEN status = 'FAILED' THEN 1 END) AS failed_runs,
         count(CASE WHEN status = 'CANCELED' THEN 1 END) AS canceled_runs,
         count(CASE WHEN end_ts IS NULL THEN 1 END) AS open_runs,
         count(CASE WHEN attempt_number > 1 THEN 1 END) AS retries,
         CAST(sum(duration_micros) AS DOUBLE) / nullif(count(duration_micros), 0) / 1000000 AS avg_duration_seconds,
         max(duration_seconds) AS max_duration_seconds,
         floor(percentile(duration_micros, 0.5) + 0.5) / 1e6 AS p50_duration_seconds,
         floor(percentile(duration_micros, 0.95) + 0.5) / 1e6 AS p95_duration_seconds
  FROM timed
  GROUP BY pipeline_id, CAST(start_ts AS DATE)
),
asked AS (
  SELECT pipeline_id, CAST(start_ts AS DATE) AS day,
         count(*) AS requests,
         count(CASE WHEN outcome = 'FAILED' THEN 1 END) AS failed_requests,
         count(CASE WHEN is_open THEN 1 END) AS open_requests
  FROM requests
  WHERE run_kind = 'normal'
  GROUP BY pipeline_id, CAST(start_ts AS DATE)
),
written AS (
  SELECT h.pipeline_id, CAST(h.hour_ts AS DATE) AS day,
         try_sum(h.rows_written) AS rows_written, try_sum(h.rows_dropped) AS rows_dropped, sum(h.batches) AS batches
  FROM flow_hours h
  LEFT JOIN pipeline_runs r ON r.pipeline_id = h.pipeline_id AND r.update_id = h.update_id
  -- LEFT: a cycle does not read runs that began more than 35 days before, and those still count what they do now.
  WHERE coalesce(r.run_kind, 'normal') = 'normal'
  GROUP BY h.pipeline_id, CAST(h.hour_ts AS DATE)
),
days AS (
  SELECT pipeline_id, day FROM runs
  UNION
  SELECT pipeline_id, day FROM written
)
SELECT d.pipeline_id, d.day,
       coalesce(r.runs, 0L) AS runs, coalesce(r.completed_runs, 0L) AS completed_runs,
       coalesce(r.failed_runs, 0L) AS failed_runs, coalesce(r.canceled_runs, 0L) AS canceled_runs,
       coalesce(r.open_runs, 0L) AS open_runs, coalesce(r.retries, 0L) AS retries,
       coalesce(a.requests, 0L) AS requests, coalesce(a.failed_requests, 0L) AS failed_requests,
       coalesce(a.open_requests, 0L) AS open_requests,
       100 * CAST(r.failed_runs AS DOUBLE) / nullif(r.runs - r.open_runs, 0) AS run_failure_pct,
       100 * CAST(a.failed_requests AS DOUBLE) / nullif(a.requests - a.open_requests, 0) AS request_failure_pct,
       r.avg_duration_seconds, r.max_duration_seconds, r.p50_duration_seconds, r.p95_duration_seconds,
       w.rows_written, w.rows_dropped, w.batches
FROM days d
LEFT JOIN runs r ON r.pipeline_id = d.pipeline_id AND r.day = d.day
LEFT JOIN asked a ON a.pipeline_id = d.pipeline_id AND a.day = d.day
LEFT JOIN written w ON w.pipeline_id = d.pipeline_id AND w.day = d.day
