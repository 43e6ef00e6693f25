-- One row per (pipeline_id, dataset, expectation): what became of a rule. Completed runs count, and of them those in which
-- the dataset was defined or judged. Datasets go by the last part of their name, because logs spell them differently.
WITH runs AS (
  SELECT pipeline_id, update_id, start_ts,
         row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts, update_id) AS place
  FROM pipeline_runs
  WHERE run_kind = 'normal' AND status = 'COMPLETED'
),
definitions AS (
  SELECT d.pipeline_id,
         replace(regexp_extract(d.dataset, '(`(?:[^`]|``)*`|[^.`]+)$', 1), '`', '') AS dataset,
         d.update_id, r.place, r.start_ts, d.rules
  FROM dataset_definitions d
  JOIN runs r ON r.pipeline_id = d.pipeline_id AND r.update_id = d.update_id
),
rules AS (
  SELECT pipeline_id, dataset, update_id, place, start_ts, explode(rules) AS rule FROM definitions
),
judged AS (
  SELECT e.pipeline_id,
         replace(regexp_extract(e.dataset, '(`(?:[^`]|``)*`|[^.`]+)$', 1), '`', '') AS dataset,
         e.expectation, r.place, r.start_ts, e.evaluated_records
  FROM expectation_results e
  JOIN runs r ON r.pipeline_id = e.pipeline_id AND r.update_id = e.update_id
),
sightings AS (
  SELECT pipeline_id, dataset, rule.name AS expectation, place, start_ts, rule.action AS action, 1 AS is_defined,
         CAST(NULL AS BIGINT) AS evaluated_records
  FROM rules
  UNION ALL
  SELECT pipeline_id, dataset, expectation, place, start_ts, CAST(NULL AS STRING), 0, evaluated_records FROM judged
),
seen AS (
  SELECT pipeline_id, dataset, expectation, place, start_ts, max(action) AS action, max(is_defined) AS is_defined,
         try_sum(evaluated_records) AS evaluated_records
  FROM sightings
  GROUP BY pipeline_id, dataset, expectation, place, start_ts
),
visits AS (
  SELECT pipeline_id, dataset, place, start_ts FROM definitions
  UNION
  SELECT pipeline_id, dataset, place, start_ts FROM seen
),
datasets AS (
  SELECT pipeline_id, dataset, min(place) AS first_place, max(place) AS last_place FROM visits
  GROUP BY pipeline_id, dataset
),
actions AS (
  SELECT pipeline_id, dataset, expectation, place, start_ts, action,
         lag(action) OVER (PARTITION BY pipeline_id, dataset, expectation ORDER BY place) AS previous_action
  FROM seen
  WHERE action IS NOT NULL
),
changes AS (
  SELECT pipeline_id, dataset, expectation,
         max_by(action, place) AS action,
         max_by(previous_action, CASE WHEN action <> previous_action THEN place END) AS previous_action,
         max(CASE WHEN action <> previous_action THEN start_ts END) AS action_changed_at
  FROM actions
  GROUP BY pipeline_id, dataset, expectation
),
lives AS (
  SELECT s.pipeline_id, s.dataset, s.expectation, min(s.place) AS first_place, max(s.place) AS last_place,
         min(s.start_ts) AS first_seen, max(s.start_ts) AS last_seen, max(s.is_defined) AS was_defined,
         max(CASE WHEN s.evaluated_records > 0 THEN s.start_ts END) AS last_evaluated
  FROM seen s
  GROUP BY s.pipeline_id, s.dataset, s.expectation
),
gone AS (
  SELECT l.pipeline_id, l.dataset, l.expectation, min(v.place) AS gone_place, min(v.start_ts) AS gone_at
  FROM lives l
  JOIN visits v ON v.pipeline_id = l.pipeline_id AND v.dataset = l.dataset AND v.place > l.last_place
  GROUP BY l.pipeline_id, l.dataset, l.expectation
),
renames AS (
  -- Where exactly one rule of a dataset goes and exactly one comes in the same run, it has a new name.
  SELECT g.pipeline_id, g.dataset, g.gone_place, max(g.expectation) AS old_name, max(n.expectation) AS new_name
  FROM gone g
  JOIN lives n ON n.pipeline_id = g.pipeline_id AND n.dataset = g.dataset AND n.first_place = g.gone_place
  GROUP BY g.pipeline_id, g.dataset, g.gone_place
  HAVING count(DISTINCT g.expectation) = 1 AND count(DISTINCT n.expectation) = 1
)
SELECT l.pipeline_id, l.dataset, l.expectation, l.first_seen, l.last_seen, l.last_evaluated,
       c.action, c.previous_action, c.action_changed_at, g.gone_at, n.new_name AS renamed_to,
       CASE WHEN n.new_name IS NOT NULL THEN 'renamed'
            WHEN g.gone_at IS NOT NULL THEN 'vanished'
            WHEN l.last_evaluated IS NULL AND l.was_defined = 1 THEN 'never_evaluated'
            WHEN c.action_changed_at IS NOT NULL THEN 'action_changed'
            ELSE 'active' END AS state
FROM lives l
LEFT JOIN changes c ON c.pipeline_id = l.pipeline_id AND c.dataset = l.dataset AND c.expectation = l.expectation
LEFT JOIN gone g ON g.pipeline_id = l.pipeline_id AND g.dataset = l.dataset AND g.expectation = l.expectation
LEFT JOIN renames n
  ON n.pipeline_id = g.pipeline_id AND n.dataset = g.dataset AND n.gone_place = g.gone_place
 AND n.old_name = g.expectation
