-- One row per pipeline_id: where a pipeline stands by its own log; internal runs do not count.
WITH asked AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, request_id DESC) AS age,
         max(start_ts) OVER (PARTITION BY pipeline_id) AS newest
  FROM requests
  WHERE run_kind = 'normal'
),
fates AS (
  SELECT pipeline_id,
         max(CASE WHEN age = 1 THEN request_id END) AS latest_request_id,
         max(CASE WHEN age = 1 THEN last_update_id END) AS latest_update_id,
         max(CASE WHEN age = 1 THEN outcome END) AS latest_outcome,
         bool_or(age = 1 AND is_open) AS is_open,
         max(CASE WHEN age = 1 THEN previous_attempt_status END) AS previous_attempt_status,
         max(CASE WHEN age = 1 THEN start_ts END) AS latest_start_ts,
         max(CASE WHEN outcome = 'COMPLETED' THEN end_ts END) AS last_success_ts,
         max(CASE WHEN outcome = 'FAILED' THEN end_ts END) AS last_failure_ts,
         max_by(request_id, CASE WHEN outcome = 'FAILED' THEN struct(start_ts, request_id) END) AS failed_request_id,
         count(CASE WHEN start_ts > newest - INTERVAL 7 DAYS THEN 1 END) AS requests_7d,
         count(CASE WHEN start_ts > newest - INTERVAL 7 DAYS AND outcome = 'FAILED' THEN 1 END) AS failed_requests_7d
  FROM asked
  GROUP BY pipeline_id
),
first_errors AS (
  SELECT r.pipeline_id, r.request_id, f.error_class, f.message, f.fingerprint,
         row_number() OVER (PARTITION BY r.pipeline_id, r.request_id
                            ORDER BY f.message IS NULL, r.attempt_number, r.start_ts, r.update_id) AS place
  FROM failures f
  JOIN pipeline_runs r ON r.pipeline_id = f.pipeline_id AND r.update_id = f.update_id
  WHERE f.kind = 'failed'
),
finished AS (
  SELECT *, CAST(floor(duration_seconds * 1000000 + 0.5) AS BIGINT) AS duration_micros,
         row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, update_id DESC) AS age
  FROM pipeline_runs
  WHERE run_kind = 'normal' AND status = 'COMPLETED' AND NOT coalesce(is_full_refresh, false)
),
durations AS (
  SELECT pipeline_id,
         max(CASE WHEN age = 1 THEN rows_written END) AS latest_rows_written,
         max(CASE WHEN rows_written > 0 THEN end_ts END) AS last_change_ts,
         floor(percentile(CASE WHEN age <= 5 THEN duration_micros END, 0.5) + 0.5) / 1e6 AS recent_seconds,
         floor(percentile(CASE WHEN age BETWEEN 6 AND 15 THEN duration_micros END, 0.5) + 0.5) / 1e6 AS earlier_seconds,
         count(CASE WHEN age BETWEEN 6 AND 15 THEN duration_seconds END) AS earlier_runs
  FROM finished
  GROUP BY pipeline_id
),
judged AS (
  SELECT e.pipeline_id, e.pass_rate_pct, r.start_ts,
         dense_rank() OVER (PARTITION BY e.pipeline_id ORDER BY r.start_ts DESC, r.update_id DESC) AS age
  FROM expectation_results e
  JOIN pipeline_runs r ON r.pipeline_id = e.pipeline_id AND r.update_id = e.update_id
  WHERE r.run_kind = 'normal' AND e.pass_rate_pct IS NOT NULL
),
quality AS (
  SELECT pipeline_id, min(pass_rate_pct) AS worst_pass_rate_pct FROM judged WHERE age = 1 GROUP BY pipeline_id
)
SELECT f.pipeline_id, f.latest_request_id, f.latest_update_id, f.latest_outcome, f.is_open,
       f.is_open AND coalesce(f.previous_attempt_status = 'FAILED', false) AS is_retrying,
       f.latest_start_ts, f.last_success_ts, f.last_failure_ts,
       e.error_class AS last_error_class, e.message AS last_error, e.fingerprint AS last_error_fingerprint,
       f.requests_7d, f.failed_requests_7d,
       d.latest_rows_written, d.last_change_ts, q.worst_pass_rate_pct,
       d.recent_seconds AS usual_seconds_now, d.earlier_seconds AS usual_seconds_before,
       CASE WHEN coalesce(d.earlier_runs, 0) < 3 OR d.recent_seconds IS NULL THEN 'unknown'
            WHEN d.recent_seconds >= 1.2D * d.earlier_seconds THEN 'slower'
            WHEN d.recent_seconds <= 0.8D * d.earlier_seconds THEN 'faster'
            ELSE 'steady' END AS duration_trend
FROM fates f
LEFT JOIN first_errors e
  ON e.pipeline_id = f.pipeline_id AND e.request_id = f.failed_request_id AND e.place = 1
LEFT JOIN durations d ON d.pipeline_id = f.pipeline_id
LEFT JOIN quality q ON q.pipeline_id = f.pipeline_id
