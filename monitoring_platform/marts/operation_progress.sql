-- One row per (pipeline_id, event_id): how far a long operation beside the flows has come.
SELECT pipeline_id, event_id, event_ts, update_id, flow_name, dataset_name AS dataset,
       operation.type AS operation_type, operation.status AS status,
       operation.duration_ms AS duration_ms, operation.progress_percent AS progress_percent,
       operation.estimated_completion_ms AS estimated_completion_ms,
       operation.source_path AS source_path, operation.num_files_listed AS num_files_listed,
       operation.target_table AS target_table, operation.snapshot_ts AS snapshot_ts,
       operation.snapshot_reason AS snapshot_reason
FROM events
WHERE event_type = 'operation_progress'
