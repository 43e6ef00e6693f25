"""The marts: contract, grain and what each one is computed from.

A new table is one .sql file, one entry here and one test. The SQL reads `events` (scope update: all events of the
touched updates; scope event: the new events) or `runs` (scope pipeline: all runs of the touched pipelines).
"""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, NamedTuple

import pyarrow as pa

from monitoring_platform.event_log.schema import BOOL, DOUBLE, LONG, STRING, TIMESTAMP, Column
from monitoring_platform.warehouse.contracts import Table

_TYPES: dict[str, pa.DataType] = {
    "text": STRING,
    "long": LONG,
    "double": DOUBLE,
    "bool": BOOL,
    "time": TIMESTAMP,
    "dates": pa.list_(pa.date32()),
}


class Mart(NamedTuple):
    """A downstream table. `upstream` is another mart, or None for the union itself."""

    table: Table
    scope: Literal["update", "event", "pipeline"]
    upstream: str | None = None

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def sql(self) -> str:
        return (files(__package__) / f"{self.name}.sql").read_text(encoding="utf-8")


def _table(name: str, grain: str, keys: str, columns: str) -> Table:
    """A contract from lines `column type description`."""
    parsed = [line.split(maxsplit=2) for line in columns.strip().splitlines()]
    return Table(name, grain, tuple(keys.split()), tuple(Column(n, _TYPES[t], doc) for n, t, doc in parsed))


FLOW_METRICS = _table(
    "flow_metrics",
    "one flow in one update",
    "pipeline_id update_id flow_name",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    flow_name text Name of the flow as written; the vendor's placeholder and nameless rows are no flows.
    flow_id text Newest flow_id in this update; changes at full refresh. Null = never given.
    dataset text What the flow writes: flow_definition.output_dataset, else origin.dataset_name, else the flow name.
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
    batch_count long Distinct batches seen; 0 = rows without batch.
    event_count long flow_progress events of the flow.
    has_metrics bool Whether any event carried a metric.
    metric_basis text How counters were totalled: batch_max, event_sum, delta_sum, joined by comma; null = no counters.
    output_overflow bool rows_output is null because the sum does not fit.
    upserted_overflow bool rows_upserted is null because the sum does not fit.
    deleted_overflow bool rows_deleted is null because the sum does not fit.
    """,
)
PIPELINE_RUNS = _table(
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
REQUESTS = _table(
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
    end_ts time End of the last attempt; null = open.
    duration_seconds double Start of the first attempt to the end of the last; null = open.
    time_to_recovery_seconds double First failure to the success that ended the request; null without either.
    """,
)
EXPECTATION_RESULTS = _table(
    "expectation_results",
    "one data-quality rule on one dataset in one update",
    "pipeline_id update_id dataset expectation",
    """
    pipeline_id text Identity of the pipeline.
    update_id text The update.
    dataset text Dataset as written in the log, the fullest spelling where there are several.
    expectation text Name of the rule.
    qualified_dataset text Dataset with catalog and schema as far as known, without back-ticks.
    flow_names text Flows that reported the rule, joined by comma.
    passed_records long Maximum in each batch, summed; null = never reported.
    failed_records long Likewise; says nothing about what was done with the records.
    evaluated_records long passed + failed; null = one of them is unknown.
    pass_rate_pct double 100 × passed / (passed + failed), unrounded; null at 0 of 0.
    failed_pct double 100 × failed / (passed + failed), unrounded; null at 0 of 0.
    last_event_ts time Newest event that reported the rule.
    """,
)
PIPELINE_ERRORS = _table(
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
    """,
)
EVENTS_SUMMARY = _table(
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

#: In the order of a cycle: what others are computed from comes first.
MARTS: tuple[Mart, ...] = (
    Mart(FLOW_METRICS, "update"),
    Mart(PIPELINE_RUNS, "update"),
    Mart(REQUESTS, "pipeline", PIPELINE_RUNS.name),
    Mart(EXPECTATION_RESULTS, "update"),
    Mart(PIPELINE_ERRORS, "event"),
    Mart(EVENTS_SUMMARY, "pipeline", PIPELINE_RUNS.name),
)
BY_NAME: dict[str, Mart] = {mart.name: mart for mart in MARTS}
TABLES: tuple[Table, ...] = tuple(mart.table for mart in MARTS)
