-- The newest request took longer than promised, or the one under way does, or will as it is late by its usual time.
-- That a request failed is told by another rule, and a full refresh takes as long as it takes.
WITH newest AS (
  SELECT r.pipeline_id, r.request_id, r.last_update_id AS update_id, r.start_ts, r.outcome, r.is_open,
         coalesce(r.duration_seconds, epoch(now - r.start_ts)) / 60 AS minutes,
         CASE WHEN e.is_late THEN epoch(e.expected_at - r.start_ts) / 60 END AS expected_minutes, e.basis
  FROM requests r CROSS JOIN clock
  LEFT JOIN expected e ON e.pipeline_id = r.pipeline_id AND e.request_id = r.request_id
  WHERE r.run_kind = 'normal' AND (r.is_open OR r.outcome IN ('COMPLETED', 'FAILED'))
    AND NOT coalesce(r.is_full_refresh, false) AND NOT coalesce(r.continuous, false)
  QUALIFY row_number() OVER (PARTITION BY r.pipeline_id, r.is_open ORDER BY r.start_ts DESC, r.request_id DESC) = 1
)
SELECT pipeline_id, CASE WHEN minutes > target THEN start_ts + to_seconds(60 * target) END AS since, request_id, update_id,
       is_open AS still_running, round(minutes, 1) AS minutes, round(expected_minutes, 1) AS expected_minutes, basis,
       target AS target_minutes,
       format(CASE WHEN NOT is_open THEN '{:.1f} min, target {:.1f} min'
                   WHEN minutes > target THEN 'still running after {:.1f} min, target {:.1f} min'
                   ELSE 'at this pace {:.1f} min, target {:.1f} min' END,
              CASE WHEN minutes > target THEN minutes ELSE expected_minutes END, target) AS title
FROM newest JOIN targets USING (pipeline_id) JOIN limits USING (pipeline_id)
WHERE objective = 'duration' AND outcome <> 'FAILED' AND (minutes > target OR expected_minutes > target)
QUALIFY row_number() OVER (PARTITION BY pipeline_id ORDER BY is_open DESC) = 1
