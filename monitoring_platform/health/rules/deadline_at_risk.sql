-- The next deadline will be missed at the pace of the run under way, or because a run that should have begun has not.
SELECT u.pipeline_id, u.next_due_at AS due_at, e.expected_at, e.basis, e.started_at, e.update_id, e.usual_minutes,
       e.compared_runs, u.last_success,
       format('at this pace {}, deadline {}', strftime(timezone(u.time_zone, e.expected_at), '%H:%M'), u.due) AS title
FROM unmet u JOIN expected e USING (pipeline_id) JOIN limits USING (pipeline_id)
WHERE u.missed_since IS NULL AND e.expected_at > u.next_due_at
