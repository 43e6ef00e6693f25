"""Flows: what they did, their hours, batches and backlogs, and the resources beside them."""

from monitoring_platform.marts.tables.contract import table

FLOW_METRICS = table(
    "flow_metrics",
    "one flow in one update",
    "pipeline_id update_id flow_name",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    flow_name text Name of the flow as written; the vendor's placeholder and nameless rows are no flows.
    flow_id text Newest flow_id in this update; changes at full refresh. Null = never given.
    dataset text What the flow writes: flow_definition.output_dataset, else origin.dataset_name, else the flow name.
    sink text Sink that the flow writes to; null = none, it writes a table.
    status text Last status that a row carries; null = none did.
    start_ts time First flow_progress event.
    end_ts time Time of the final status; null = not ended.
    last_event_ts time Last flow_progress event.
    duration_seconds double First to last flow_progress event, queueing and planning included.
    active_seconds double First STARTING or RUNNING to the last event; null = never active.
    rows_output long Appended rows: maximum in each batch, summed; null = never reported, or too large for a BIGINT.
    rows_upserted long Upserted rows, counted likewise.
    rows_deleted long Deleted rows, counted likewise.
    rows_written long Output + upserted + deleted; null = none of them was reported.
    output_bytes long Bytes written, counted likewise.
    rows_dropped long Records dropped by expectations, counted likewise; null = no quality data, 0 = reported zero.
    executor_time_ms long Executor time in ms, counted likewise.
    executor_cpu_time_ms long Executor CPU time in ms, counted likewise.
    peak_backlog_bytes long Largest snapshot; null = the source reports none.
    last_backlog_bytes long Latest snapshot.
    peak_backlog_records long Largest snapshot.
    last_backlog_records long Latest snapshot.
    peak_backlog_files long Largest snapshot.
    last_backlog_files long Latest snapshot.
    peak_backlog_seconds long Largest snapshot.
    last_backlog_seconds long Latest snapshot.
    event_time_min time Oldest event time processed; null = not reported.
    event_time_max time Newest event time processed; null = not reported.
    last_batch_ts time Newest batch with counters, or newest emission of a gateway; null = none finished.
    batch_count long Distinct batches seen; 0 = rows without batch.
    event_count long flow_progress events of the flow.
    has_metrics bool Whether any event carried a metric.
    metric_basis text How counters were totalled: batch_max, event_sum, delta_sum, joined by comma; null = no counters.
    output_overflow bool rows_output is null because the sum does not fit.
    upserted_overflow bool rows_upserted is null because the sum does not fit.
    deleted_overflow bool rows_deleted is null because the sum does not fit.
    """,
)
FLOW_HOURS = table(
    "flow_hours",
    "one flow in one UTC hour of one update",
    "pipeline_id update_id flow_name hour_ts",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    flow_name text The flow.
    hour_ts time Start of the hour.
    rows_output long Appended rows of the batches whose last event is in this hour; null = not reported.
    rows_upserted long Upserted rows, likewise.
    rows_deleted long Deleted rows, likewise.
    rows_written long Output + upserted + deleted; null = none was reported.
    output_bytes long Bytes written, likewise.
    rows_dropped long Records dropped by expectations; null = no quality data.
    batches long Batches (emissions of a gateway) that ended in this hour.
    last_batch_ts time Newest of them; null = none.
    event_count long flow_progress events in this hour.
    peak_backlog_bytes long Largest snapshot of the hour; null = not reported.
    last_backlog_bytes long Latest snapshot of the hour; null = not reported.
    last_backlog_records long Likewise.
    last_backlog_files long Likewise.
    last_backlog_seconds long Likewise.
    """,
)
GATEWAY_PROGRESS = table(
    "gateway_progress",
    "one flow of an ingestion gateway in one UTC hour of one update",
    "pipeline_id update_id flow_name hour_ts",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    flow_name text The flow.
    hour_ts time Start of the hour.
    dataset text Dataset that the flow feeds; null = not given.
    emissions long METRICS events; an empty one is a sign of life.
    rows_upserted long Sum of the deltas; null = never reported, which is not 0.
    rows_deleted long Sum of the deltas; null likewise.
    rows_output long Sum of the deltas; null likewise.
    output_bytes long Sum of the deltas; null likewise.
    avg_discovery_latency_ms double Mean of the point values; null = none.
    max_discovery_latency_ms long Largest point value.
    p95_discovery_latency_ms double 95th percentile of the point values.
    avg_batch_processing_time_ms double Mean of the point values; null = none.
    max_batch_processing_time_ms long Largest point value.
    p95_batch_processing_time_ms double 95th percentile of the point values.
    event_time_min time Oldest event time; null = not reported.
    event_time_max time Newest event time; null = not reported.
    last_emission_ts time Newest emission of the hour.
    """,
)
FLOW_LIVENESS = table(
    "flow_liveness",
    "one flow that has not ended, of the newest open update of its pipeline",
    "pipeline_id flow_name",
    """
    pipeline_id text Identity of the pipeline.
    flow_name text The flow.
    update_id text The open update.
    pipeline_name text Name of the pipeline.
    continuous bool Setting in force; null = unknown.
    pipeline_type text origin.pipeline_type; null = never said.
    status text Last status of the flow.
    last_batch_ts time Newest finished batch or emission; null = none.
    last_event_ts time Newest event of the flow.
    last_backlog_bytes long Latest snapshot; null = not reported.
    last_backlog_records long Likewise.
    last_backlog_files long Likewise.
    last_backlog_seconds long Likewise.
    state text idle (nothing waits), working (something waits: silence is trouble), unknown (no backlog or no batch).
    """,
)
FLOW_DURATIONS = table(
    "flow_durations",
    "one flow in one update: where its time went",
    "pipeline_id update_id flow_name",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    flow_name text The flow.
    run_start_ts time Start of the update.
    status text Last status of the flow.
    duration_seconds double First to last event, waiting included.
    active_seconds double From the first STARTING or RUNNING; null = never active.
    duration_rank long 1 = the flow of the update that worked longest (active_seconds, else duration_seconds).
    critical_seconds double Seconds in which no flow that ends later was active: what the update would gain without it.
    critical_share_pct double Share of the critical path of the update; null = the path has no length.
    is_bottleneck bool The flow with the largest share.
    usual_seconds double Median work of its 10 completed runs before, within 35 days; null = none.
    usual_runs long How many those are.
    times_usual double active_seconds (else duration_seconds) / usual_seconds; null = no usual.
    rows_written long Rows written; null = not reported.
    peak_backlog_bytes long Largest snapshot; null = not reported.
    listing_seconds double Longest Auto Loader listing: slow with few rows means waiting. Null = none reported.
    """,
)
BACKLOG_TRENDS = table(
    "backlog_trends",
    "one flow",
    "pipeline_id flow_name",
    """
    pipeline_id text Identity of the pipeline.
    flow_name text The flow.
    last_hour_ts time Newest hour of the flow.
    readings long Hourly readings looked at: at most 24, within 7 days of the newest hour.
    unit text bytes, records, files or seconds; null = the source reports none.
    latest_backlog long Newest reading; null = none.
    peak_backlog long Largest reading; null = none.
    earlier_median double Median of the older half of the readings.
    later_median double Median of the newer half of the readings.
    trend text growing (later median 20 % higher), shrinking, steady, stuck (unchanged, nothing written), none, unknown.
    """,
)
OPERATION_PROGRESS = table(
    "operation_progress",
    "one report about a listing, backfill, fetch or snapshot",
    "pipeline_id event_id",
    """
    pipeline_id text Identity of the pipeline.
    event_id text The event.
    event_ts time When.
    update_id text The update; null = outside any.
    flow_name text The flow; null = not given.
    dataset text Dataset as origin says; null = not given.
    operation_type text AUTO_LOADER_LISTING, AUTO_LOADER_BACKFILL, CONNECTOR_FETCH, CDC_SNAPSHOT, or another.
    status text STARTED, IN_PROGRESS, COMPLETED, CANCELED, FAILED, or another.
    duration_ms long Value of this operation so far or at its end; null = not said.
    progress_percent double Running position; null = not said.
    estimated_completion_ms long Point value; null = not said.
    source_path text Path that is listed; redacted. Null = not said.
    num_files_listed long Files listed; null = not said.
    target_table text Table that the snapshot fills; null = no snapshot.
    snapshot_ts time Time of the snapshot; null = no snapshot.
    snapshot_reason text Why it was taken; null = not said.
    """,
)
STREAM_PROGRESS = table(
    "stream_progress",
    "one report of the streaming engine about a micro-batch (EVOLVING)",
    "pipeline_id event_id",
    """
    pipeline_id text Identity of the pipeline.
    event_id text The event.
    event_ts time When it was logged.
    update_id text The update.
    flow_name text The flow; null = not given.
    maturity_level text EVOLVING as a rule: nothing should rest on it.
    stream_name text Name of the streaming query.
    stream_id text Id of the streaming query; stays over restarts.
    run_id text Id of its run.
    batch_id long Micro-batch.
    progress_ts time Time of the batch, which is not that of the event.
    trigger_ms long Time that the batch took, in ms.
    num_input_rows long Rows read, over all sources; null = not said.
    num_output_rows long Rows written; null = unknown to the engine.
    backlog_bytes long Bytes behind, over all sources; null = none says.
    backlog_files long Files behind, over all sources; null = none says.
    state_rows long Rows in state stores; null = no state.
    sink text The sink as described.
    sources sources Each source with offsets as JSON text and its backlog.
    is_truncated bool Whether an offset was cut.
    """,
)
CLUSTER_RESOURCES = table(
    "cluster_resources",
    "one report about load or scaling of a classic cluster",
    "pipeline_id event_id",
    """
    pipeline_id text Identity of the pipeline.
    event_id text The event.
    event_ts time When.
    update_id text The update; null = outside any.
    event_type text cluster_resources, cluster_utilization (older) or autoscale.
    num_executors long Executors; null = not said.
    num_task_slots long Task slots; null = not said.
    avg_num_task_slots double Mean over summary_duration_ms; null = not said.
    avg_task_slot_utilization double Share of busy slots, 0 to 1; null = not said.
    avg_num_queued_tasks double Mean of waiting tasks; null = not said.
    summary_duration_ms long Window of the means; null = not said.
    scaling_state text State or status of scaling; null = not said.
    optimal_num_executors long What would be right; null = not said.
    requested_num_executors long What was asked for last; null = not said.
    request_pending_seconds long How long that request waits; null = not said.
    """,
)
