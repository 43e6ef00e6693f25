-- One row per (pipeline_id, update_id) that a run of a job started: which run, and how that is known.
WITH attempts AS (
  SELECT r.pipeline_id, r.update_id, r.pipeline_name, r.request_id, r.start_ts, k.job_id, k.task_run_id,
         coalesce(r.cause, k.trigger_type) AS cause,
         row_number() OVER (PARTITION BY r.pipeline_id, r.request_id ORDER BY r.start_ts, r.update_id) AS place
  FROM pipeline_runs r
  LEFT JOIN known_updates k ON k.pipeline_id = r.pipeline_id AND k.update_id = r.update_id
),
exact AS (
  -- The timeline names the run of the task, which may be one that we may not see.
  SELECT a.pipeline_id, a.update_id, a.request_id, a.place, j.job_run_id, a.task_run_id
  FROM attempts a
  LEFT JOIN job_runs j ON j.pipeline_id = a.pipeline_id AND j.task_run_id = a.task_run_id
  WHERE a.task_run_id IS NOT NULL
),
free_runs AS (
  -- A run that started one update for certain started no other one.
  SELECT j.*
  FROM job_runs j
  LEFT ANTI JOIN exact e ON e.pipeline_id = j.pipeline_id AND e.job_run_id = j.job_run_id
                        AND e.task_run_id = j.task_run_id
),
near AS (
  -- Of first attempts only, and not where the log or the timeline says that something else started them.
  SELECT a.pipeline_id, a.update_id, a.request_id, a.place, j.job_run_id, j.task_run_id,
         row_number() OVER (PARTITION BY a.pipeline_id, a.update_id
                            ORDER BY abs(unix_micros(j.started_at) - unix_micros(a.start_ts)), j.started_at,
                                     length(j.job_run_id), j.job_run_id, length(j.task_run_id), j.task_run_id) AS rank,
         row_number() OVER (PARTITION BY j.pipeline_id, j.job_run_id, j.task_run_id
                            ORDER BY abs(unix_micros(j.started_at) - unix_micros(a.start_ts)), a.start_ts, a.update_id)
           AS rank_of_update
  FROM attempts a
  JOIN free_runs j ON j.pipeline_id = a.pipeline_id
                  AND abs(unix_micros(j.started_at) - unix_micros(a.start_ts)) < 300000000
  WHERE a.place = 1 AND a.task_run_id IS NULL AND (a.job_id IS NULL OR a.job_id = j.job_id)
    AND NOT coalesce(a.cause IN ('USER_ACTION', 'RETRY_ON_FAILURE', 'SERVICE_UPGRADE', 'SCHEMA_CHANGE',
                                 'INFRASTRUCTURE_MAINTENANCE'), false)
),
found AS (
  SELECT pipeline_id, update_id, request_id, place, job_run_id, task_run_id, 'exact' AS method FROM exact
  UNION ALL
  SELECT pipeline_id, update_id, request_id, place, job_run_id, task_run_id, 'nearest' AS method FROM near
  WHERE rank = 1 AND rank_of_update = 1
),
of_request AS (
  -- Retries belong to the run that started the request.
  SELECT *, row_number() OVER (PARTITION BY pipeline_id, request_id
                               ORDER BY CASE WHEN method = 'exact' THEN 0 ELSE 1 END, place) AS choice
  FROM found
),
chosen AS (
  SELECT a.pipeline_id, a.update_id, a.pipeline_name, a.request_id, a.start_ts, a.job_id,
         coalesce(e.job_run_id, q.job_run_id) AS job_run_id, coalesce(e.task_run_id, q.task_run_id) AS task_run_id,
         CASE WHEN e.task_run_id IS NOT NULL THEN 'exact' WHEN q.update_id = a.update_id THEN q.method
              ELSE 'request' END AS method
  FROM attempts a
  JOIN of_request q ON q.pipeline_id = a.pipeline_id AND q.request_id = a.request_id AND q.choice = 1
  LEFT JOIN exact e ON e.pipeline_id = a.pipeline_id AND e.update_id = a.update_id
)
SELECT c.pipeline_id, c.update_id, c.pipeline_name, c.request_id, c.start_ts, c.method,
       abs(unix_micros(j.started_at) - unix_micros(c.start_ts)) / 1e6 AS distance_seconds,
       coalesce(j.job_id, c.job_id) AS job_id, c.job_run_id, c.task_run_id, j.task_key, j.job_name, j.trigger, j.run_start_time, j.run_end_time,
       coalesce(j.result_state, 'UNKNOWN') AS run_status, coalesce(j.pipeline_tags, '{}') AS pipeline_tags,
       coalesce(j.job_tags, '{}') AS job_tags
FROM chosen c
LEFT JOIN job_runs j ON j.pipeline_id = c.pipeline_id AND j.job_run_id = c.job_run_id AND j.task_run_id = c.task_run_id
