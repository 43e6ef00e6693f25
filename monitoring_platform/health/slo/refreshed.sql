-- Since when each pipeline is known, and when its data became new for the last time. Of one whose log cannot be read
-- that is not known: another rule tells it.
SELECT p.pipeline_id, coalesce(any_value(p.first_event_ts), any_value(p.registered_at)) AS known_since,
       max(s.end_ts) AS last_success
FROM pipelines p LEFT JOIN successes s USING (pipeline_id)
WHERE p.state NOT IN ('log_not_published', 'no_grant', 'not_owner', 'unreadable')
GROUP BY p.pipeline_id
