-- Events with what many questions need: their place in the order inside a pipeline: time, control plane, data plane, id; nulls last. Clocks in the
-- far future are not trusted and come first.
SELECT *,
       struct(
         NOT coalesce(array_contains(flags, 'future_timestamp'), false) AS trusted,
         event_ts AS ts,
         coalesce(sequence.control_plane_seq_no, 9223372036854775807) AS control,
         coalesce(sequence.data_plane_id.seq_no, 9223372036854775807) AS data,
         event_id AS id
       ) AS position,
       -- Whether a row reports on a real flow of an update: nameless rows and the vendor's placeholder are no flows.
       event_type = 'flow_progress' AND update_id IS NOT NULL
         AND flow_name IS NOT NULL AND flow_name <> 'pipelines.flowTimeMetrics.missingFlowName' AS is_of_flow,
       -- What its counters are: a gateway's METRICS row and a row without batch_id stand for themselves, all others are
       -- running counts of (flow, batch_id), of which the largest counts.
       CASE WHEN level = 'METRICS' AND upper(pipeline_type) = 'INGESTION_GATEWAY' THEN 'delta_sum'
            WHEN batch_id IS NULL THEN 'event_sum'
            ELSE 'batch_max' END AS basis
FROM raw_events
