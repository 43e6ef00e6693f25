-- One row per (pipeline_id, event_id): what the engine says of one micro-batch. EVOLVING: no rule should rest on it.
SELECT pipeline_id, event_id, event_ts, update_id, flow_name, maturity_level,
       stream.name AS stream_name, stream.stream_id AS stream_id, stream.run_id AS run_id, stream.batch_id AS batch_id,
       stream.progress_ts AS progress_ts, stream.trigger_ms AS trigger_ms,
       stream.num_input_rows AS num_input_rows, stream.num_output_rows AS num_output_rows,
       stream.backlog_bytes AS backlog_bytes, stream.backlog_files AS backlog_files,
       stream.state_rows AS state_rows, stream.sink AS sink, stream.sources AS sources,
       stream.is_truncated AS is_truncated
FROM events
WHERE event_type = 'stream_progress'
