-- Views that used to refresh incrementally and now recompute
-- With the cause and the time that it added. A first build is none.
-- R-NEW-07
SELECT p.pipeline_name, w.flow_name, w.since_ts, w.full_runs, w.reasons, w.offending_tables, w.offending_expressions,
       w.flow_id_changed, w.usual_incremental_seconds, round(w.extra_minutes, 1) AS extra_minutes, w.since_update_id
FROM recompute_watch w LEFT JOIN pipelines p USING (pipeline_id)
WHERE w.is_current
ORDER BY w.extra_minutes DESC NULLS LAST, w.since_ts, w.pipeline_id, w.flow_name
