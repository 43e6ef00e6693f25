-- One row per fingerprint: the same root error in however many runs and pipelines.
SELECT fingerprint,
       max_by(error_class, struct(failed_at, update_id)) AS error_class,
       max_by(sql_state, struct(failed_at, update_id)) AS sql_state,
       max_by(exception_class, struct(failed_at, update_id)) AS exception_class,
       max_by(message, struct(failed_at, update_id)) AS latest_message,
       max_by(pipeline_id, struct(failed_at, update_id)) AS latest_pipeline_id,
       max_by(update_id, struct(failed_at, update_id)) AS latest_update_id,
       count(*) AS failures,
       count(DISTINCT pipeline_id) AS pipeline_count,
       array_sort(collect_set(pipeline_id)) AS pipeline_ids,
       array_sort(collect_set(flow_name)) AS flow_names,
       min(failed_at) AS first_seen, max(failed_at) AS last_seen
FROM failures
WHERE fingerprint IS NOT NULL AND kind = 'failed'
GROUP BY fingerprint
