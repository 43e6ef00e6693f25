-- Classic clusters that are hardly used
-- Share of busy task slots over 7 days, weighted by the length of each reading; less than 30 %. Serverless pipelines
-- have no readings and are not judged.
-- R-CLU-01, R-COST-03
SELECT p.pipeline_name, round(100 * sum(c.avg_task_slot_utilization * coalesce(c.summary_duration_ms, 1))
                              / sum(coalesce(c.summary_duration_ms, 1)), 1) AS utilisation_pct,
       round(avg(c.num_executors), 1) AS avg_executors, round(avg(c.avg_num_queued_tasks), 1) AS avg_queued_tasks,
       count(*) AS readings, max(c.event_ts) AS last_reading, c.pipeline_id
FROM cluster_resources c LEFT JOIN pipelines p USING (pipeline_id)
WHERE c.avg_task_slot_utilization IS NOT NULL
  AND c.event_ts > (SELECT max(last_event_ts) - INTERVAL 7 DAY FROM pipelines)
GROUP BY c.pipeline_id, p.pipeline_name
HAVING utilisation_pct < 30
ORDER BY utilisation_pct, p.pipeline_name, c.pipeline_id
