-- Runs of today with their checks
-- Each run that began on the day of the newest event: minutes, whether its duration target was met, and its checks, those
-- that failed first; a run without checks is there too. Jobs say which percentage passes; elsewhere no record may fail.
-- R-OWN-15, R-OWN-13
WITH clock AS (SELECT max(last_event_ts) AS now FROM pipelines),
runs AS (SELECT r.* FROM pipeline_runs r, clock WHERE CAST(r.start_ts AS DATE) = CAST(now AS DATE)),
told AS (
  SELECT pipeline_id, update_id, event_id, flow_name,
         unnest(from_json(json_extract(details, '$.flow_progress.data_quality.expectations'),
                '[{"name": "VARCHAR", "dataset": "VARCHAR", "failure_pct": "DOUBLE", "passed": "BOOLEAN"}]')) AS rule
  FROM all_pipelines_event_log SEMI JOIN runs USING (pipeline_id, update_id)
  WHERE pipeline_type = 'JOB' AND expectations IS NOT NULL
),
checks AS (
  SELECT pipeline_id, update_id, rule.dataset AS dataset, rule.name AS check_name, rule.failure_pct AS failure_pct,
         rule.passed AS passed
  FROM told
  UNION ALL
  SELECT pipeline_id, update_id, dataset, expectation, failed_pct, failed_records = 0
  FROM expectation_results ANTI JOIN told USING (pipeline_id, update_id) SEMI JOIN runs USING (pipeline_id, update_id)
)
SELECT r.pipeline_name, round(r.duration_seconds / 60, 2) AS duration_minutes, s.met AS slo_met, c.check_name,
       round(c.failure_pct, 4) AS failure_pct, c.passed, c.dataset, r.status, r.start_ts, r.update_id, r.pipeline_id
FROM runs r
LEFT JOIN checks c USING (pipeline_id, update_id)
LEFT JOIN slo_results s ON s.pipeline_id = r.pipeline_id AND s.update_id = r.update_id AND s.objective = 'duration'
ORDER BY c.passed NULLS LAST, r.pipeline_name, r.start_ts, r.update_id, c.dataset, c.check_name
