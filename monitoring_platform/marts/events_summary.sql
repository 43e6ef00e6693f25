-- One row per (pipeline_id, update_id): the 16 columns that Lakehouse Plumber users know, with right values.
SELECT pipeline_name, pipeline_id, update_id,
       status AS run_status,
       cause AS trigger_cause,
       is_full_refresh,
       dbr_version,
       CASE WHEN serverless THEN 'Serverless' WHEN NOT serverless THEN 'Classic' END AS compute_type,
       start_ts AS run_start_time,
       end_ts AS run_end_time,
       floor(duration_seconds / 60 * 100 + 0.5) / 100 AS duration_minutes,
       flows_with_metrics AS tables_processed,
       rows_upserted AS total_upserted_rows,
       rows_deleted AS total_deleted_rows,
       rows_written AS total_rows_affected,
       rows_dropped AS total_dropped_records
FROM pipeline_runs
