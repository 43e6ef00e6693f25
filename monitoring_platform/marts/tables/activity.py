"""Pipelines and tables over time: days, and the state of now."""

from monitoring_platform.marts.tables.contract import table

DAILY_TRENDS = table(
    "daily_trends",
    "one pipeline on one UTC day; internal runs left out",
    "pipeline_id day",
    """
    pipeline_id text Identity of the pipeline.
    day date UTC day: of the start of updates and requests, of the batches of rows.
    runs long Updates (attempts) begun.
    completed_runs long Of these COMPLETED.
    failed_runs long Of these FAILED.
    canceled_runs long Of these CANCELED.
    open_runs long Of these without an end.
    retries long Of these second and later attempts.
    requests long Requests begun.
    failed_requests long Of these with outcome FAILED.
    open_requests long Of these still open.
    run_failure_pct double 100 × failed / ended updates; null = none ended.
    request_failure_pct double 100 × failed / ended requests; null = none ended.
    avg_duration_seconds double Mean of ended updates; null = none.
    max_duration_seconds double Longest of them.
    p50_duration_seconds double Median of them.
    p95_duration_seconds double 95th percentile of them.
    rows_written long Rows written on this day; null = not reported.
    rows_dropped long Records dropped on this day; null = no quality data.
    batches long Batches ended on this day; null = no flow reported.
    """,
)
TABLE_STATUS = table(
    "table_status",
    "one dataset that a pipeline writes",
    "pipeline_id dataset",
    """
    pipeline_id text Identity of the pipeline.
    dataset text The dataset as flow_metrics names it.
    latest_update_id text Newest normal update that ran a flow of it.
    latest_status text Status of that flow; null = none said.
    latest_run_ts time Start of that update.
    latest_success_update_id text Newest update in which a flow of it completed; null = none.
    latest_success_ts time End of the newest flow that completed: how fresh the table is. Null = none.
    latest_failure_update_id text Newest update in which a flow of it failed; null = none.
    latest_failure_ts time End of the newest flow that failed; null = none.
    latest_change_ts time Newest event of a flow that wrote rows; null = none reported any.
    flow_names texts Flows that write it, sorted.
    """,
)
PIPELINE_ACTIVITY = table(
    "pipeline_activity",
    "one pipeline, by its own log; internal runs left out",
    "pipeline_id",
    """
    pipeline_id text Identity of the pipeline.
    latest_request_id text Newest request.
    latest_update_id text Its last attempt.
    latest_outcome text State of that attempt.
    is_open bool Whether it has not ended.
    is_retrying bool Whether it is open after a failed attempt.
    latest_start_ts time When the request began.
    last_success_ts time End of the newest request that completed; null = none. The age of the data.
    last_failure_ts time End of the newest request that failed; null = none.
    last_error_class text Code of the first real error of that request; null = none.
    last_error text Its text, redacted; null = none.
    last_error_fingerprint text Its fingerprint; null = none.
    requests_7d long Requests in the 7 days up to the newest one.
    failed_requests_7d long Of these failed.
    latest_rows_written long Rows of the newest completed update; null = not reported.
    last_change_ts time End of the newest completed update that wrote rows; null = none reported any.
    worst_pass_rate_pct double Lowest pass rate of the newest update with results; null = none.
    usual_seconds_now double Median duration of the 5 newest completed updates; null = none.
    usual_seconds_before double Median of the 10 before; null = none.
    duration_trend text slower or faster (by 20 %), steady, unknown (fewer than 3 updates before).
    """,
)
PIPELINE_HEALTH = table(
    "pipeline_health",
    "one pipeline of the ledger: all that matters about it now",
    "pipeline_id",
    """
    pipeline_id text Identity of the pipeline.
    pipeline_name text Newest name; null = none yet.
    owner text From the configuration; null = nobody.
    state text Coverage state from the ledger.
    reason text Why it has this state.
    remedy text What to do about it; null = nothing.
    latest_request_id text Newest request; null = none seen.
    latest_update_id text Its last attempt.
    latest_outcome text State of that attempt.
    is_open bool Whether it has not ended.
    is_retrying bool Whether it is open after a failed attempt.
    latest_start_ts time When the request began.
    last_success_ts time End of the newest request that completed: freshness counts from here. Null = none.
    last_failure_ts time End of the newest request that failed; null = none.
    last_error_class text Code of the first real error of that request; null = none.
    last_error text Its text, redacted; null = none.
    last_error_fingerprint text Its fingerprint; null = none.
    last_change_ts time End of the newest completed update that wrote rows; null = none reported any.
    last_event_ts time Newest event; null = none.
    requests_7d long Requests in the 7 days up to the newest one.
    failed_requests_7d long Of these failed.
    latest_rows_written long Rows of the newest completed update; null = not reported.
    worst_pass_rate_pct double Lowest pass rate of the newest update with results; null = none.
    usual_seconds_now double Median duration of the 5 newest completed updates; null = none.
    usual_seconds_before double Median of the 10 before; null = none.
    duration_trend text slower or faster (by 20 %), steady, unknown.
    open_problems texts What is wrong now, in words; empty = nothing known.
    problem_count long How many these are.
    """,
)
