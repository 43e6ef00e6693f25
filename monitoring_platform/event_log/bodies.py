"""Bodies of the event types beside updates and flow progress: each reader fills one typed struct column.

Where the documentation shows two shapes of one field both are read. A value of a wrong type is null; the text keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from monitoring_platform.event_log import jsontext
from monitoring_platform.event_log.values import (
    as_dict,
    as_objects,
    from_millis,
    to_bool,
    to_count,
    to_double,
    to_id,
    to_instant,
    to_text,
)

Facts = dict[str, Any]


def user_action(body: Facts, facts: Facts) -> None:
    facts["user_action"] = {
        "action": to_id(body.get("action")),
        "user_name": to_id(body.get("user_name")),
        "user_id": to_id(body.get("user_id")),
    }


def operation_progress(body: Facts, facts: Facts) -> None:
    loader, snapshot = as_dict(body.get("auto_loader_details")), as_dict(body.get("cdc_snapshot"))
    taken = from_millis(snapshot.get("snapshot_timestamp")) or to_instant(snapshot.get("snapshot_timestamp"))
    facts["operation"] = {
        "type": _enum(body.get("type")),
        "status": _enum(body.get("status")),
        "duration_ms": to_count(body.get("duration_ms")),
        "progress_percent": to_double(body.get("progress_percent")),
        "estimated_completion_ms": to_count(body.get("estimated_completion_ms")),
        "source_path": to_text(loader.get("source_path")),
        "num_files_listed": to_count(loader.get("num_files_listed")),
        "target_table": to_text(snapshot.get("target_table_name")) or to_text(snapshot.get("table_name")),
        "snapshot_ts": taken.micros if taken else None,
        "snapshot_reason": to_id(snapshot.get("snapshot_reason")),
    }


def stream_progress(body: Facts, facts: Facts) -> None:
    progress = body.get("progress")
    if not isinstance(progress, dict):
        try:
            progress = jsontext.loads(str(body.get("progress_json") or progress))
        except jsontext.INVALID:
            return
    if not isinstance(progress, dict):
        return
    given = as_objects(progress.get("sources"))
    sources = [_stream_source(source) for source in given]
    sink, ended = as_dict(progress.get("sink")), to_instant(progress.get("timestamp"))
    operators = [{"rows": to_count(o.get("numRowsTotal"))} for o in as_objects(progress.get("stateOperators"))]
    facts["stream"] = {
        "stream_id": to_id(progress.get("id")),
        "run_id": to_id(progress.get("runId")),
        "name": to_text(progress.get("name")),
        "batch_id": to_count(progress.get("batchId")),
        "progress_ts": ended.micros if ended else None,
        "trigger_ms": to_count(as_dict(progress.get("durationMs")).get("triggerExecution")),
        "num_input_rows": _first(to_count(progress.get("numInputRows")), _sum(sources, "num_input_rows")),
        "num_output_rows": to_count(sink.get("numOutputRows")),  # −1 is the engine's "unknown"
        "sink": to_text(sink.get("description")),
        "state_rows": _sum(operators, "rows"),
        "backlog_bytes": _sum(sources, "backlog_bytes"),
        "backlog_files": _sum(sources, "backlog_files"),
        "sources": sources or None,
        "is_truncated": any(key.endswith("Truncated") and to_bool(s[key]) for s in given for key in s),
    }


def _stream_source(source: Facts) -> Facts:
    metrics = as_dict(source.get("metrics"))
    behind = to_double(metrics.get("estimatedTotalBytesBehindLatest"))
    return {
        "description": to_text(source.get("description")),
        "start_offset": _json(source.get("startOffset")),
        "end_offset": _json(source.get("endOffset")),
        "latest_offset": _json(source.get("latestOffset")),
        "num_input_rows": to_count(source.get("numInputRows")),
        "backlog_bytes": _first(
            to_count(metrics.get("numBytesOutstanding")), to_count(int(behind)) if behind is not None else None
        ),
        "backlog_files": to_count(metrics.get("numFilesOutstanding")),
        "max_offsets_behind": to_count(metrics.get("maxOffsetsBehindLatest")),
    }


def _json(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    try:
        return jsontext.dumps(value)
    except RecursionError:
        return None


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _sum(rows: list[Facts], name: str) -> int | None:
    values = [row[name] for row in rows if row[name] is not None]
    return sum(values) if values else None


_SUB_TYPES = (
    "plan_not_incrementalizable_sub_type",
    "plan_not_deterministic_sub_type",
    "cost_model_rejection_subtype",
)


def planning_information(body: Facts, facts: Facts) -> None:
    techniques, issues = [], []
    for technique in as_objects(body.get("technique_information")):
        kind = to_id(technique.get("maintenance_type"))
        if kind is not None:  # an element may hold nothing but issues
            techniques.append(
                {
                    "maintenance_type": kind,
                    "is_chosen": to_bool(technique.get("is_chosen")),
                    "is_applicable": to_bool(technique.get("is_applicable")),
                    "cost": to_double(technique.get("cost")),
                }
            )
        issues += [_issue(kind, issue) for issue in as_objects(technique.get("incrementalization_issues"))]
    target = body.get("target_table_information")
    chosen = next((str(t["maintenance_type"]) for t in techniques if t["is_chosen"]), None)
    facts["planning"] = {
        "chosen": chosen,
        "technique": _technique(chosen),
        "reasons": _joined(
            f"{i['issue_type']} ({i['sub_type']})" if i["sub_type"] else i["issue_type"] for i in issues
        ),
        "offending_tables": _joined(i["table_name"] for i in issues),
        "offending_expressions": _joined(i["expression"] for i in issues),
        "techniques": techniques,
        "issues": issues,
        "sources": [_planned(t) for t in as_objects(body.get("source_table_information"))],
        "target": _planned(target) if isinstance(target, dict) else None,
    }


def _technique(chosen: str | None) -> str:
    """The class of a maintenance type: full, no_op, incremental; unknown if none was chosen."""
    if chosen is None:
        return "unknown"
    name = chosen.upper().removeprefix("MAINTENANCE_TYPE_")
    return {"COMPLETE_RECOMPUTE": "full", "NO_OP": "no_op"}.get(name, "incremental")


def _joined(texts: Iterable[str | None]) -> str | None:
    """Distinct texts in their order, joined by comma; None for none."""
    return ", ".join(dict.fromkeys(text for text in texts if text)) or None


def _issue(kind: str | None, issue: Facts) -> Facts:
    tables = [to_text(t.get("table_name")) for t in as_objects(issue.get("table_information"))]
    parts = [to_text(issue.get(name)) for name in ("expression_name", "operator_name", "join_type")]
    return {
        "maintenance_type": kind,
        "issue_type": to_id(issue.get("issue_type")),
        "sub_type": _first(*(to_id(issue.get(name)) for name in _SUB_TYPES)),
        "prevents": to_bool(issue.get("prevent_incrementalization")),
        "table_name": ", ".join(name for name in tables if name) or None,
        "expression": " ".join(part for part in parts if part) or None,
    }


def _planned(table: Facts) -> Facts:
    return {
        "table_name": to_text(table.get("table_name")),
        "change_type": to_id(table.get("table_change_type")),
        **{name: to_count(table.get(name)) for name in ("full_size", "change_size", "num_changed_partitions")},
        **{
            name: to_bool(table.get(name))
            for name in ("is_cdf_enabled", "is_row_id_enabled", "is_deletion_vector_enabled")
        },
    }


def cluster(body: Facts, facts: Facts) -> None:
    """cluster_resources nested or flat, the older cluster_utilization, autoscale."""
    given: Mapping[str, Any] = {
        **body,
        **as_dict(body.get("task_slot_metrics")),
        **as_dict(body.get("autoscale_info")),
    }
    facts["cluster"] = {
        **{
            name: to_count(given.get(name))
            for name in (
                "num_task_slots",
                "num_executors",
                "summary_duration_ms",
                "optimal_num_executors",
                "request_pending_seconds",
            )
        },
        **{
            name: to_double(given.get(name))
            for name in ("avg_num_task_slots", "avg_task_slot_utilization", "avg_num_queued_tasks")
        },
        "scaling_state": _enum(_first(given.get("state"), given.get("status"))),
        "requested_num_executors": _first(
            to_count(given.get("latest_requested_num_executors")), to_count(given.get("requested_num_executors"))
        ),
    }


def flow_definition(body: Facts, facts: Facts) -> None:
    facts["output_dataset"] = to_text(body.get("output_dataset"))
    inputs = body.get("input_datasets")
    names = [_dataset_name(name) for name in (inputs if isinstance(inputs, list) else [inputs])]
    facts["definition"] = {
        "input_datasets": [name for name in names if name],
        "output_sink": to_text(body.get("output_sink")),
        "flow_type": _enum(body.get("flow_type")),
        "language": _enum(body.get("language")),
        "once": to_bool(body.get("once")),
        "comment": to_text(body.get("comment")),
        "explain_text": to_text(body.get("explain_text")),
    }
    facts["fields"] = _fields(body)


def _dataset_name(value: Any) -> str | None:
    return to_text(value.get("name")) if isinstance(value, dict) else to_text(value)


def dataset_definition(body: Facts, facts: Facts) -> None:
    facts["dataset"] = {
        "dataset_type": _enum(body.get("dataset_type")),
        "num_flows": to_count(body.get("num_flows")),
        "rules": [
            {
                "name": to_text(rule.get("name")),
                "dataset": to_text(rule.get("dataset")),
                "action": _enum(_first(*(rule.get(name) for name in ("action", "policy", "on_violation")))),
            }
            for rule in as_objects(body.get("expectations"))
            if to_text(rule.get("name"))
        ],
    }
    facts["fields"] = _fields(body)


def _fields(body: Facts) -> list[Facts] | None:
    """Columns from `schema`, else from `schema_json` (the engine's own JSON form)."""
    listed = body.get("schema")
    if not isinstance(listed, list) and isinstance(body.get("schema_json"), str):
        try:
            listed = as_dict(jsontext.loads(body["schema_json"])).get("fields")
        except jsontext.INVALID:
            listed = None
    fields = [
        {
            "name": to_text(field.get("name")),
            "data_type": _json(_first(field.get("data_type"), field.get("type"))),
            "comment": to_text(_first(field.get("comment"), as_dict(field.get("metadata")).get("comment"))),
        }
        for field in as_objects(listed)
        if to_text(field.get("name"))
    ]
    return fields or None


def sink_definition(body: Facts, facts: Facts) -> None:
    facts["sink_format"] = to_id(body.get("format"))


def hook_progress(body: Facts, facts: Facts) -> None:
    facts["hook"] = {"name": to_text(body.get("name")), "text": _enum(body.get("status"))}


def notice(body: Facts, facts: Facts) -> None:
    """deprecation says `message`, behaviour changes say `issue`; both are enums that grow."""
    facts["notice"] = {
        "name": _first(to_id(body.get("message")), to_id(body.get("issue"))),
        "text": to_text(body.get("description")),
    }


def runtime_details(body: Facts, facts: Facts) -> None:
    facts["image_key"] = to_id(body.get("image_key"))
    facts["environment_version"] = to_id(body.get("effective_environment_version"))
    dbr_version(body, facts)


def dbr_version(body: Facts, facts: Facts) -> None:
    version = to_id(body.get("dbr_version")) or to_id(as_dict(body.get("runtime_version")).get("dbr_version"))
    if version is not None:
        facts["dbr_version"] = version


def _enum(value: Any) -> str | None:
    text = to_id(value)
    return text.upper() if text is not None else None
