-- One objective at one request, deadline or hour, judged by the targets of now. A failed request meets nothing.
WITH lowest AS (
  SELECT pipeline_id, update_id, min(pass_rate_pct) AS pass_rate_pct FROM expectation_results GROUP BY ALL
),
of_requests AS (
  SELECT t.pipeline_id, t.objective, r.request_id AS occurrence_id, r.end_ts AS at, r.pipeline_name,
         r.last_update_id AS update_id, t.target, t.unit,
         CASE t.objective WHEN 'duration' THEN r.duration_seconds / 60 WHEN 'pass_rate' THEN q.pass_rate_pct
                          ELSE CAST(r.outcome = 'COMPLETED' AS DOUBLE) END AS value,
         r.outcome = 'COMPLETED' AND CASE t.objective WHEN 'duration' THEN value <= t.target ELSE value >= t.target END AS met
  FROM targets t JOIN ended_requests r USING (pipeline_id)
  LEFT JOIN lowest q ON q.pipeline_id = r.pipeline_id AND q.update_id = r.last_update_id
  WHERE t.objective IN ('success', 'pass_rate') OR t.objective = 'duration' AND NOT coalesce(r.continuous, false)
),
of_days AS (
  SELECT d.pipeline_id, 'ready_by' AS objective, CAST(d.day AS VARCHAR) AS occurrence_id, d.due_at AS at, d.pipeline_name,
         s.update_id, CAST(epoch(d.due_at) AS DOUBLE) AS target, 'epoch seconds' AS unit,
         CAST(epoch(s.end_ts) AS DOUBLE) AS value, coalesce(s.end_ts <= d.due_at, false) AS met
  FROM deadlines d JOIN refreshed r USING (pipeline_id)
  ASOF LEFT JOIN successes s ON s.pipeline_id = d.pipeline_id AND s.end_ts >= d.window_start
  WHERE d.window_start >= r.known_since
),
of_hours AS (
  SELECT pipeline_id, 'backlog' AS objective, strftime(hour_ts, '%Y-%m-%dT%H') AS occurrence_id,
         hour_ts + INTERVAL 1 HOUR AS at, pipeline_name, update_id, target, unit, value, value <= target AS met
  FROM backlogs
  QUALIFY row_number() OVER (PARTITION BY pipeline_id, hour_ts
                             ORDER BY value / target DESC, flow_name, unit, update_id) = 1
)
SELECT o.* FROM (FROM of_requests UNION ALL BY NAME FROM of_days UNION ALL BY NAME FROM of_hours) o
JOIN slo_since s USING (pipeline_id, objective) CROSS JOIN clock
WHERE o.at > s.since AND o.at <= now
