-- The usual duration has grown in each of the last three complete weeks, by at least so much a week, beyond its noise.
-- Growth that lies in one of these weeks for more than four fifths is a jump, which other rules tell.
WITH weeks AS (
  SELECT pipeline_id, date_diff('week', date_trunc('week', timezone(time_zone, start_ts)),
                                date_trunc('week', timezone(time_zone, now))) AS ago,
         median(duration_seconds) AS seconds, mad(duration_seconds) AS spread, count(*) AS runs
  FROM pipeline_runs, clock
  WHERE run_kind = 'normal' AND status = 'COMPLETED' AND NOT coalesce(is_full_refresh, false)
    AND NOT coalesce(continuous, false) AND duration_seconds > 0
  GROUP BY ALL
),
wide AS (
  SELECT pipeline_id, count(*) AS weeks, min(runs) AS fewest_runs,
         max(seconds) FILTER (ago = 4) AS w4, max(seconds) FILTER (ago = 3) AS w3, max(seconds) FILTER (ago = 2) AS w2,
         max(seconds) FILTER (ago = 1) AS w1, max(1.2533 * 1.4826 * spread / sqrt(runs)) AS standard_error
  FROM weeks WHERE ago BETWEEN 1 AND 4 GROUP BY pipeline_id
)
SELECT pipeline_id, round(100 * (power(w1 / w4, 1 / 3.0) - 1), 1) AS weekly_growth_percent,
       [round(w4 / 60, 1), round(w3 / 60, 1), round(w2 / 60, 1), round(w1 / 60, 1)] AS minutes_by_week,
       format('usual duration grows by {:.0f} % a week: {:.1f} to {:.1f} min in three', 100 * (power(w1 / w4, 1 / 3.0) - 1),
              w4 / 60, w1 / 60) AS title
FROM wide JOIN limits USING (pipeline_id)
WHERE weeks = 4 AND fewest_runs >= min_runs AND w3 > w4 AND w2 > w3 AND w1 > w2
  AND power(w1 / w4, 1 / 3.0) >= 1 + weekly_percent / 100 AND w1 - w4 > 3 * standard_error
  AND greatest(w3 / w4, w2 / w3, w1 / w2) <= power(w1 / w4, 0.8)
