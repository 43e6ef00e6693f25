-- One row per (pipeline_id, dataset): the state and freshness of a table that a pipeline writes.
WITH writes AS (
  SELECT f.pipeline_id, f.dataset, f.flow_name, f.update_id, upper(f.status) AS status, f.end_ts, f.last_event_ts,
         f.rows_written, r.start_ts,
         row_number() OVER (PARTITION BY f.pipeline_id, f.dataset ORDER BY r.start_ts DESC, f.update_id DESC,
                            f.flow_name) AS age
  FROM flow_metrics f
  JOIN pipeline_runs r ON r.pipeline_id = f.pipeline_id AND r.update_id = f.update_id
  WHERE r.run_kind = 'normal' AND f.dataset IS NOT NULL AND f.sink IS NULL
)
SELECT pipeline_id, dataset,
       max(CASE WHEN age = 1 THEN update_id END) AS latest_update_id,
       max(CASE WHEN age = 1 THEN status END) AS latest_status,
       max(CASE WHEN age = 1 THEN start_ts END) AS latest_run_ts,
       max_by(update_id, CASE WHEN status = 'COMPLETED' THEN struct(start_ts, update_id) END) AS latest_success_update_id,
       max(CASE WHEN status = 'COMPLETED' THEN coalesce(end_ts, last_event_ts) END) AS latest_success_ts,
       max_by(update_id, CASE WHEN status = 'FAILED' THEN struct(start_ts, update_id) END) AS latest_failure_update_id,
       max(CASE WHEN status = 'FAILED' THEN coalesce(end_ts, last_event_ts) END) AS latest_failure_ts,
       max(CASE WHEN rows_written > 0 THEN last_event_ts END) AS latest_change_ts,
       array_sort(collect_set(flow_name)) AS flow_names
FROM writes
GROUP BY pipeline_id, dataset
