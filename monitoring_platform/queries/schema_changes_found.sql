-- Columns that were added, dropped or changed
-- With the update before and the update after.
-- R-LIN-05, R-PEER-22
SELECT p.pipeline_name, s.dataset, s.column_name, s.change, s.old_type, s.new_type, s.changed_at,
       s.previous_update_id, s.update_id
FROM schema_changes s LEFT JOIN pipelines p USING (pipeline_id)
ORDER BY s.changed_at DESC, s.pipeline_id, s.dataset, s.column_name
