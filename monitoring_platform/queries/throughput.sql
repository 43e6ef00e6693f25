-- Throughput: what each flow reported
-- Newest 100 reports. Not limited to status COMPLETED: counters stand on RUNNING rows too. Counters of one batch are
-- running counts: for totals take flow_metrics.
-- R-FLOW-07
SELECT event_ts, pipeline_name, flow_name, flow_status, num_output_rows, num_upserted_rows, num_deleted_rows,
       expectations
FROM all_pipelines_event_log
WHERE event_type = 'flow_progress' AND flow_name <> 'pipelines.flowTimeMetrics.missingFlowName'
ORDER BY event_ts DESC, event_id
LIMIT 100
