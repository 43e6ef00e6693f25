-- When a pipeline was in trouble that makes its numbers unusual; what lasts for more than 14 days has become usual.
-- What is only for information (a single slow run, a quiet day) is part of what is usual.
SELECT unnest(pipeline_ids) AS pipeline_id, coalesce(started_at, opened_at) AS since,
       coalesce(resolved_at, clock.now) AS until
FROM incidents, clock
WHERE rule IN ('run_slow', 'rows_zero', 'rows_changed', 'rows_dropped') AND severity <> 'info'
  AND coalesce(resolved_at, clock.now) - coalesce(started_at, opened_at) <= INTERVAL 14 DAYS
