"""Updates, requests, and how they fail."""

from monitoring_platform.marts.tables.contract import table

PIPELINE_RUNS = table(
    "pipeline_runs",
    "one update (attempt) of a pipeline",
    "pipeline_id update_id",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update (one attempt).
    pipeline_name text Name at the time of the update; null = never said.
    pipeline_type text origin.pipeline_type; null = never said.
    status text Last update state; a terminal one is not overruled by a later other one. Null = no state seen.
    cause text Why it started (create_update.cause); null = create_update not seen.
    cancellation_cause text Why it was canceled; null = it was not, or not said.
    run_as text On whose behalf it runs; a pseudonym by setting. Null = not said.
    started_by text Person whose START action names the update; a pseudonym by setting. Null = the log does not say.
    run_kind text normal, or an internal run: explore, validate, maintenance.
    request_id text The request: own request_id, else that of the chain of retries, else the head's update_id.
    own_request_id text request_id that the events carry; null = none.
    failed_attempts long Attempts before this one by create_update; null = not said.
    attempt_number long 1 for the first attempt of the request.
    is_full_refresh bool create_update.full_refresh; null = not said.
    start_ts time Earliest event of the update.
    end_ts time Time of the terminal state; null = open.
    last_event_ts time Newest event; null = all are dated in the far future.
    event_dates dates UTC dates on which the update has events, sorted.
    duration_seconds double start_ts to end_ts; null = open, or clocks ran backwards.
    queued_seconds double Time from this state to the next one; null = state not seen, or no next one yet.
    created_seconds double Likewise, CREATED.
    waiting_seconds double Likewise, WAITING_FOR_RESOURCES.
    initializing_seconds double Likewise, INITIALIZING.
    resetting_seconds double Likewise, RESETTING.
    setting_up_seconds double Likewise, SETTING_UP_TABLES.
    running_seconds double Likewise, RUNNING.
    stopping_seconds double Likewise, STOPPING.
    flow_count long Distinct real flows.
    flows_with_metrics long Distinct real flows that reported any metric.
    rows_output long Appended rows of all flows; null = never reported, or too large for a BIGINT.
    rows_upserted long Upserted rows of all flows; null likewise.
    rows_deleted long Deleted rows of all flows; null likewise.
    rows_written long Output + upserted + deleted; null = none was reported.
    rows_dropped long Records dropped by expectations; null = no quality data.
    output_bytes long Bytes written; null = never reported.
    event_count long Events of the update.
    error_count long Events at level ERROR (rows, not failures).
    serverless bool Setting in force; null = unknown.
    continuous bool Setting in force; null = unknown.
    development bool Setting in force; null = unknown.
    photon bool Setting in force; null = unknown.
    edition text Setting in force; null = unknown.
    channel text Setting in force; null = unknown.
    catalog text Default catalog of the pipeline; null = unknown.
    target text Default schema of the pipeline; null = unknown.
    dbr_version text Runtime version; null = not said.
    has_conflicting_end bool Two different terminal states were logged; the later one counts.
    has_inferred_state bool A state was read from the message because details were missing.
    """,
)
REQUESTS = table(
    "requests",
    "one request with all its attempts",
    "pipeline_id request_id",
    """
    pipeline_id text Identity of the pipeline.
    request_id text What was asked for; shared by retries.
    pipeline_name text Name at the time of the last attempt.
    run_kind text normal, or explore, validate, maintenance.
    cause text Cause of the first attempt seen; null = not seen.
    attempts long Number of the last attempt.
    attempts_seen long Attempts that the log shows.
    failed_attempts long Attempts seen that ended FAILED.
    first_update_id text First attempt seen.
    last_update_id text Last attempt.
    outcome text State of the last attempt; a state that is not terminal means that the request is open.
    previous_attempt_status text State of the attempt before the last; null = there is none.
    is_open bool Whether the last attempt has not ended.
    start_ts time Start of the first attempt seen.
    last_start_ts time Start of the last attempt.
    end_ts time End of the last attempt; null = open.
    duration_seconds double Start of the first attempt to the end of the last; null = open.
    time_to_recovery_seconds double First failure to the success that ended the request; null without either.
    """,
)
EVENTS_SUMMARY = table(
    "events_summary",
    "one update (attempt) of a pipeline",
    "pipeline_id update_id",
    """
    pipeline_name text Name at the time of the update.
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    run_status text Last update state.
    trigger_cause text Why it started; null = create_update not seen.
    is_full_refresh bool Null = not said.
    dbr_version text Runtime version; null = not said.
    compute_type text Serverless or Classic; null = unknown.
    run_start_time time Earliest event.
    run_end_time time Terminal state; null = open.
    duration_minutes double Rounded to 2 decimals; null = open.
    tables_processed long Distinct real flows with metrics.
    total_upserted_rows long Null = never reported.
    total_deleted_rows long Null = never reported.
    total_rows_affected long Appended + upserted + deleted; null = none was reported.
    total_dropped_records long Null = no quality data.
    """,
)
PIPELINE_ERRORS = table(
    "pipeline_errors",
    "one event at level ERROR, or another one that carries an error",
    "pipeline_id event_id",
    """
    pipeline_id text Identity of the pipeline.
    event_id text The event.
    event_ts time When.
    pipeline_name text Name at that time.
    update_id text The update; null = outside any.
    flow_name text The flow; null = the error belongs to the update or pipeline.
    flow_id text The flow's id; null = not given.
    event_type text Any type can carry an error.
    level text ERROR, or WARN and others for warnings.
    is_warning bool Not at level ERROR: kept, but no failure.
    message text Message of the first exception, else of the event; redacted.
    event_message text Message of the event; redacted.
    exception_class text Class of the first exception; null = none.
    error_class text Code in brackets at the start of the first exception's message, else its error_class; null = none.
    sql_state text sql_state; null = not given.
    fatal bool error.fatal; null = not said.
    root_message text Message of the deepest exception, else of the event; null = neither.
    root_exception_class text Class of the deepest exception; null = none.
    root_error_class text Code of the deepest exception that has one; null = none.
    root_sql_state text SQL state of the deepest exception that has one, also from its text; null = none.
    fingerprint text Same for the same error anywhere: ids, numbers, quoted names, times and paths masked.
    """,
)
FAILURES = table(
    "failures",
    "one update that failed or was refused, with its root error",
    "pipeline_id update_id",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    kind text failed, or refused (another update was running): no failure of the data.
    pipeline_name text Name at the time of the update; null = never said.
    run_kind text normal, or explore, validate, maintenance.
    start_ts time Start of the update.
    failed_at time Terminal state, else the error, else the newest event.
    event_id text Event that carries the root error; null = the update failed without any.
    flow_name text Flow that failed; null = the error belongs to the update.
    error_class text Code in brackets of the deepest exception that has one; null = none.
    sql_state text SQL state, given or stated in the text; null = none.
    exception_class text Class of the deepest exception; null = none.
    message text Message of the deepest exception, else of the event; redacted. Null = no error text.
    fingerprint text Same for the same error anywhere; null = no error text.
    error_events long Events at level ERROR of the update: rows, not failures.
    """,
)
ERROR_GROUPS = table(
    "error_groups",
    "one root error, in however many runs and pipelines",
    "fingerprint",
    """
    fingerprint text The error with ids, numbers, quoted names, times and paths masked.
    error_class text Code of its newest occurrence; null = none.
    sql_state text SQL state of its newest occurrence; null = none.
    exception_class text Class of its newest occurrence; null = none.
    latest_message text Message of its newest occurrence; redacted.
    latest_pipeline_id text Where it struck last.
    latest_update_id text In which update it struck last.
    failures long Updates that failed with it.
    pipeline_count long Distinct pipelines.
    pipeline_ids texts Those pipelines, sorted.
    flow_names texts Flows that failed with it, sorted.
    first_seen time First failure.
    last_seen time Newest failure.
    """,
)
FAILURE_HOURS = table(
    "failure_hours",
    "one error of one flow at one hour of one weekday, in the configured time zone",
    "pipeline_id weekday hour flow_name fingerprint",
    """
    pipeline_id text Identity of the pipeline.
    weekday int 1 = Monday to 7 = Sunday, of the start of the run.
    hour int 0 to 23, of the start of the run.
    flow_name text Flow that failed; empty = the error belongs to the update.
    fingerprint text The error; empty = no error text.
    time_zone text Time zone of weekday and hour.
    error_class text Code of the newest occurrence; null = none.
    latest_message text Message of the newest occurrence; redacted.
    failures long Failed normal updates.
    first_seen time First of them.
    last_seen time Newest of them.
    """,
)
USER_ACTIONS = table(
    "user_actions",
    "one thing that a person asked of a pipeline",
    "pipeline_id event_id",
    """
    pipeline_id text Identity of the pipeline.
    event_id text The event.
    event_ts time When.
    pipeline_name text Name at that time.
    update_id text Update that it led to; often null.
    action text START, CREATE, STOP, EDIT and others, upper case.
    user_name text Who; a pseudonym by setting. Null = not said.
    user_id text Id of who, likewise.
    message text Message of the event; redacted.
    """,
)
RUNTIME_DETAILS = table(
    "runtime_details",
    "the runtime of one update",
    "pipeline_id update_id",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    dbr_version text Runtime version as text; runtime_details first, else create_update. Null = not said.
    image_key text Image of the runtime; null = not said.
    environment_version text Version of the serverless environment; null = not said.
    """,
)
