-- One row per (pipeline_id, event_id): how a materialized view was refreshed, and why not otherwise.
SELECT pipeline_id, event_id, event_ts, update_id, flow_name, flow_id, dataset_name AS dataset,
       coalesce(planning.technique, 'unknown') AS technique, planning.chosen AS maintenance_type,
       planning.reasons AS reasons, planning.offending_tables AS offending_tables,
       planning.offending_expressions AS offending_expressions,
       planning.target.table_name AS target_table, planning.target.full_size AS target_bytes,
       aggregate(planning.sources, CAST(NULL AS BIGINT), (total, source) ->
         try_add(coalesce(total, CASE WHEN source.full_size IS NOT NULL THEN 0L END), coalesce(source.full_size, 0L)))
         AS source_bytes,
       aggregate(planning.sources, CAST(NULL AS BIGINT), (total, source) ->
         try_add(coalesce(total, CASE WHEN source.change_size IS NOT NULL THEN 0L END),
                 coalesce(source.change_size, 0L))) AS change_bytes,
       planning.techniques AS techniques, planning.issues AS issues
FROM events
WHERE event_type = 'planning_information'
