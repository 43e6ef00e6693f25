-- Root error of each failed request
-- Newest first: the deepest exception of the last attempt that failed.
-- R-ERR-01, R-NEW-01
SELECT q.pipeline_name, q.request_id, q.start_ts, q.attempts, f.flow_name, f.error_class, f.exception_class, f.message,
       f.update_id
FROM requests q
LEFT JOIN failures f ON f.pipeline_id = q.pipeline_id AND f.update_id = q.last_update_id
WHERE q.outcome = 'FAILED' AND q.run_kind = 'normal'
ORDER BY q.start_ts DESC, q.request_id
