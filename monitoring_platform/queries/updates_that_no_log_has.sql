-- Updates that a workspace knows and no log has
-- Why, by the state of their log, and what to do; the newest first. None is the proof that no run was lost. Those that
-- are older than their log are listed last.
-- R-NEW-02, R-PEER-10
SELECT p.pipeline_name, m.created_at, m.ended_at, m.state, m.trigger_type, m.reason, p.state AS log_state, p.reason AS why,
       p.remedy, m.known_from, m.update_id, m.pipeline_id
FROM missing_updates m LEFT JOIN pipelines p USING (pipeline_id)
ORDER BY m.reason = 'before_log', m.created_at DESC, m.pipeline_id, m.update_id
