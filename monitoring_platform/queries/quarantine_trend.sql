-- Share of dropped records of each pipeline and day, 30 days
-- Dropped of dropped and written; null where one is unknown or both are 0.
-- R-QUAL-07, R-OWN-16
SELECT q.day, p.pipeline_name, q.rows_dropped, q.rows_written, round(q.dropped_pct, 2) AS dropped_pct, q.pipeline_id
FROM quarantine_trends q LEFT JOIN pipelines p USING (pipeline_id)
WHERE q.day > (SELECT max(last_event_ts)::DATE - 30 FROM pipelines)
ORDER BY q.day DESC, q.dropped_pct DESC NULLS LAST, p.pipeline_name, q.pipeline_id
