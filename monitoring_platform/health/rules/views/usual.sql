-- What is usual for each of the judged runs: median and median absolute deviation of the comparable runs of the 60 days
-- before it. Of the same weekday and hour where there are 5, else of the same hour and kind of day (Monday to Friday, or
-- weekend) where there are 4 (two weekends), else of the same hour where there are 7, else of the 30 before. `rows_low` is
-- the lowest tenth of those 30: a holiday is as quiet as a weekend. Runs during an incident of the same pipeline do not
-- count, unless it lasts for more than 14 days: that is usual.
WITH finished AS (
  SELECT r.pipeline_id, r.update_id, r.start_ts, r.duration_seconds AS seconds, r.rows_written, r.rows_dropped,
         isodow(timezone(time_zone, r.start_ts)) AS weekday, hour(timezone(time_zone, r.start_ts)) AS hour
  FROM pipeline_runs r, clock
  WHERE r.run_kind = 'normal' AND r.status = 'COMPLETED' AND NOT coalesce(r.is_full_refresh, false)
    AND NOT coalesce(r.continuous, false)
    AND NOT EXISTS (
      SELECT 1 FROM troubled t
      WHERE t.pipeline_id = r.pipeline_id AND r.start_ts BETWEEN t.since AND t.until
    )
),
compared AS (
  SELECT j.pipeline_id, j.update_id, f.seconds, f.rows_written, f.rows_dropped,
         f.weekday = j.weekday AND f.hour = j.hour AS same_hour_of_week, f.hour = j.hour AS same_hour,
         (f.weekday > 5) = (j.weekday > 5) AND f.hour = j.hour AS same_kind_of_day,
         date_diff('day', f.start_ts, j.start_ts) AS days_before,
         row_number() OVER (PARTITION BY j.pipeline_id, j.update_id ORDER BY f.start_ts DESC, f.update_id DESC) <= 30
           AS recent
  FROM judged j
  JOIN finished f ON f.pipeline_id = j.pipeline_id AND f.start_ts < j.start_ts
   AND f.start_ts >= j.start_ts - INTERVAL 60 DAYS
),
counted AS (
  SELECT *, count(*) FILTER (same_hour_of_week) OVER same_run AS hour_of_week_runs,
         count(*) FILTER (same_kind_of_day) OVER same_run AS kind_of_day_runs,
         count(*) FILTER (same_hour) OVER same_run AS hour_runs,
         max(days_before) OVER same_run AS known_days,
         quantile_cont(rows_written, 0.1) FILTER (recent) OVER same_run AS rows_low
  FROM compared
  WINDOW same_run AS (PARTITION BY pipeline_id, update_id)
),
chosen AS (
  SELECT * FROM counted
  WHERE CASE WHEN hour_of_week_runs >= 5 THEN same_hour_of_week WHEN kind_of_day_runs >= 4 THEN same_kind_of_day
             WHEN hour_runs >= 7 THEN same_hour ELSE recent END
)
SELECT pipeline_id, update_id, count(*) AS runs, count(rows_written) AS runs_with_rows,
       any_value(known_days) AS known_days,
       CASE WHEN any_value(hour_of_week_runs) >= 5 THEN 'the same weekday and hour'
            WHEN any_value(kind_of_day_runs) >= 4 THEN 'the same kind of day and hour'
            WHEN any_value(hour_runs) >= 7 THEN 'the same hour' ELSE 'the runs before' END AS basis,
       median(seconds) AS seconds, mad(seconds) AS seconds_mad,
       median(rows_written) AS rows, mad(rows_written) AS rows_mad, any_value(rows_low) AS rows_low,
       median(rows_dropped) AS dropped, mad(rows_dropped) AS dropped_mad,
       median(rows_dropped / nullif(rows_written + rows_dropped, 0)) AS dropped_share
FROM chosen
GROUP BY pipeline_id, update_id
