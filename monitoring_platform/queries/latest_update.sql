-- Latest update of each pipeline, and the latest that finished
-- The newest may be a retry that is running: it would hide that the attempt before failed. Internal runs are left out.
-- R-RUN-05
WITH runs AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, update_id DESC) AS age
  FROM pipeline_runs WHERE run_kind = 'normal'
),
finished AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, update_id DESC) AS age
  FROM pipeline_runs WHERE run_kind = 'normal' AND end_ts IS NOT NULL
)
SELECT r.pipeline_name, r.update_id AS latest_update_id, r.status AS latest_status, r.start_ts AS latest_start,
       f.update_id AS finished_update_id, f.status AS finished_status, f.end_ts AS finished_at, r.pipeline_id
FROM runs r LEFT JOIN finished f ON f.pipeline_id = r.pipeline_id AND f.age = 1
WHERE r.age = 1
ORDER BY r.pipeline_name, r.pipeline_id
