-- Rules that are gone, renamed, changed or never evaluated
-- A rule that nobody evaluates any more cannot fail.
-- R-QUAL-01, R-NEW-10
SELECT p.pipeline_name, l.dataset, l.expectation, l.state, l.action, l.previous_action, l.action_changed_at, l.gone_at,
       l.renamed_to, l.last_evaluated
FROM expectation_lifecycle l LEFT JOIN pipelines p USING (pipeline_id)
WHERE l.state <> 'active'
ORDER BY l.state, p.pipeline_name, l.dataset, l.expectation
