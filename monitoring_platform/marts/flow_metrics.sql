-- One row per (pipeline_id, update_id, flow_name): what a flow did in one update.
WITH counted AS (
  SELECT pipeline_id, update_id, flow_name, event_id, event_ts, flow_id, batch_id, flow_status, dataset_name, sink_name,
         position.trusted AS trusted, dropped_records,
         upper(flow_status) AS upper_status,
         row_number() OVER (PARTITION BY pipeline_id, update_id, flow_name
                            ORDER BY position.trusted, event_ts, position.control, position.data, event_id) AS place,
         backlog_bytes, backlog_records, backlog_files, backlog_seconds, event_time_min, event_time_max,
         num_output_rows IS NOT NULL OR num_upserted_rows IS NOT NULL OR num_deleted_rows IS NOT NULL
           OR num_output_bytes IS NOT NULL OR executor_time_ms IS NOT NULL OR executor_cpu_time_ms IS NOT NULL
           OR backlog_bytes IS NOT NULL OR backlog_records IS NOT NULL OR backlog_files IS NOT NULL
           OR backlog_seconds IS NOT NULL AS has_metrics,
         basis
  FROM events
  WHERE is_of_flow
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
         try_sum(executor_cpu_time_ms) AS executor_cpu_time_ms,
         max(CASE WHEN is_done THEN last_ts END) AS last_batch_ts
  FROM batches
  GROUP BY pipeline_id, update_id, flow_name
),
flows AS (
  SELECT pipeline_id, update_id, flow_name,
         max_by(flow_status, CASE WHEN flow_status IS NOT NULL THEN place END) AS status,
         max(CASE WHEN upper_status IN ('COMPLETED', 'FAILED', 'SKIPPED', 'STOPPED', 'EXCLUDED') THEN place END)
           AS end_place,
         max(CASE WHEN flow_status IS NOT NULL THEN place END) AS status_place,
         max_by(CASE WHEN trusted THEN event_ts END, CASE WHEN flow_status IS NOT NULL THEN place END) AS status_ts,
         max_by(flow_id, CASE WHEN flow_id IS NOT NULL THEN place END) AS flow_id,
         max_by(dataset_name, CASE WHEN dataset_name IS NOT NULL THEN place END) AS origin_dataset,
         max_by(sink_name, CASE WHEN sink_name IS NOT NULL THEN place END) AS sink_name,
         min(CASE WHEN trusted THEN event_ts END) AS start_ts,
         min(CASE WHEN trusted AND upper_status IN ('STARTING', 'RUNNING') THEN event_ts END)
           AS active_start_ts,
         max(CASE WHEN trusted THEN event_ts END) AS last_event_ts,
         count(DISTINCT batch_id) AS batch_count,
         count(*) AS event_count,
         array_join(array_sort(collect_set(CASE WHEN has_metrics OR dropped_records IS NOT NULL THEN basis END)), ',')
           AS bases,
         bool_or(has_metrics) AS has_metrics,
         max(backlog_bytes) AS peak_backlog_bytes,
         max_by(backlog_bytes, CASE WHEN backlog_bytes IS NOT NULL THEN place END) AS last_backlog_bytes,
         max(backlog_records) AS peak_backlog_records,
         max_by(backlog_records, CASE WHEN backlog_records IS NOT NULL THEN place END) AS last_backlog_records,
         max(backlog_files) AS peak_backlog_files,
         max_by(backlog_files, CASE WHEN backlog_files IS NOT NULL THEN place END) AS last_backlog_files,
         max(backlog_seconds) AS peak_backlog_seconds,
         max_by(backlog_seconds, CASE WHEN backlog_seconds IS NOT NULL THEN place END) AS last_backlog_seconds,
         min(event_time_min) AS event_time_min,
         max(event_time_max) AS event_time_max
  FROM counted
  GROUP BY pipeline_id, update_id, flow_name
),
definitions AS (
  SELECT pipeline_id, update_id, flow_name, max_by(output_dataset, position) AS output_dataset,
         max_by(definition.output_sink, CASE WHEN definition.output_sink IS NOT NULL THEN position END) AS output_sink
  FROM events
  WHERE event_type = 'flow_definition' AND flow_name IS NOT NULL AND update_id IS NOT NULL
  GROUP BY pipeline_id, update_id, flow_name
)
SELECT f.pipeline_id, f.update_id, f.flow_name, f.flow_id,
       coalesce(d.output_dataset, f.origin_dataset, f.flow_name) AS dataset,
       coalesce(d.output_sink, f.sink_name) AS sink,
       f.status, f.start_ts,
       -- The end is the time of the final status, and only if no later status reopened the flow.
       CASE WHEN f.end_place = f.status_place THEN f.status_ts END AS end_ts,
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
       t.last_batch_ts, f.batch_count, f.event_count, f.has_metrics,
       CASE WHEN f.bases <> '' THEN f.bases END AS metric_basis,
       t.output_overflow, t.upserted_overflow, t.deleted_overflow
FROM flows f
JOIN totals t ON t.pipeline_id = f.pipeline_id AND t.update_id = f.update_id AND t.flow_name = f.flow_name
LEFT JOIN definitions d ON d.pipeline_id = f.pipeline_id AND d.update_id = f.update_id AND d.flow_name = f.flow_name
