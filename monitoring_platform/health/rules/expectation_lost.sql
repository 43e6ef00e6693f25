-- An expectation that used to be evaluated was not in the newest runs, although its dataset was written.
WITH runs AS (
  SELECT DISTINCT r.pipeline_id, r.update_id, r.start_ts, lower(regexp_replace(f.dataset, '^.*\.', '')) AS dataset
  FROM flow_metrics f JOIN pipeline_runs r USING (pipeline_id, update_id)
  WHERE r.run_kind = 'normal' AND r.status = 'COMPLETED'
),
placed AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id, dataset ORDER BY start_ts DESC, update_id DESC) AS place FROM runs
),
lives AS (
  SELECT e.pipeline_id, p.dataset, e.expectation, min(p.place) AS newest_place, count(*) AS evaluations,
         min_by(p.start_ts, p.place) AS last_evaluated
  FROM expectation_results e
  JOIN placed p ON p.pipeline_id = e.pipeline_id AND p.update_id = e.update_id
   AND p.dataset = lower(regexp_replace(e.dataset, '^.*\.', ''))
  GROUP BY ALL
)
SELECT pipeline_id, dataset || '.' || expectation AS subject, last_evaluated AS since, evaluations, last_evaluated,
       format('{} on {} is no longer evaluated', expectation, dataset) AS title
FROM lives JOIN limits USING (pipeline_id)
WHERE newest_place > runs AND evaluations >= 3
