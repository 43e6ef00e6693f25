"""What is unknown about an event: types, members and enum values that no documentation or log has shown us.

Each finding is a short path: `event_type`, `details.<type>.<member>`, `details.<type>.<member>=<value>`. Free-form
parts (configuration, options, offsets) are not looked into. Unknown things are stored like known ones; this only names
them, for the table `schema_drift`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from monitoring_platform.event_log.schema import ORIGIN_FIELDS
from monitoring_platform.event_log.values import to_text

_NAME_LIMIT, _FINDINGS = 120, 20

Tree = dict[str, Any]


def _tree(*names: str, **below: Tree) -> Tree:
    return {**dict.fromkeys(names), **below}


_ANY: Tree = {"*": None}  # free form: nothing below is new
_TABLE = _tree(
    "table_name", "table_id", "catalog_table_type", "partition_columns", "table_change_type", "full_size",
    "change_size", "num_changed_partitions", "is_size_after_pruning", "is_row_id_enabled", "is_cdf_enabled",
    "is_deletion_vector_enabled", "is_change_from_legacy_cdf",
)  # fmt: skip
_BACKLOG = ("backlog_bytes", "backlog_records", "backlog_files", "backlog_seconds")
_FIELD = _tree("name", "path", "data_type", "comment", "nullable", "metadata")
_CLUSTER = (
    "summary_duration_ms", "num_task_slots", "avg_num_task_slots", "avg_task_slot_utilization", "num_executors",
    "avg_num_queued_tasks", "state", "optimal_num_executors", "latest_requested_num_executors",
    "request_pending_seconds",
)  # fmt: skip
_ISSUE = _tree(
    "issue_type", "prevent_incrementalization", "operator_name", "expression_name", "join_type",
    "plan_not_incrementalizable_sub_type", "plan_not_deterministic_sub_type", "fingerprint_diff_before",
    "fingerprint_diff_current", "cost_model_rejection_subtype", table_information=_TABLE,
)  # fmt: skip
_RUNTIME = _tree("dbr_version")

#: Known members by event type. None = a value, a tree = an object or an array of objects.
KNOWN: dict[str, Tree] = {
    "create_update": _tree(
        "cause", "full_refresh", "full_refresh_selection", "refresh_selection", "failed_attempts", "run_as_user_id",
        "run_as", "validate_only", "explore_only", config=_ANY, runtime_version=_RUNTIME,
    ),
    "user_action": _tree("action", "user_name", "user_id"),
    "runtime_details": _tree(
        "dbr_version", "image_key", "effective_environment_version", runtime_version=_RUNTIME
    ),
    "update_progress": _tree("state", "cancellation_cause"),
    "flow_definition": _tree(
        "input_datasets", "output_dataset", "output_sink", "explain_text", "schema_json", "flow_type", "comment",
        "language", "once", schema=_FIELD, spark_conf=_ANY,
    ),
    "dataset_definition": _tree(
        "dataset_type", "num_flows", "schema_json",
        expectations=_tree("name", "dataset", "action", "policy", "on_violation"), schema=_FIELD,
    ),
    "sink_definition": _tree("format", options=_ANY),
    "flow_progress": _tree(
        "status",
        metrics=_tree(
            "num_output_rows", "num_upserted_rows", "num_deleted_rows", "num_output_bytes", "executor_time_ms",
            "executor_cpu_time_ms", *_BACKLOG, source_metrics=_tree("source_name", *_BACKLOG),
        ),
        data_quality=_tree(
            "dropped_records",
            # Samples and the last two of an expectation are said of recorded jobs, see event_log.job_events.
            expectations=_tree("name", "dataset", "passed_records", "failed_records", "failure_pct", "passed"),
            samples=_tree("dataset", row=_ANY),
        ),
        streaming_metrics=_tree(
            "discovery_latency_ms", "batch_processing_time_ms", event_time=_tree("min", "max")
        ),
    ),
    "operation_progress": _tree(
        "type", "status", "duration_ms", "progress_percent", "estimated_completion_ms",
        auto_loader_details=_tree("source_path", "num_files_listed"),
        cdc_snapshot=_tree("target_table_name", "table_name", "snapshot_timestamp", "snapshot_reason"),
    ),
    "stream_progress": _tree("progress_json", progress=_ANY),
    "planning_information": _tree(
        technique_information=_tree(
            "maintenance_type", "is_chosen", "is_applicable", "cost", incrementalization_issues=_ISSUE,
            change_set_information=_ANY,
        ),
        source_table_information=_TABLE,
        target_table_information=_TABLE,
    ),
    "cluster_resources": _tree(*_CLUSTER, task_slot_metrics=_tree(*_CLUSTER), autoscale_info=_tree(*_CLUSTER)),
    "cluster_utilization": _tree(*_CLUSTER),
    "autoscale": _tree("status", "optimal_num_executors", "requested_num_executors"),
    "hook_progress": _tree("name", "status"),
    "deprecation": _tree("message"),
    "behavior_change_in_spark_connect": _tree("issue"),
}  # fmt: skip

_MAINTENANCE = [
    "COMPLETE_RECOMPUTE", "NO_OP", "PARTITION_OVERWRITE", "ROW_BASED", "APPEND_ONLY", "GROUP_AGGREGATE",
    "GENERIC_AGGREGATE", "WINDOW_FUNCTION",
]  # fmt: skip
#: Known values of documented enums, by path; compared in upper case.
ENUMS: dict[str, frozenset[str]] = {
    "create_update.cause": frozenset(
        ["API_CALL", "INFRASTRUCTURE_MAINTENANCE", "JOB_TASK", "RETRY_ON_FAILURE", "SCHEMA_CHANGE", "SERVICE_UPGRADE",
         "USER_ACTION", "SCHEDULED"]
    ),
    "update_progress.state": frozenset(
        ["QUEUED", "CREATED", "WAITING_FOR_RESOURCES", "INITIALIZING", "RESETTING", "SETTING_UP_TABLES", "RUNNING",
         "STOPPING", "COMPLETED", "FAILED", "CANCELED", "CANCELLED"]
    ),
    "flow_progress.status": frozenset(
        ["QUEUED", "STARTING", "RUNNING", "IDLE", "PLANNING", "COMPLETED", "FAILED", "SKIPPED", "STOPPED", "EXCLUDED"]
    ),
    "flow_definition.flow_type": frozenset(
        ["COMPLETE", "CHANGE", "SNAPSHOT_CHANGE", "APPEND", "MATERIALIZED_VIEW", "VIEW"]
    ),
    "flow_definition.language": frozenset(["SQL", "PYTHON", "SCALA"]),
    "operation_progress.type": frozenset(
        ["AUTO_LOADER_LISTING", "AUTO_LOADER_BACKFILL", "CONNECTOR_FETCH", "CDC_SNAPSHOT"]
    ),
    "operation_progress.status": frozenset(["STARTED", "IN_PROGRESS", "COMPLETED", "CANCELED", "CANCELLED", "FAILED"]),
    "planning_information.technique_information.maintenance_type": frozenset(
        [*_MAINTENANCE, *(f"MAINTENANCE_TYPE_{name}" for name in _MAINTENANCE)]
    ),
    "planning_information.technique_information.incrementalization_issues.issue_type": frozenset(
        ["CDF_UNAVAILABLE", "DELTA_PROTOCOL_CHANGED", "DATA_SCHEMA_CHANGED", "PARTITION_SCHEMA_CHANGED",
         "INPUT_NOT_IN_DELTA", "DATA_FILE_MISSING", "PLAN_NOT_DETERMINISTIC", "PLAN_NOT_INCREMENTALIZABLE",
         "SERIALIZATION_VERSION_CHANGED", "QUERY_FINGERPRINT_CHANGED", "CONFIGURATION_CHANGED", "CHANGE_SET_MISSING",
         "EXPECTATIONS_NOT_SUPPORTED", "TOO_MANY_FILE_ACTIONS", "INCREMENTAL_PLAN_REJECTED_BY_COST_MODEL",
         "ROW_TRACKING_NOT_ENABLED", "TOO_MANY_PARTITIONS_CHANGED", "MAP_TYPE_NOT_SUPPORTED", "TIME_ZONE_CHANGED",
         "DATA_HAS_CHANGED", "PRIOR_TIMESTAMP_MISSING"]
    ),
}  # fmt: skip
#: Members of a row whose raw value may be kept although the name is known.
_CANONICAL = frozenset(
    ["id", "timestamp", "timestamp_ms", "message", "level", "maturity_level", "event_type", "origin", "sequence",
     "error", "details", "truncation", "pipeline_event_id", "event_time", "pipeline_id", "update_id", "account_id",
     "workspace_id"]
)  # fmt: skip
_ORIGIN = ORIGIN_FIELDS.keys() | {"source_code_location"}  # undocumented, but seen


class _Node(NamedTuple):
    """One object of a body: its path, known members, those with an enum, and those that are objects themselves."""

    path: str
    names: frozenset[str]
    enums: tuple[tuple[str, frozenset[str]], ...]
    below: tuple[tuple[str, Any], ...]  # name, _Node


def _node(path: str, tree: Tree) -> _Node:
    return _Node(
        path,
        frozenset(tree),
        tuple((name, ENUMS[f"{path}.{name}"]) for name in tree if f"{path}.{name}" in ENUMS),
        tuple((n, _node(f"{path}.{n}", below)) for n, below in tree.items() if below is not None and below is not _ANY),
    )


_NODES = {event_type: _node(event_type, tree) for event_type, tree in KNOWN.items()}


def unknown(event_type: str | None, details: Any, extra: dict[str, Any] | None) -> list[str] | None:
    """Paths of what is unknown about an event, sorted, at most 20; None for an event that holds nothing new.

    `extra` is what no canonical column could take: new columns of the log and new members of origin.
    """
    found: set[str] = set()
    if extra is not None:
        _new_columns(extra, found)
    node = _NODES.get(event_type or "")
    if node is None:
        found.add(f"event_type={event_type[:_NAME_LIMIT]}" if event_type else "event_type")
    elif isinstance(details, dict):
        for key, body in details.items():
            known = node if key == event_type else _NODES.get(key.lower())
            if known is None:
                found.add(f"details.{key[:_NAME_LIMIT]}")
            else:
                _compare(body, known, found)
    return sorted(found)[:_FINDINGS] if found else None


def _new_columns(extra: dict[str, Any], found: set[str]) -> None:
    origin = extra.get("origin")
    if isinstance(origin, dict):
        found.update(f"origin.{name[:_NAME_LIMIT]}" for name in origin.keys() - _ORIGIN)
    found.update(f"column.{name[:_NAME_LIMIT]}" for name in extra.keys() - _CANONICAL)


def _compare(value: Any, node: _Node, found: set[str]) -> None:
    if type(value) is list:
        for item in value:
            _compare(item, node, found)
        return
    if type(value) is not dict:
        return
    if not value.keys() <= node.names:
        found.update(f"details.{node.path}.{name[:_NAME_LIMIT]}" for name in value.keys() - node.names)
    for name, enum in node.enums:
        given = value.get(name)
        if given is not None and not (type(given) is str and given in enum):
            text = (to_text(given) or "").strip()
            if text and text.upper() not in enum:
                found.add(f"details.{node.path}.{name}={text[:_NAME_LIMIT]}")
    for name, below in node.below:
        item = value.get(name)
        if item:
            _compare(item, below, found)
