-- Too many of the requests that ended within the last hours failed, whether or not the newest did.
SELECT pipeline_id, min(end_ts) FILTER (outcome = 'FAILED') AS since,
       count(*) FILTER (outcome = 'FAILED') AS failed_requests, count(*) AS requests,
       round(100 * count(*) FILTER (outcome = 'FAILED') / count(*), 1) AS failed_percent,
       format('{} of {} requests failed within {:.0f} hours', count(*) FILTER (outcome = 'FAILED'), count(*),
              any_value(hours)) AS title
FROM ended_requests JOIN limits USING (pipeline_id) CROSS JOIN clock
WHERE end_ts > now - to_seconds(3600 * hours)
GROUP BY pipeline_id
HAVING count(*) FILTER (outcome = 'FAILED') >= any_value(min_failed)
   AND 100 * count(*) FILTER (outcome = 'FAILED') >= any_value(percent) * count(*)
