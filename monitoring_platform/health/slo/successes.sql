-- When data became new: requests that succeeded, and hours in which a continuous pipeline finished batches.
SELECT pipeline_id, last_update_id AS update_id, start_ts, end_ts
FROM ended_requests WHERE outcome = 'COMPLETED'
UNION ALL
SELECT h.pipeline_id, h.update_id, NULL, max(h.last_batch_ts)
FROM flow_hours h JOIN pipeline_runs r USING (pipeline_id, update_id)
WHERE r.continuous AND h.last_batch_ts IS NOT NULL
GROUP BY h.pipeline_id, h.update_id, h.hour_ts
