-- One row per (pipeline_id, update_id, flow_name): what a flow did in one update.
WITH progress AS (
  SELECT pipeline_id, update_id, flow_name, event_id, event_ts, level, batch_id, flow_status, dataset_name,
         pipeline_type, sequence,
         num_output_rows, num_upserted_rows, num_deleted_rows, num_output_bytes, dropped_records,
         executor_time_ms, executor_cpu_time_ms, backlog_bytes, backlog_records, backlog_files, backlog_seconds,
         event_time_min, event_time_max,
         -- Not every row of a flow has its flow_id: fill it in where the update knows one only.
         coalesce(flow_id, CASE WHEN min(flow_id) OVER f = max(flow_id) OVER f THEN max(flow_id) OVER f END) AS flow_id,
         struct(
           NOT coalesce(array_contains(flags, 'future_timestamp'), false) AS trusted,
           event_ts AS ts,
           coalesce(sequence.control_plane_seq_no, 9223372036854775807) AS control,
           coalesce(sequence.data_plane_id.seq_no, 9223372036854775807) AS data,
           event_id AS id
         ) AS position
  FROM events
  WHERE event_type = 'flow_progress' AND update_id IS NOT NULL
    AND flow_name IS NOT NULL AND flow_name <> 'pipelines.flowTimeMetrics.missingFlowName'
  WINDOW f AS (PARTITION BY pipeline_id, update_id, flow_name)
),
counted AS (
  -- What one number is a running count of: a gateway's METRICS row and a row without batch stand for themselves.
  SELECT *,
         CASE WHEN level = 'METRICS' AND upper(pipeline_type) = 'INGESTION_GATEWAY' THEN 'delta_sum'
              WHEN batch_id IS NULL THEN 'event_sum'
              ELSE 'batch_max' END AS basis,
         num_output_rows IS NOT NULL OR num_upserted_rows IS NOT NULL OR num_deleted_rows IS NOT NULL
           OR num_output_bytes IS NOT NULL OR executor_time_ms IS NOT NULL OR executor_cpu_time_ms IS NOT NULL
           OR backlog_bytes IS NOT NULL OR backlog_records IS NOT NULL OR backlog_files IS NOT NULL
           OR backlog_seconds IS NOT NULL AS has_metrics
  FROM progress
),
batches AS (
  SELECT pipeline_id, update_id, flow_name,
         CASE WHEN basis = 'batch_max' THEN coalesce(flow_id, '') ELSE event_id END AS counter_of,
         CASE WHEN basis = 'batch_max' THEN batch_id END AS counter_batch,
         max(num_output_rows) AS num_output_rows,
         max(num_upserted_rows) AS num_upserted_rows,
         max(num_deleted_rows) AS num_deleted_rows,
         max(num_output_bytes) AS num_output_bytes,
         max(dropped_records) AS dropped_records,
         max(executor_time_ms) AS executor_time_ms,
         max(executor_cpu_time_ms) AS executor_cpu_time_ms
  FROM counted
  GROUP BY 1, 2, 3, 4, 5
),
totals AS (
  SELECT pipeline_id, update_id, flow_name,
         try_sum(num_output_rows) AS rows_output,
         try_sum(num_upserted_rows) AS rows_upserted,
         try_sum(num_deleted_rows) AS rows_deleted,
         count(num_output_rows) > 0 AND try_sum(num_output_rows) IS NULL AS output_overflow,
         count(num_upserted_rows) > 0 AND try_sum(num_upserted_rows) IS NULL AS upserted_overflow,
         count(num_deleted_rows) > 0 AND try_sum(num_deleted_rows) IS NULL AS deleted_overflow,
         try_sum(num_output_bytes) AS output_bytes,
         try_sum(dropped_records) AS rows_dropped,
         try_sum(executor_time_ms) AS executor_time_ms,
         try_sum(executor_cpu_time_ms) AS executor_cpu_time_ms
  FROM batches
  GROUP BY pipeline_id, update_id, flow_name
),
flows AS (
  SELECT pipeline_id, update_id, flow_name,
         max_by(flow_status, CASE WHEN flow_status IS NOT NULL THEN position END) AS status,
         max(CASE WHEN upper(flow_status) IN ('COMPLETED', 'FAILED', 'SKIPPED', 'STOPPED', 'EXCLUDED')
                  THEN position END) AS end_position,
         max(CASE WHEN flow_status IS NOT NULL THEN position END) AS status_position,
         max_by(flow_id, CASE WHEN flow_id IS NOT NULL THEN position END) AS flow_id,
         max_by(dataset_name, CASE WHEN dataset_name IS NOT NULL THEN position END) AS origin_dataset,
         min(CASE WHEN position.trusted THEN event_ts END) AS start_ts,
         min(CASE WHEN position.trusted AND upper(flow_status) IN ('STARTING', 'RUNNING') THEN event_ts END)
           AS active_start_ts,
         max(CASE WHEN position.trusted THEN event_ts END) AS last_event_ts,
         count(DISTINCT batch_id) AS batch_count,
         count(*) AS event_count,
         array_join(array_sort(collect_set(CASE WHEN has_metrics OR dropped_records IS NOT NULL THEN basis END)), ',')
           AS bases,
         bool_or(has_metrics) AS has_metrics,
         max(backlog_bytes) AS peak_backlog_bytes,
         max_by(backlog_bytes, CASE WHEN backlog_bytes IS NOT NULL THEN position END) AS last_backlog_bytes,
         max(backlog_records) AS peak_backlog_records,
         max_by(backlog_records, CASE WHEN backlog_records IS NOT NULL THEN position END) AS last_backlog_records,
         max(backlog_files) AS peak_backlog_files,
         max_by(backlog_files, CASE WHEN backlog_files IS NOT NULL THEN position END) AS last_backlog_files,
         max(backlog_seconds) AS peak_backlog_seconds,
         max_by(backlog_seconds, CASE WHEN backlog_seconds IS NOT NULL THEN position END) AS last_backlog_seconds,
         min(event_time_min) AS event_time_min,
         max(event_time_max) AS event_time_max
  FROM counted
  GROUP BY pipeline_id, update_id, flow_name
),
definitions AS (
  SELECT pipeline_id, update_id, flow_name, max_by(output_dataset, struct(event_ts, event_id)) AS output_dataset
  FROM events
  WHERE output_dataset IS NOT NULL AND flow_name IS NOT NULL AND update_id IS NOT NULL
  GROUP BY pipeline_id, update_id, flow_name
)
SELECT f.pipeline_id, f.update_id, f.flow_name, f.flow_id,
       coalesce(d.output_dataset, f.origin_dataset, f.flow_name) AS dataset,
       f.status, f.start_ts,
       -- The end is the time of the final status, and only if no later status reopened the flow.
       CASE WHEN f.end_position = f.status_position AND f.end_position.trusted THEN f.end_position.ts END AS end_ts,
       f.last_event_ts,
       (unix_micros(f.last_event_ts) - unix_micros(f.start_ts)) / 1e6 AS duration_seconds,
       CASE WHEN f.last_event_ts >= f.active_start_ts
            THEN (unix_micros(f.last_event_ts) - unix_micros(f.active_start_ts)) / 1e6 END AS active_seconds,
       t.rows_output, t.rows_upserted, t.rows_deleted,
       CASE WHEN t.rows_output IS NOT NULL OR t.rows_upserted IS NOT NULL OR t.rows_deleted IS NOT NULL
            THEN try_add(try_add(coalesce(t.rows_output, 0L), coalesce(t.rows_upserted, 0L)),
                         coalesce(t.rows_deleted, 0L)) END AS rows_written,
       t.output_bytes, t.rows_dropped, t.executor_time_ms, t.executor_cpu_time_ms,
       f.peak_backlog_bytes, f.last_backlog_bytes, f.peak_backlog_records, f.last_backlog_records,
       f.peak_backlog_files, f.last_backlog_files, f.peak_backlog_seconds, f.last_backlog_seconds,
       f.event_time_min, f.event_time_max,
       f.batch_count, f.event_count, f.has_metrics,
       CASE WHEN f.bases <> '' THEN f.bases END AS metric_basis,
       t.output_overflow, t.upserted_overflow, t.deleted_overflow
FROM flows f
JOIN totals t ON t.pipeline_id = f.pipeline_id AND t.update_id = f.update_id AND t.flow_name = f.flow_name
LEFT JOIN definitions d ON d.pipeline_id = f.pipeline_id AND d.update_id = f.update_id AND d.flow_name = f.flow_name
