-- More waits for a flow than promised, by what it reported last: in the newest complete hour, or at the end of a run.
WITH newest AS (
  SELECT * FROM backlogs
  QUALIFY row_number() OVER (PARTITION BY pipeline_id, flow_name, unit ORDER BY hour_ts DESC, update_id DESC) = 1
      AND hour_ts > max(hour_ts) OVER (PARTITION BY pipeline_id) - INTERVAL 1 DAY  -- a flow that is gone reports no more
)
SELECT pipeline_id, flow_name AS subject, hour_ts AS since, update_id, value AS backlog, target AS wanted, unit,
       format('{} has {:.0f} {} waiting, at most {:.0f} wanted', flow_name, CAST(value AS DOUBLE), unit, target) AS title
FROM newest JOIN limits USING (pipeline_id)
WHERE value > target
QUALIFY row_number() OVER (PARTITION BY pipeline_id, flow_name ORDER BY value / target DESC, unit) = 1
