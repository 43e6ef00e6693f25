-- Requests that somebody asked for and that succeeded or failed, newest first.
SELECT *, row_number() OVER (PARTITION BY pipeline_id ORDER BY end_ts DESC, request_id DESC) AS place
FROM requests
WHERE run_kind = 'normal' AND outcome IN ('COMPLETED', 'FAILED')
