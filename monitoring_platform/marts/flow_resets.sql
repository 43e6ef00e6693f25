-- One row per (pipeline_id, update_id, flow_name): a flow_id that differs from the flow's update before: state was lost.
WITH named AS (
  SELECT f.pipeline_id, f.update_id, f.flow_name, f.flow_id, r.start_ts, coalesce(r.is_full_refresh, false) AS is_full,
         lag(f.flow_id) OVER (PARTITION BY f.pipeline_id, f.flow_name ORDER BY r.start_ts, f.update_id)
           AS previous_flow_id,
         lag(f.update_id) OVER (PARTITION BY f.pipeline_id, f.flow_name ORDER BY r.start_ts, f.update_id)
           AS previous_update_id,
         lag(r.start_ts) OVER (PARTITION BY f.pipeline_id, f.flow_name ORDER BY r.start_ts, f.update_id)
           AS previous_start_ts
  FROM flow_metrics f
  JOIN pipeline_runs r ON r.pipeline_id = f.pipeline_id AND r.update_id = f.update_id
  WHERE f.flow_id IS NOT NULL AND r.run_kind = 'normal'
),
planned AS (
  SELECT pipeline_id, update_id, flow_name, max(CASE WHEN technique = 'full' THEN 1 ELSE 0 END) AS is_recompute
  FROM refresh_decisions
  WHERE update_id IS NOT NULL AND flow_name IS NOT NULL
  GROUP BY pipeline_id, update_id, flow_name
)
SELECT n.pipeline_id, n.update_id, n.flow_name, n.start_ts AS reset_at, n.previous_update_id, n.previous_flow_id,
       n.flow_id,
       CASE WHEN n.is_full THEN 'full_refresh' WHEN p.is_recompute = 1 THEN 'recompute' ELSE 'reset' END AS explanation
FROM named n
LEFT JOIN planned p ON p.pipeline_id = n.pipeline_id AND p.update_id = n.update_id AND p.flow_name = n.flow_name
WHERE n.previous_flow_id <> n.flow_id AND n.previous_start_ts >= n.start_ts - INTERVAL 35 DAYS
