-- The monitoring itself: its newest cycles, failures, lag and cost
-- Each with its slowest step. A gap between two is time in which nothing was watched.
-- R-PEER-18
SELECT started_at, launched_by, status, error, duration_seconds, slowest.key AS slowest_step,
       slowest.value AS slowest_step_seconds, logs_read, logs_failed, events_read, events_new, quarantined,
       lag_p50_seconds, lag_max_seconds, cpu_seconds, peak_memory_bytes,
       epoch(started_at - lag(ended_at) OVER (ORDER BY started_at, run_id)) AS seconds_since_the_last, run_id
FROM (
  SELECT *, list_reverse_sort(list_transform(map_entries(step_seconds), e -> {'value': e.value, 'key': e.key}))[1]
              AS slowest
  FROM platform_runs
)
ORDER BY started_at DESC, run_id
LIMIT 50
