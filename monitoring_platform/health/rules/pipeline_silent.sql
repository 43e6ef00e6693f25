-- A pipeline that runs at regular intervals has not begun a run for a multiple of them. One that pauses, at weekends
-- for instance, may leave out the runs of a day after its pause, as on a holiday. A pause too rare for that, one night
-- in the week, is usual where it was as long at the same time of both weeks before.
WITH starts AS (
  SELECT pipeline_id, start_ts, lag(start_ts) OVER (PARTITION BY pipeline_id ORDER BY start_ts) AS before_ts,
         epoch(start_ts - before_ts) AS gap
  FROM requests WHERE run_kind = 'normal' AND NOT coalesce(continuous, false)
),
rhythm AS (
  SELECT pipeline_id, max(start_ts) AS last_start, median(gap) AS usual_gap, quantile_cont(gap, 0.95) AS longest_gap,
         count(gap) AS runs
  FROM starts GROUP BY pipeline_id
),
paused AS (
  SELECT r.pipeline_id, days, max(s.gap) AS pause
  FROM rhythm r JOIN (VALUES (7), (14)) weeks(days) ON true
  JOIN starts s ON s.pipeline_id = r.pipeline_id
    AND abs(epoch(s.before_ts - (r.last_start - to_days(days)))) < greatest(7200, r.usual_gap / 2)
  GROUP BY r.pipeline_id, days
),
weekly AS (SELECT pipeline_id, min(pause) AS pause FROM paused GROUP BY pipeline_id HAVING count(*) = 2)
SELECT pipeline_id, last_start + to_seconds(usual_gap) AS since, last_start, round(usual_gap / 3600, 1) AS usual_hours,
       round(epoch(now - last_start) / 3600, 1) AS hours_ago, runs AS compared_runs,
       format('no run for {:.1f} hours, usually every {:.1f}', epoch(now - last_start) / 3600, usual_gap / 3600) AS title
FROM rhythm JOIN limits USING (pipeline_id) LEFT JOIN weekly USING (pipeline_id) CROSS JOIN clock
WHERE runs >= min_runs
  AND epoch(now - last_start) > greatest(
    times * usual_gap,
    longest_gap + greatest(1.2 * usual_gap, CASE WHEN longest_gap > 1.5 * usual_gap THEN 26 * 3600 ELSE 0 END),
    pause + 1.2 * usual_gap
  )
  AND NOT EXISTS (SELECT 1 FROM requests o WHERE o.pipeline_id = rhythm.pipeline_id AND o.is_open)
