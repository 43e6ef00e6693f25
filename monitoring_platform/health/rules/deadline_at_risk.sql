-- The next deadline will be missed at the pace of the run under way, or because a run that should have begun has not.
WITH longest AS (  -- the flow on which the newest run before waited most
  SELECT pipeline_id, flow_name, usual_seconds FROM flow_durations
  QUALIFY row_number() OVER (PARTITION BY pipeline_id
                             ORDER BY run_start_ts DESC, critical_seconds DESC NULLS LAST, flow_name) = 1
)
SELECT u.pipeline_id, u.next_due_at AS due_at, e.expected_at, e.basis, e.started_at, e.update_id, e.usual_minutes,
       e.compared_runs, u.last_success, f.flow_name AS longest_flow,
       round(f.usual_seconds / 60, 1) AS usual_minutes_of_flow,
       format('at this pace {}, deadline {}', strftime(timezone(u.time_zone, e.expected_at), '%H:%M'), u.due) AS title
FROM unmet u JOIN expected e USING (pipeline_id) JOIN limits USING (pipeline_id) LEFT JOIN longest f USING (pipeline_id)
WHERE u.missed_since IS NULL AND e.expected_at > u.next_due_at
