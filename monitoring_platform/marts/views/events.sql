-- Events with their place in the order inside a pipeline: time, control plane, data plane, id; nulls last. Clocks in the
-- far future are not trusted and come first.
SELECT *,
       struct(
         NOT coalesce(array_contains(flags, 'future_timestamp'), false) AS trusted,
         event_ts AS ts,
         coalesce(sequence.control_plane_seq_no, 9223372036854775807) AS control,
         coalesce(sequence.data_plane_id.seq_no, 9223372036854775807) AS data,
         event_id AS id
       ) AS position
FROM raw_events
