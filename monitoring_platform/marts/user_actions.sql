-- One row per (pipeline_id, event_id): what a person asked of a pipeline. No start or end of a run.
SELECT pipeline_id, event_id, event_ts, pipeline_name, update_id,
       upper(user_action.action) AS action, user_action.user_name AS user_name, user_action.user_id AS user_id, message
FROM events
WHERE event_type = 'user_action'
