-- An expectation was not in the newest runs that wrote its dataset and has no successor, or is defined and never evaluated.
WITH names AS (  -- datasets go by the last part of their name, because logs spell them differently
  SELECT dataset, lower(replace(regexp_extract(dataset, '(`(?:[^`]|``)*`|[^.`]+)$', 1), '`', '')) AS bare_name
  FROM (SELECT dataset FROM flow_metrics UNION SELECT dataset FROM expectation_results
        UNION SELECT dataset FROM dataset_definitions)
),
runs AS (
  SELECT r.pipeline_id, r.update_id, r.start_ts, n.bare_name AS dataset,
         bool_or(f.rows_written > 0) AS has_rows
  FROM flow_metrics f JOIN names n USING (dataset) JOIN pipeline_runs r USING (pipeline_id, update_id)
  WHERE r.run_kind = 'normal' AND r.status = 'COMPLETED'
  GROUP BY ALL
),
placed AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id, dataset ORDER BY start_ts DESC, update_id DESC) AS place FROM runs
),
lives AS (
  SELECT e.pipeline_id, p.dataset, e.expectation, min(p.place) AS newest_place, max(p.place) AS oldest_place,
         count(*) AS evaluations, min_by(p.start_ts, p.place) AS last_evaluated
  FROM expectation_results e JOIN names n USING (dataset)
  JOIN placed p ON p.pipeline_id = e.pipeline_id AND p.update_id = e.update_id AND p.dataset = n.bare_name
  GROUP BY ALL
),
ends AS (
  SELECT *, count(*) OVER (PARTITION BY pipeline_id, dataset, newest_place) AS gone,
         (SELECT count(*) FROM lives n
          WHERE n.pipeline_id = l.pipeline_id AND n.dataset = l.dataset AND n.oldest_place = l.newest_place - 1) AS come
  FROM lives l
),
defined AS (
  SELECT pipeline_id, update_id, bare_name AS dataset, unnest(rules).name AS expectation
  FROM dataset_definitions JOIN names USING (dataset)
),
never AS (
  SELECT pipeline_id, dataset, expectation, min(start_ts) AS since, count(DISTINCT update_id) AS runs_with_rows
  FROM defined JOIN placed USING (pipeline_id, update_id, dataset) ANTI JOIN lives USING (pipeline_id, dataset, expectation)
  WHERE has_rows
  GROUP BY ALL
)
SELECT pipeline_id, dataset || '.' || expectation AS subject, last_evaluated AS since, evaluations, last_evaluated,
       format('{} on {} is no longer evaluated', expectation, dataset) AS title
FROM ends JOIN limits USING (pipeline_id)
WHERE newest_place > runs AND evaluations >= 3 AND NOT (gone = 1 AND come = 1)  -- one for one: it has a new name
UNION ALL
SELECT pipeline_id, dataset || '.' || expectation, since, 0, NULL,
       format('{} on {} is defined and was never evaluated', expectation, dataset)
FROM never JOIN limits USING (pipeline_id)
WHERE runs_with_rows > runs
