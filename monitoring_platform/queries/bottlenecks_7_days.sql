-- Bottlenecks of 7 days
-- Completed runs of each flow, slowest on average first. avg_interval_sec is the time from one completion to the next;
-- it measures the schedule, avg_duration (seconds) measures the work.
-- R-FLOW-08
WITH completed AS (
  SELECT f.pipeline_id, r.pipeline_name, f.flow_name, f.rows_written, f.duration_seconds,
         epoch(f.end_ts - lag(f.end_ts) OVER flow) AS interval_sec
  FROM flow_metrics f JOIN pipeline_runs r USING (pipeline_id, update_id)
  WHERE r.run_kind = 'normal' AND f.status = 'COMPLETED'
    AND f.end_ts > (SELECT max(last_event_ts) - INTERVAL 7 DAY FROM pipelines)
  WINDOW flow AS (PARTITION BY f.pipeline_id, f.flow_name ORDER BY f.end_ts)
)
SELECT flow_name, count(*) AS total_runs, avg(rows_written) AS avg_rows, avg(interval_sec) AS avg_interval_sec,
       avg(duration_seconds) AS avg_duration, max(pipeline_name) AS pipeline_name, pipeline_id
FROM completed
GROUP BY pipeline_id, flow_name
ORDER BY avg_duration DESC NULLS LAST, pipeline_id, flow_name
