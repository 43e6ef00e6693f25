-- Backlogs that grow or do not move
-- By the last 24 hourly readings of each flow.
-- R-NEW-05, R-ROW-06
SELECT p.pipeline_name, b.flow_name, b.trend, b.unit, b.latest_backlog, b.peak_backlog, b.earlier_median,
       b.later_median, b.readings, b.last_hour_ts
FROM backlog_trends b LEFT JOIN pipelines p USING (pipeline_id)
WHERE b.trend IN ('growing', 'stuck')
ORDER BY b.trend DESC, p.pipeline_name, b.flow_name, b.pipeline_id
