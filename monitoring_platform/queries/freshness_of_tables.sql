-- How old the data of each table is
-- Hours from the latest successful write to the newest event of the fleet, oldest first; never written comes first.
-- R-PEER-21, R-SLO-06
SELECT t.dataset AS table_name, p.pipeline_name, t.latest_success_ts,
       round(epoch((SELECT max(last_event_ts) FROM pipelines) - t.latest_success_ts) / 3600, 1) AS hours_old,
       t.latest_status, t.pipeline_id
FROM table_status t LEFT JOIN pipelines p USING (pipeline_id)
ORDER BY t.latest_success_ts NULLS FIRST, t.dataset, t.pipeline_id
