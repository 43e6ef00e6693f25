-- The newest settled day of a pipeline cost a multiple of its usual day.
WITH days AS (
  SELECT pipeline_id, usage_date, currency, sum(cost) AS cost FROM pipeline_costs GROUP BY ALL
),
placed AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id, currency ORDER BY usage_date DESC) AS place FROM days
),
before AS (
  SELECT pipeline_id, currency, median(cost) AS usual_cost, mad(cost) AS cost_mad, count(*) AS days
  FROM placed WHERE place BETWEEN 2 AND 29 GROUP BY ALL
)
SELECT pipeline_id, CAST(usage_date AS TIMESTAMPTZ) AS since, round(cost, 2) AS cost, round(usual_cost, 2) AS usual_cost,
       currency, days AS compared_days,
       format('{:.2f} {} on {}, usually {:.2f}', cost, currency, usage_date, usual_cost) AS title
FROM placed JOIN before USING (pipeline_id, currency) JOIN limits USING (pipeline_id)
WHERE place = 1 AND days >= min_days AND cost > times * usual_cost
  AND cost - usual_cost > deviations * 1.4826 * cost_mad
