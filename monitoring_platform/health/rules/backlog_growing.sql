-- The backlog of a flow grew in each of the last complete hours, to a multiple of what it was.
WITH hours AS (
  SELECT pipeline_id, flow_name, hour_ts,
         coalesce(max(last_backlog_bytes), max(last_backlog_records), max(last_backlog_files), max(last_backlog_seconds))
           AS backlog
  FROM flow_hours JOIN limits USING (pipeline_id) CROSS JOIN clock
  WHERE hour_ts >= now - to_seconds(3600 * (hours + 4))
  GROUP BY pipeline_id, flow_name, hour_ts
),
placed AS (
  SELECT *, row_number() OVER one_flow AS place, lag(backlog) OVER (PARTITION BY pipeline_id, flow_name ORDER BY hour_ts)
           AS previous
  FROM hours WHERE backlog IS NOT NULL
  WINDOW one_flow AS (PARTITION BY pipeline_id, flow_name ORDER BY hour_ts DESC)
)
SELECT pipeline_id, flow_name AS subject, min(hour_ts) AS since, min_by(previous, hour_ts) AS backlog_before,
       max_by(backlog, hour_ts) AS backlog,
       format('backlog of {} grows since {:.0f} hours', flow_name, any_value(l.hours)) AS title
FROM placed p JOIN limits l USING (pipeline_id) CROSS JOIN clock
WHERE p.place <= l.hours
GROUP BY pipeline_id, flow_name
HAVING count(*) FILTER (backlog > previous) >= any_value(l.hours) AND max(hour_ts) >= any_value(now) - INTERVAL 3 HOURS
   AND max_by(backlog, hour_ts) >= any_value(l.times) * greatest(min_by(previous, hour_ts), 1)
