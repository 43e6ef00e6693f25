-- One row per pipeline_id of the ledger: all that matters about a pipeline now.
WITH recomputes AS (
  SELECT pipeline_id, count(*) AS n FROM recompute_watch WHERE is_current GROUP BY pipeline_id
),
backlogs AS (
  SELECT pipeline_id, count(CASE WHEN trend = 'growing' THEN 1 END) AS growing,
         count(CASE WHEN trend = 'stuck' THEN 1 END) AS stuck
  FROM backlog_trends
  GROUP BY pipeline_id
),
rules AS (
  SELECT pipeline_id, count(CASE WHEN state = 'vanished' THEN 1 END) AS vanished,
         count(CASE WHEN state = 'never_evaluated' THEN 1 END) AS never_evaluated
  FROM expectation_lifecycle
  GROUP BY pipeline_id
),
problems AS (
  SELECT p.pipeline_id,
         filter(array(
           CASE WHEN p.state NOT IN ('seen', 'excluded', 'retired') THEN concat('log ', p.state) END,
           CASE WHEN a.latest_outcome = 'FAILED' THEN 'latest request failed' END,
           CASE WHEN a.is_retrying THEN 'retrying after a failure' END,
           CASE WHEN a.duration_trend = 'slower' THEN 'slower than before' END,
           CASE WHEN r.n > 0 THEN 'recomputes in full' END,
           CASE WHEN b.growing > 0 THEN 'backlog growing' END,
           CASE WHEN b.stuck > 0 THEN 'backlog stuck' END,
           CASE WHEN l.vanished > 0 THEN 'expectation vanished' END,
           CASE WHEN l.never_evaluated > 0 THEN 'expectation never evaluated' END
         ), problem -> problem IS NOT NULL) AS open_problems
  FROM pipelines p
  LEFT JOIN pipeline_activity a ON a.pipeline_id = p.pipeline_id
  LEFT JOIN recomputes r ON r.pipeline_id = p.pipeline_id
  LEFT JOIN backlogs b ON b.pipeline_id = p.pipeline_id
  LEFT JOIN rules l ON l.pipeline_id = p.pipeline_id
)
SELECT p.pipeline_id, p.pipeline_name, p.owner, p.state, p.reason, p.remedy,
       a.latest_request_id, a.latest_update_id, a.latest_outcome, a.is_open, a.is_retrying, a.latest_start_ts,
       a.last_success_ts, a.last_failure_ts, a.last_error_class, a.last_error, a.last_error_fingerprint,
       a.last_change_ts, p.last_event_ts, a.requests_7d, a.failed_requests_7d, a.latest_rows_written,
       a.worst_pass_rate_pct, a.usual_seconds_now, a.usual_seconds_before,
       coalesce(a.duration_trend, 'unknown') AS duration_trend,
       o.open_problems, CAST(size(o.open_problems) AS BIGINT) AS problem_count
FROM pipelines p
JOIN problems o ON o.pipeline_id = p.pipeline_id
LEFT JOIN pipeline_activity a ON a.pipeline_id = p.pipeline_id
