-- What one flow counted in one batch, by the counting rule of views/events.sql: the totals of all counters rest on this.
WITH progress AS (
  SELECT pipeline_id, update_id, flow_name, event_id, position, batch_id,
         num_output_rows, num_upserted_rows, num_deleted_rows, num_output_bytes, dropped_records,
         executor_time_ms, executor_cpu_time_ms,
         -- Not every row of a flow has its flow_id: fill it in where the update knows one only.
         coalesce(flow_id, CASE WHEN min(flow_id) OVER f = max(flow_id) OVER f THEN max(flow_id) OVER f END) AS flow_id,
         basis
  FROM events
  WHERE is_of_flow
  WINDOW f AS (PARTITION BY pipeline_id, update_id, flow_name)
)
SELECT pipeline_id, update_id, flow_name, basis,
       CASE WHEN basis = 'batch_max' THEN coalesce(flow_id, '') ELSE event_id END AS counter_of,
       CASE WHEN basis = 'batch_max' THEN batch_id END AS counter_batch,
       max(CASE WHEN position.trusted THEN position.ts END) AS last_ts,
       max(num_output_rows) AS num_output_rows,
       max(num_upserted_rows) AS num_upserted_rows,
       max(num_deleted_rows) AS num_deleted_rows,
       max(num_output_bytes) AS num_output_bytes,
       max(dropped_records) AS dropped_records,
       max(executor_time_ms) AS executor_time_ms,
       max(executor_cpu_time_ms) AS executor_cpu_time_ms,
       -- A batch is done when something of it is counted; a gateway's emission is a sign of life even if it is empty.
       bool_or(basis = 'delta_sum' OR batch_id IS NOT NULL AND (
         num_output_rows IS NOT NULL OR num_upserted_rows IS NOT NULL OR num_deleted_rows IS NOT NULL
         OR num_output_bytes IS NOT NULL OR dropped_records IS NOT NULL
         OR executor_time_ms IS NOT NULL OR executor_cpu_time_ms IS NOT NULL)) AS is_done
FROM progress
GROUP BY 1, 2, 3, 4, 5, 6
