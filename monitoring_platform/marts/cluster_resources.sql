-- One row per (pipeline_id, event_id): load and scaling of a classic cluster; serverless pipelines have none.
SELECT pipeline_id, event_id, event_ts, update_id, event_type,
       cluster.num_executors AS num_executors, cluster.num_task_slots AS num_task_slots,
       cluster.avg_num_task_slots AS avg_num_task_slots,
       cluster.avg_task_slot_utilization AS avg_task_slot_utilization,
       cluster.avg_num_queued_tasks AS avg_num_queued_tasks, cluster.summary_duration_ms AS summary_duration_ms,
       cluster.scaling_state AS scaling_state, cluster.optimal_num_executors AS optimal_num_executors,
       cluster.requested_num_executors AS requested_num_executors,
       cluster.request_pending_seconds AS request_pending_seconds
FROM events
WHERE event_type IN ('cluster_resources', 'cluster_utilization', 'autoscale')
