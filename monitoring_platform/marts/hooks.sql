-- One row per (pipeline_id, event_id): what an event hook did. Hooks see STABLE events only: no basis for alerts.
SELECT pipeline_id, event_id, event_ts, update_id, hook.name AS hook, hook.text AS status, level, message
FROM events
WHERE event_type = 'hook_progress'
