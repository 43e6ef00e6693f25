-- One row per (pipeline_id, update_id, flow_name, hour_ts): what an ingestion gateway moved in one UTC hour. Its row and
-- byte counters are deltas and are summed; latencies are point values and never are. An empty emission is a sign of life.
SELECT pipeline_id, update_id, flow_name, date_trunc('HOUR', event_ts) AS hour_ts,
       max_by(dataset_name, CASE WHEN dataset_name IS NOT NULL THEN position END) AS dataset,
       count(*) AS emissions,
       try_sum(num_upserted_rows) AS rows_upserted, try_sum(num_deleted_rows) AS rows_deleted,
       try_sum(num_output_rows) AS rows_output, try_sum(num_output_bytes) AS output_bytes,
       CAST(sum(discovery_latency_ms) AS DOUBLE) / nullif(count(discovery_latency_ms), 0) AS avg_discovery_latency_ms,
       max(discovery_latency_ms) AS max_discovery_latency_ms,
       floor(percentile(discovery_latency_ms, 0.95) * 1000 + 0.5) / 1000 AS p95_discovery_latency_ms,
       CAST(sum(batch_processing_time_ms) AS DOUBLE) / nullif(count(batch_processing_time_ms), 0)
         AS avg_batch_processing_time_ms,
       max(batch_processing_time_ms) AS max_batch_processing_time_ms,
       floor(percentile(batch_processing_time_ms, 0.95) * 1000 + 0.5) / 1000 AS p95_batch_processing_time_ms,
       min(event_time_min) AS event_time_min, max(event_time_max) AS event_time_max,
       max(event_ts) AS last_emission_ts
FROM events
WHERE event_type = 'flow_progress' AND basis = 'delta_sum'
  AND update_id IS NOT NULL AND flow_name IS NOT NULL AND position.trusted
GROUP BY pipeline_id, update_id, flow_name, date_trunc('HOUR', event_ts)
