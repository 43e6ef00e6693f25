-- One row per (pipeline_id, update_id, flow_name, hour_ts): what a flow did in one UTC hour; runs need not end for it.
-- A batch counts in the hour of its last event.
WITH counters AS (
  SELECT pipeline_id, update_id, flow_name, date_trunc('HOUR', last_ts) AS hour_ts,
         try_sum(num_output_rows) AS rows_output, try_sum(num_upserted_rows) AS rows_upserted,
         try_sum(num_deleted_rows) AS rows_deleted, try_sum(num_output_bytes) AS output_bytes,
         try_sum(dropped_records) AS rows_dropped,
         count(CASE WHEN is_done THEN 1 END) AS batches, max(CASE WHEN is_done THEN last_ts END) AS last_batch_ts
  FROM batches
  WHERE last_ts IS NOT NULL
  GROUP BY pipeline_id, update_id, flow_name, date_trunc('HOUR', last_ts)
),
backlogs AS (
  SELECT pipeline_id, update_id, flow_name, date_trunc('HOUR', event_ts) AS hour_ts,
         count(*) AS event_count,
         max(backlog_bytes) AS peak_backlog_bytes,
         max_by(backlog_bytes, CASE WHEN backlog_bytes IS NOT NULL THEN position END) AS last_backlog_bytes,
         max_by(backlog_records, CASE WHEN backlog_records IS NOT NULL THEN position END) AS last_backlog_records,
         max_by(backlog_files, CASE WHEN backlog_files IS NOT NULL THEN position END) AS last_backlog_files,
         max_by(backlog_seconds, CASE WHEN backlog_seconds IS NOT NULL THEN position END) AS last_backlog_seconds
  FROM events
  WHERE is_of_flow AND position.trusted
  GROUP BY pipeline_id, update_id, flow_name, date_trunc('HOUR', event_ts)
)
SELECT b.pipeline_id, b.update_id, b.flow_name, b.hour_ts,
       c.rows_output, c.rows_upserted, c.rows_deleted,
       CASE WHEN c.rows_output IS NOT NULL OR c.rows_upserted IS NOT NULL OR c.rows_deleted IS NOT NULL
            THEN try_add(try_add(coalesce(c.rows_output, 0L), coalesce(c.rows_upserted, 0L)),
                         coalesce(c.rows_deleted, 0L)) END AS rows_written,
       c.output_bytes, c.rows_dropped, coalesce(c.batches, 0L) AS batches, c.last_batch_ts, b.event_count,
       b.peak_backlog_bytes, b.last_backlog_bytes, b.last_backlog_records, b.last_backlog_files,
       b.last_backlog_seconds
FROM backlogs b
LEFT JOIN counters c
  ON c.pipeline_id = b.pipeline_id AND c.update_id = b.update_id AND c.flow_name = b.flow_name
 AND c.hour_ts = b.hour_ts
