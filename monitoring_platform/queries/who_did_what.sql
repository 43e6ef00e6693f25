-- What people asked of pipelines
-- Newest 200 user actions. Names are pseudonyms where the configuration says so.
-- R-AUD-01
SELECT event_ts, pipeline_name, action, user_name, update_id, message
FROM user_actions
ORDER BY event_ts DESC, event_id
LIMIT 200
