-- A workspace knows an update that no log has, an hour after it ended.
SELECT pipeline_id, created_at AS since, count(*) OVER (PARTITION BY pipeline_id) AS missing_updates, update_id,
       m.state, m.reason, 'an update is in no log' AS title
FROM missing_updates m JOIN limits USING (pipeline_id) CROSS JOIN clock
WHERE m.reason <> 'before_log' AND greatest(coalesce(m.ended_at, m.created_at), m.first_known_at) < now - INTERVAL 1 HOUR
QUALIFY row_number() OVER (PARTITION BY pipeline_id ORDER BY created_at DESC, update_id) = 1
