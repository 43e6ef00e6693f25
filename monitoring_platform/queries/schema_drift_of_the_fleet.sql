-- What the logs hold that is not known here
-- Unknown event types, members and values, over all pipelines. They are stored; typed columns for them are missing.
-- R-ING-19, R-NEW-10
SELECT s.what, count(*) AS pipelines, sum(s.events) AS events, min(s.first_seen) AS first_seen,
       max(s.last_seen) AS last_seen, min_by(s.example, s.first_seen) AS example
FROM schema_drift s
GROUP BY s.what
ORDER BY events DESC, s.what
