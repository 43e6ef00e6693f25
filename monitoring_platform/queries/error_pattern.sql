-- Errors by hour and flow, two weeks
-- The same error of the same flow at the same hour (UTC) on several days points at something that happens at that hour.
-- R-ERR-02
SELECT pipeline_name, hour(start_ts) AS hour, flow_name, error_class, count(*) AS failures,
       count(DISTINCT start_ts::DATE) AS days, list_sort(list(DISTINCT start_ts::DATE)) AS dates,
       max_by(message, start_ts) AS latest_message, pipeline_id
FROM failures
WHERE kind = 'failed' AND run_kind = 'normal'
  AND start_ts > (SELECT max(last_event_ts) - INTERVAL 14 DAY FROM pipelines)
GROUP BY pipeline_id, pipeline_name, hour(start_ts), flow_name, error_class, fingerprint
ORDER BY days DESC, failures DESC, pipeline_name, hour, flow_name
