-- When a request that is under way will have ended at its pace, or one that should have begun by now for its deadline.
-- One that is over its usual time is expected to take as long again as it is over.
WITH under_way AS (
  SELECT pipeline_id, request_id, start_ts, last_start_ts, last_update_id
  FROM requests WHERE is_open AND run_kind = 'normal' AND NOT coalesce(continuous, false)
  QUALIFY row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, request_id DESC) = 1
),
-- What it took to be in time on the days before, three at least.
days_in_time AS (
  SELECT d.pipeline_id, median(epoch(d.due_at - s.start_ts)) AS lead_seconds,
         median(epoch(s.end_ts - s.start_ts)) AS seconds, count(*) AS days
  FROM deadlines d ASOF JOIN successes s ON s.pipeline_id = d.pipeline_id AND s.end_ts >= d.window_start
  CROSS JOIN clock
  WHERE s.start_ts IS NOT NULL AND s.end_ts <= d.due_at AND d.due_at <= now
  GROUP BY d.pipeline_id HAVING days >= 3
)
SELECT r.pipeline_id, r.request_id, r.last_update_id AS update_id, r.start_ts AS started_at,
       round(u.seconds / 60, 1) AS usual_minutes, u.runs AS compared_runs,
       u.seconds IS NOT NULL AND epoch(now - r.last_start_ts) > u.seconds + greatest(3 * 1.4826 * u.seconds_mad, 60)
         AS is_late,
       r.last_start_ts + to_seconds(greatest(u.seconds, 2 * epoch(now - r.last_start_ts) - u.seconds)) AS expected_at,
       format('usually {:.1f} min (median of {} runs{})', u.seconds / 60, u.runs,
              CASE WHEN u.basis = 'the runs before' THEN ' before' ELSE ' of ' || u.basis END) AS basis
FROM under_way r CROSS JOIN clock
LEFT JOIN usual u ON u.pipeline_id = r.pipeline_id AND u.update_id = r.last_update_id AND u.runs >= 3
UNION ALL
SELECT d.pipeline_id, NULL, NULL, NULL, round(u.seconds / 60, 1), u.days, true, now + to_seconds(u.seconds),
       format('not begun, usually at {} for {:.1f} min (median of {} days in time)',
              strftime(timezone(d.time_zone, d.next_due_at - to_seconds(u.lead_seconds)), '%H:%M'), u.seconds / 60, u.days)
FROM unmet d JOIN days_in_time u USING (pipeline_id) CROSS JOIN clock
WHERE d.next_due_at IS NOT NULL AND now >= d.next_due_at - to_seconds(u.lead_seconds)
  AND NOT EXISTS (FROM under_way r WHERE r.pipeline_id = d.pipeline_id)
