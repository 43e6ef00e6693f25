-- One row per (pipeline_id, flow_name, since_update_id): a view that used to refresh incrementally and then recomputed in
-- full. Full refreshes that were asked for and a first build are none; NO_OP neither begins nor ends an episode.
WITH decisions AS (
  SELECT d.pipeline_id, d.flow_name, d.update_id, d.technique, d.reasons, d.offending_tables, d.offending_expressions,
         d.event_ts, r.start_ts, f.flow_id,
         CAST(floor(f.duration_seconds * 1000000 + 0.5) AS BIGINT) AS duration_micros,
         row_number() OVER (PARTITION BY d.pipeline_id, d.flow_name, d.update_id
                            ORDER BY d.event_ts DESC, d.event_id DESC) AS age
  FROM refresh_decisions d
  JOIN pipeline_runs r ON r.pipeline_id = d.pipeline_id AND r.update_id = d.update_id
  LEFT JOIN flow_metrics f
    ON f.pipeline_id = d.pipeline_id AND f.update_id = d.update_id AND f.flow_name = d.flow_name
  WHERE d.flow_name IS NOT NULL AND d.technique IN ('full', 'incremental')
    AND r.run_kind = 'normal' AND NOT coalesce(r.is_full_refresh, false)
),
ordered AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id, flow_name ORDER BY start_ts, update_id) AS place,
         count(CASE WHEN technique = 'incremental' THEN 1 END) OVER (
           PARTITION BY pipeline_id, flow_name ORDER BY start_ts, update_id
           ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS increments_before,
         lag(flow_id) OVER (PARTITION BY pipeline_id, flow_name ORDER BY start_ts, update_id) AS previous_flow_id
  FROM decisions
  WHERE age = 1
),
full_runs AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id, flow_name, increments_before
                               ORDER BY start_ts, update_id) AS place_in_episode
  FROM ordered
  WHERE technique = 'full' AND increments_before > 0
),
episodes AS (
  SELECT pipeline_id, flow_name, increments_before,
         max(CASE WHEN place_in_episode = 1 THEN update_id END) AS since_update_id,
         min(start_ts) AS since_ts, max(start_ts) AS last_full_ts, min(place) AS first_place,
         count(*) AS full_runs,
         max(CASE WHEN place_in_episode = 1 THEN reasons END) AS reasons,
         max(CASE WHEN place_in_episode = 1 THEN offending_tables END) AS offending_tables,
         max(CASE WHEN place_in_episode = 1 THEN offending_expressions END) AS offending_expressions,
         bool_or(CASE WHEN place_in_episode = 1 THEN flow_id <> previous_flow_id END) AS flow_id_changed,
         count(duration_micros) AS timed_runs,
         sum(duration_micros) AS full_micros
  FROM full_runs
  GROUP BY pipeline_id, flow_name, increments_before
),
usual AS (
  SELECT e.pipeline_id, e.flow_name, e.increments_before,
         floor(percentile(o.duration_micros, 0.5) + 0.5) / 1e6 AS usual_seconds
  FROM episodes e
  JOIN ordered o
    ON o.pipeline_id = e.pipeline_id AND o.flow_name = e.flow_name AND o.technique = 'incremental'
   AND o.place < e.first_place
  GROUP BY e.pipeline_id, e.flow_name, e.increments_before
),
ends AS (
  SELECT e.pipeline_id, e.flow_name, e.increments_before, min(o.start_ts) AS until_ts
  FROM episodes e
  JOIN ordered o
    ON o.pipeline_id = e.pipeline_id AND o.flow_name = e.flow_name AND o.technique = 'incremental'
   AND o.place > e.first_place
  GROUP BY e.pipeline_id, e.flow_name, e.increments_before
)
SELECT e.pipeline_id, e.flow_name, e.since_update_id, e.since_ts, n.until_ts, n.until_ts IS NULL AS is_current,
       e.last_full_ts, e.full_runs, e.reasons, e.offending_tables, e.offending_expressions, e.flow_id_changed,
       u.usual_seconds AS usual_incremental_seconds,
       (e.full_micros / 1e6 - e.timed_runs * u.usual_seconds) / 60 AS extra_minutes
FROM episodes e
LEFT JOIN usual u
  ON u.pipeline_id = e.pipeline_id AND u.flow_name = e.flow_name AND u.increments_before = e.increments_before
LEFT JOIN ends n
  ON n.pipeline_id = e.pipeline_id AND n.flow_name = e.flow_name AND n.increments_before = e.increments_before
