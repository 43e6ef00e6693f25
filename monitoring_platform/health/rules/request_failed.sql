-- The newest request that came to an end failed. Where failed attempts are usually retried, by this pipeline or, as
-- long as nothing is known of it, by the others, the retry is waited for.
WITH attempts AS (
  SELECT pipeline_id, status, end_ts,
         lead(start_ts) OVER (PARTITION BY pipeline_id, request_id ORDER BY attempt_number, start_ts) AS next_ts,
         request_id = last_value(request_id) OVER (PARTITION BY pipeline_id ORDER BY start_ts
           ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS is_newest
  FROM pipeline_runs WHERE run_kind = 'normal'
),
retries AS (
  SELECT pipeline_id, CASE WHEN count(next_ts) > 0 AND count(next_ts) >= 0.5 * count(*)
                           THEN least(quantile_cont(epoch(next_ts - end_ts), 0.95) * 2 + 60, 1800) ELSE 0 END AS wait_seconds
  FROM attempts WHERE status = 'FAILED' AND (next_ts IS NOT NULL OR NOT is_newest)
  GROUP BY GROUPING SETS ((pipeline_id), ())
)
SELECT r.pipeline_id, f.fingerprint AS cause, r.end_ts AS since, r.request_id, r.last_update_id AS update_id, r.attempts,
       f.error_class, left(f.message, 300) AS first_error,
       'failed' || coalesce(': ' || f.error_class, '') AS title
FROM ended_requests r
JOIN limits USING (pipeline_id)
CROSS JOIN clock
LEFT JOIN failures f ON f.pipeline_id = r.pipeline_id AND f.update_id = r.last_update_id
LEFT JOIN retries own ON own.pipeline_id = r.pipeline_id
LEFT JOIN retries fleet ON fleet.pipeline_id IS NULL
WHERE r.place = 1 AND r.outcome = 'FAILED'
  AND epoch(now - r.end_ts) >= coalesce(own.wait_seconds, fleet.wait_seconds, 0)
