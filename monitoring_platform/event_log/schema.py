"""The canonical event: the columns of `all_pipelines_event_log`, with their contracts.

Columns that are filtered or merged on come first: Delta keeps statistics for the first 32 leaf columns only.
Source of names and types: the event-log schema published by the vendor, and its REST reference.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa


class Column(NamedTuple):
    """One column of a table contract. `doc` says grain, unit and the meaning of null."""

    name: str
    type: pa.DataType
    doc: str


TIMESTAMP = pa.timestamp("us", tz="UTC")
STRING, LONG, BOOL, DOUBLE = pa.string(), pa.int64(), pa.bool_(), pa.float64()

#: `origin` of the log; everything is optional. Numbers are BIGINT, the rest text.
ORIGIN_FIELDS: dict[str, pa.DataType] = {
    name: LONG if name in ("org_id", "user_id", "batch_id") else STRING
    for name in [
        "cloud",
        "region",
        "org_id",
        "user_id",
        "pipeline_id",
        "pipeline_type",
        "pipeline_name",
        "cluster_id",
        "update_id",
        "maintenance_id",
        "table_id",
        "table_name",
        "flow_id",
        "flow_name",
        "batch_id",
        "request_id",
        "uc_resource_id",
        "dataset_name",
        "sink_name",
        "catalog_name",
        "schema_name",
        "materialization_name",
        "operation_id",
        "flow_attempt_id",
        "source_name",
        "uc_table_id",
        "ingestion_source_type",
        "uc_parent_table_id",
        "host",
        "ingestion_source_catalog_name",
        "ingestion_source_connection_name",
        "ingestion_source_schema_name",
        "ingestion_source_table_name",
        "ingestion_source_table_version",
    ]
}
ORIGIN = pa.struct(list(ORIGIN_FIELDS.items()))
SEQUENCE = pa.struct(
    [
        ("data_plane_id", pa.struct([("instance", STRING), ("seq_no", LONG)])),
        ("control_plane_seq_no", LONG),
    ]
)
STACK_FRAME = pa.struct(
    [("declaring_class", STRING), ("method_name", STRING), ("file_name", STRING), ("line_number", LONG)]
)
EXCEPTION = pa.struct(
    [
        ("class_name", STRING),
        ("message", STRING),
        ("error_class", STRING),
        ("sql_state", STRING),
        ("stack", pa.list_(STACK_FRAME)),
    ]
)
ERROR = pa.struct([("fatal", BOOL), ("exceptions", pa.list_(EXCEPTION))])
EXPECTATION = pa.struct([("name", STRING), ("dataset", STRING), ("passed_records", LONG), ("failed_records", LONG)])

#: Counters and snapshots of `flow_progress.metrics`; a negative or unreadable number is null.
FLOW_METRICS = [
    "num_output_rows",
    "num_upserted_rows",
    "num_deleted_rows",
    "num_output_bytes",
    "executor_time_ms",
    "executor_cpu_time_ms",
    "backlog_bytes",
    "backlog_records",
    "backlog_files",
    "backlog_seconds",
]

_METRIC_KIND = "cumulative inside a (flow, batch_id), delta for gateway METRICS rows; null = not reported"
_BACKLOG_KIND = "snapshot at event_ts; null = the source reports none"

EVENT_COLUMNS: tuple[Column, ...] = (
    Column(
        "pipeline_id", STRING, "Identity of the pipeline (origin.pipeline_id, else the source's setting). Never null."
    ),
    Column(
        "event_id", STRING, "The log's id, unique within a pipeline; derived from the content and flagged if absent."
    ),
    Column("event_ts", TIMESTAMP, "The log's timestamp, a UTC instant cut to microseconds. Never null."),
    Column("event_date", pa.date32(), "UTC date of event_ts; partition column."),
    Column("update_id", STRING, "Update (attempt) the event belongs to; null = outside any update."),
    Column("event_type", STRING, "Type in lower case; inferred from details where absent; null = unknown."),
    Column("level", STRING, "INFO, WARN, ERROR, METRICS, or what the log says."),
    Column("flow_name", STRING, "origin.flow_name, else the name in details, as written; null = not about a flow."),
    Column("flow_id", STRING, "Changes at full refresh or checkpoint reset; null = not given."),
    Column("request_id", STRING, "What was asked for; shared by retries. Null = not given."),
    Column("batch_id", LONG, "Micro-batch of the flow; null = not a batch."),
    Column("dataset_name", STRING, "origin.dataset_name, else origin.table_name; null = not given."),
    Column("pipeline_name", STRING, "Name at the time of the event; neither unique nor stable."),
    Column("pipeline_type", STRING, "WORKSPACE, DBSQL, MANAGED_INGESTION, INGESTION_GATEWAY, …; null = not given."),
    Column("maintenance_id", STRING, "Maintenance run the event belongs to; null = none."),
    Column("maturity_level", STRING, "STABLE, EVOLVING, DEPRECATED; null (old rows) counts as STABLE."),
    Column("update_state", STRING, "State carried by update_progress, CANCELLED spelt CANCELED; null = none."),
    Column("cancellation_cause", STRING, "update_progress.cancellation_cause; null = none."),
    Column("cause", STRING, "create_update.cause; null = not said."),
    Column("full_refresh", BOOL, "create_update.full_refresh; null = not said."),
    Column("validate_only", BOOL, "create_update.validate_only; null = not said (counts as false)."),
    Column("explore_only", BOOL, "create_update.explore_only; null = not said (counts as false)."),
    Column("failed_attempts", LONG, "create_update.failed_attempts: attempts before this one; null = not said."),
    Column("serverless", BOOL, "Setting in force at create_update; null = unknown, not classic."),
    Column("continuous", BOOL, "Setting in force; null = unknown."),
    Column("development", BOOL, "Setting in force; null = unknown."),
    Column("photon", BOOL, "Setting in force; null = unknown."),
    Column("edition", STRING, "Setting in force; null = unknown."),
    Column("channel", STRING, "Setting in force; null = unknown."),
    Column("default_catalog", STRING, "config.catalog of create_update; null = unknown."),
    Column("default_schema", STRING, "config.schema, else config.target; null = unknown."),
    Column("dbr_version", STRING, "Runtime version as text, from runtime_details or create_update; null = not said."),
    Column("flow_status", STRING, "flow_progress.status as it comes; null = this row carries none."),
    *(
        Column(name, LONG, _BACKLOG_KIND if name.startswith("backlog") else f"flow_progress.metrics: {_METRIC_KIND}.")
        for name in FLOW_METRICS
    ),
    Column("dropped_records", LONG, f"flow_progress.data_quality.dropped_records: {_METRIC_KIND}."),
    Column("expectations", pa.list_(EXPECTATION), f"Rules reported by this event: {_METRIC_KIND}."),
    Column("event_time_min", TIMESTAMP, "streaming_metrics.event_time.min; null = not reported."),
    Column("event_time_max", TIMESTAMP, "streaming_metrics.event_time.max; null = not reported."),
    Column("discovery_latency_ms", LONG, "Gateway, point value in ms; null = not reported."),
    Column("batch_processing_time_ms", LONG, "Gateway, point value in ms; null = not reported."),
    Column("output_dataset", STRING, "flow_definition.output_dataset; null = not a flow definition."),
    Column("error_fatal", BOOL, "error.fatal; null = no error or not said."),
    Column("exception_class", STRING, "Class of the first exception; null = none."),
    Column("exception_message", STRING, "Message of the first exception, redacted; null = none."),
    Column(
        "error_class", STRING, "Code in brackets at the start of the first exception's message, else its error_class."
    ),
    Column("sql_state", STRING, "sql_state of the first exception; null = not given."),
    Column("message", STRING, "For people only, redacted; may be null."),
    Column("sequence", SEQUENCE, "Ordering numbers; either half may be null."),
    Column("origin", ORIGIN, "Where the event comes from; all fields optional."),
    Column("error", ERROR, "The error as logged, redacted; exceptions may be null though the struct is not."),
    Column("details", STRING, "JSON text as logged, after redaction; null = none."),
    Column("extra", STRING, "JSON map of members no column has (new columns, unreadable structs); null = none."),
    Column(
        "flags", pa.list_(STRING), "What was odd or assumed about this row, see event_log.normalise; null = nothing."
    ),
    Column("_source_pipeline", STRING, "Name of the pipeline the row came from, its id where no name is given."),
    Column("_source", STRING, "Access path: type of the source (files, delta)."),
    Column("_log", STRING, "Place of the log: file or table."),
    Column("_ingested_at", TIMESTAMP, "Clock of the run that ingested the row."),
)

#: Landing adds the identity of a delivered row, so that the union can choose among repeats without wide sorts.
LANDING_COLUMNS: tuple[Column, ...] = (
    *EVENT_COLUMNS,
    Column("_ingest_id", STRING, "One id for each landing commit."),
    Column("_row", LONG, "Number of the row within its landing commit."),
)

QUARANTINE_COLUMNS: tuple[Column, ...] = (
    Column("quarantine_id", STRING, "Stable key: the same trouble at the same place is one row."),
    Column("reason", STRING, "What is wrong, in words."),
    Column("pipeline_id", STRING, "Pipeline, where it is known."),
    Column("event_id", STRING, "The log's id, where it is known."),
    Column("raw", STRING, "The text as delivered, redacted, cut at 64 KiB."),
    Column("_source", STRING, "Type of the source."),
    Column("_log", STRING, "File or table."),
    Column("position", STRING, "Line, element or row within the log."),
    Column("_ingested_at", TIMESTAMP, "Clock of the run that put it here."),
)


def arrow_schema(columns: tuple[Column, ...]) -> pa.Schema:
    """The Arrow schema of a table contract."""
    return pa.schema([(c.name, c.type) for c in columns])


LANDING = arrow_schema(LANDING_COLUMNS)
EVENT = arrow_schema(EVENT_COLUMNS)
QUARANTINE = arrow_schema(QUARANTINE_COLUMNS)
