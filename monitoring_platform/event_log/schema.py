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

#: One struct for each kind of body, so that a question reads `operation.duration_ms`; null = another event type.
USER_ACTION = pa.struct([("action", STRING), ("user_name", STRING), ("user_id", STRING)])
OPERATION = pa.struct(
    [
        ("type", STRING),
        ("status", STRING),
        ("duration_ms", LONG),
        ("progress_percent", DOUBLE),
        ("estimated_completion_ms", LONG),
        ("source_path", STRING),
        ("num_files_listed", LONG),
        ("target_table", STRING),
        ("snapshot_ts", TIMESTAMP),
        ("snapshot_reason", STRING),
    ]
)
STREAM_SOURCE = pa.struct(
    [
        ("description", STRING),
        ("start_offset", STRING),
        ("end_offset", STRING),
        ("latest_offset", STRING),
        ("num_input_rows", LONG),
        ("backlog_bytes", LONG),
        ("backlog_files", LONG),
        ("max_offsets_behind", LONG),
    ]
)
STREAM = pa.struct(
    [
        ("stream_id", STRING),
        ("run_id", STRING),
        ("name", STRING),
        ("batch_id", LONG),
        ("progress_ts", TIMESTAMP),
        ("trigger_ms", LONG),
        ("num_input_rows", LONG),
        ("num_output_rows", LONG),
        ("sink", STRING),
        ("state_rows", LONG),
        ("backlog_bytes", LONG),
        ("backlog_files", LONG),
        ("sources", pa.list_(STREAM_SOURCE)),
        ("is_truncated", BOOL),
    ]
)
PLANNED_TABLE = pa.struct(
    [
        ("table_name", STRING),
        ("change_type", STRING),
        ("full_size", LONG),
        ("change_size", LONG),
        ("num_changed_partitions", LONG),
        ("is_cdf_enabled", BOOL),
        ("is_row_id_enabled", BOOL),
        ("is_deletion_vector_enabled", BOOL),
    ]
)
PLANNING = pa.struct(
    [
        ("chosen", STRING),
        ("technique", STRING),
        ("reasons", STRING),
        ("offending_tables", STRING),
        ("offending_expressions", STRING),
        (
            "techniques",
            pa.list_(
                pa.struct(
                    [("maintenance_type", STRING), ("is_chosen", BOOL), ("is_applicable", BOOL), ("cost", DOUBLE)]
                )
            ),
        ),
        (
            "issues",
            pa.list_(
                pa.struct(
                    [
                        ("maintenance_type", STRING),
                        ("issue_type", STRING),
                        ("sub_type", STRING),
                        ("prevents", BOOL),
                        ("table_name", STRING),
                        ("expression", STRING),
                    ]
                )
            ),
        ),
        ("sources", pa.list_(PLANNED_TABLE)),
        ("target", PLANNED_TABLE),
    ]
)
CLUSTER = pa.struct(
    [
        ("num_task_slots", LONG),
        ("avg_num_task_slots", DOUBLE),
        ("avg_task_slot_utilization", DOUBLE),
        ("num_executors", LONG),
        ("avg_num_queued_tasks", DOUBLE),
        ("summary_duration_ms", LONG),
        ("scaling_state", STRING),
        ("optimal_num_executors", LONG),
        ("requested_num_executors", LONG),
        ("request_pending_seconds", LONG),
    ]
)
FIELD = pa.struct([("name", STRING), ("data_type", STRING), ("comment", STRING)])
DEFINITION = pa.struct(
    [
        ("input_datasets", pa.list_(STRING)),
        ("output_sink", STRING),
        ("flow_type", STRING),
        ("language", STRING),
        ("once", BOOL),
        ("comment", STRING),
        ("explain_text", STRING),
    ]
)
DATASET = pa.struct(
    [
        ("dataset_type", STRING),
        ("num_flows", LONG),
        ("rules", pa.list_(pa.struct([("name", STRING), ("dataset", STRING), ("action", STRING)]))),
    ]
)
ROOT_ERROR = pa.struct(
    [
        ("message", STRING),
        ("class_name", STRING),
        ("error_class", STRING),
        ("sql_state", STRING),
        ("fingerprint", STRING),
    ]
)
NOTICE = pa.struct([("name", STRING), ("text", STRING)])

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
    Column("catalog_name", STRING, "origin.catalog_name; null = not given."),
    Column("schema_name", STRING, "origin.schema_name; null = not given."),
    Column("sink_name", STRING, "origin.sink_name; null = not given."),
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
    Column(
        "run_as", STRING, "create_update: on whose behalf the update runs; a pseudonym by setting. Null = not said."
    ),
    Column("image_key", STRING, "runtime_details.image_key; null = not given."),
    Column("environment_version", STRING, "runtime_details.effective_environment_version; null = not given."),
    Column("user_action", USER_ACTION, "Body of user_action, persons by setting as pseudonyms; null = another type."),
    Column("operation", OPERATION, "Body of operation_progress; null = another type."),
    Column("stream", STREAM, "Body of stream_progress, either documented shape; null = another type or unreadable."),
    Column("planning", PLANNING, "Body of planning_information; null = another type."),
    Column("cluster", CLUSTER, "Body of cluster_resources, cluster_utilization or autoscale; null = another type."),
    Column("definition", DEFINITION, "Body of flow_definition; null = another type."),
    Column("dataset", DATASET, "Body of dataset_definition; null = another type."),
    Column("fields", pa.list_(FIELD), "Schema in flow_definition or dataset_definition; null = none given."),
    Column("sink_format", STRING, "sink_definition.format; null = another type."),
    Column("hook", NOTICE, "hook_progress: name and status; null = another type."),
    Column("notice", NOTICE, "deprecation and behaviour changes: code or issue, and text; null = another type."),
    Column("drift", pa.list_(STRING), "What is unknown about this event, see event_log.drift; null = nothing."),
    Column("root_error", ROOT_ERROR, "Deepest cause, code and fingerprint of the error, see event_log.rootcause."),
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
