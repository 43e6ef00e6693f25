-- Events of each type and level
-- METRICS rows exist in the table only, never in the vendor's page; count them here.
-- R-ERR-04, R-UNI-09
SELECT event_type, count(*) AS events,
       count(*) FILTER (level = 'INFO') AS info, count(*) FILTER (level = 'WARN') AS warn,
       count(*) FILTER (level = 'ERROR') AS error, count(*) FILTER (level = 'METRICS') AS metrics
FROM all_pipelines_event_log
GROUP BY event_type
ORDER BY events DESC, event_type
