-- A view that used to refresh incrementally was recomputed in full in its newest runs. A first build is none.
WITH decisions AS (
  SELECT d.*, r.start_ts,
         row_number() OVER (PARTITION BY d.pipeline_id, d.flow_name ORDER BY r.start_ts DESC, d.event_ts DESC) AS place
  FROM refresh_decisions d JOIN pipeline_runs r USING (pipeline_id, update_id)
  WHERE r.run_kind = 'normal' AND r.status = 'COMPLETED' AND NOT coalesce(r.is_full_refresh, false)
    AND d.technique IN ('full', 'incremental') AND d.flow_name IS NOT NULL
),
since_increment AS (
  SELECT pipeline_id, flow_name, min(place) FILTER (technique = 'incremental') - 1 AS full_runs FROM decisions GROUP BY ALL
)
SELECT d.pipeline_id, d.flow_name AS subject, min(d.start_ts) AS since, any_value(s.full_runs) AS full_runs,
       max_by(d.update_id, d.start_ts) AS update_id, max_by(CAST(d.reasons AS VARCHAR), d.start_ts) AS reasons,
       max_by(CAST(d.offending_tables AS VARCHAR), d.start_ts) AS offending_tables,
       format('{} is recomputed in full since {} runs', d.flow_name, any_value(s.full_runs)) AS title
FROM decisions d JOIN since_increment s USING (pipeline_id, flow_name) JOIN limits l USING (pipeline_id)
WHERE d.place <= s.full_runs AND s.full_runs >= l.runs
GROUP BY d.pipeline_id, d.flow_name
