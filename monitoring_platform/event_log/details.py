"""What `details` says, by event type: typed facts taken from the parsed body.

Each reader gets the body under its top-level key and the dict of typed columns it may fill. Where the documentation
shows two shapes of one field, both are read. A value of a wrong type leaves its column null; the text keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from monitoring_platform.event_log import bodies
from monitoring_platform.event_log.schema import FLOW_METRICS
from monitoring_platform.event_log.values import as_dict, as_objects, to_bool, to_count, to_id, to_instant, to_text

UPDATE_STATES = frozenset(
    [
        "QUEUED",
        "CREATED",
        "WAITING_FOR_RESOURCES",
        "INITIALIZING",
        "RESETTING",
        "SETTING_UP_TABLES",
        "RUNNING",
        "STOPPING",
        "COMPLETED",
        "FAILED",
        "CANCELED",
    ]
)
FLOW_STATUSES = frozenset(
    [
        "QUEUED",
        "STARTING",
        "RUNNING",
        "IDLE",
        "PLANNING",
        "COMPLETED",
        "FAILED",
        "SKIPPED",
        "STOPPED",
        "EXCLUDED",
    ]
)
_STATES = UPDATE_STATES | FLOW_STATUSES
_METRICS = frozenset(FLOW_METRICS)
_SAYS_UPDATE = re.compile(r"Update \S+ (?:is|has) ([A-Z_]+)\.?")
_SAYS_FLOW = re.compile(r"Flow '.*' (?:is|has) ([A-Z_]+)\.?", re.S)

Facts = dict[str, Any]


def state(value: Any) -> str | None:
    """An update state or flow status: upper case, CANCELLED spelt CANCELED; unknown values pass as they come."""
    text = to_id(value)
    if text is None:
        return None
    if text in _STATES:
        return text
    upper = text.upper()
    return "CANCELED" if upper == "CANCELLED" else upper if upper in _STATES else text


def stated_in(event_type: str | None, message: str | None) -> Facts:
    """A state read from vendor wording, for rows without details (quirk 15); empty if the text states none."""
    if not message:
        return {}
    for kind, pattern, known, column in (
        ("update_progress", _SAYS_UPDATE, UPDATE_STATES, "update_state"),
        ("flow_progress", _SAYS_FLOW, FLOW_STATUSES, "flow_status"),
    ):
        match = pattern.fullmatch(message.strip()) if event_type == kind else None
        if match and state(match.group(1)) in known:
            return {column: state(match.group(1))}
    return {}


def _update_progress(body: Facts, facts: Facts) -> None:
    facts["update_state"] = state(body.get("state"))
    facts["cancellation_cause"] = to_id(body.get("cancellation_cause"))


def _create_update(body: Facts, facts: Facts) -> None:
    config = as_dict(body.get("config"))
    facts["cause"] = to_id(body.get("cause"))
    for flag in ("full_refresh", "validate_only", "explore_only"):
        facts[flag] = to_bool(body.get(flag))
    facts["failed_attempts"] = to_count(body.get("failed_attempts"))
    for flag in ("serverless", "continuous", "development", "photon"):
        facts[flag] = to_bool(config.get(flag))
    facts["edition"], facts["channel"] = to_id(config.get("edition")), to_id(config.get("channel"))
    facts["default_catalog"] = to_id(config.get("catalog"))
    facts["default_schema"] = to_id(config.get("schema")) or to_id(config.get("target"))
    facts["run_as"] = to_id(body.get("run_as")) or to_id(body.get("run_as_user_id"))
    bodies.dbr_version(body, facts)


def _flow_progress(body: Facts, facts: Facts) -> None:
    facts["flow_status"] = state(body.get("status"))
    metrics = body.get("metrics")
    if metrics and isinstance(metrics, dict):
        for name in metrics.keys() & _METRICS:
            facts[name] = to_count(metrics[name])
    quality = body.get("data_quality")
    if quality and isinstance(quality, dict):
        facts["dropped_records"] = to_count(quality.get("dropped_records"))
        rules = [
            {
                "name": to_text(rule.get("name")),
                "dataset": to_text(rule.get("dataset")),
                "passed_records": to_count(rule.get("passed_records")),
                "failed_records": to_count(rule.get("failed_records")),
            }
            for rule in as_objects(quality.get("expectations"))
            if to_text(rule.get("name")) is not None
        ]
        facts["expectations"] = rules or None
    streaming = body.get("streaming_metrics")
    if streaming and isinstance(streaming, dict):
        event_time = as_dict(streaming.get("event_time"))
        for column, value in (("event_time_min", event_time.get("min")), ("event_time_max", event_time.get("max"))):
            instant = to_instant(value)
            facts[column] = instant.micros if instant else None
        facts["discovery_latency_ms"] = to_count(streaming.get("discovery_latency_ms"))
        facts["batch_processing_time_ms"] = to_count(streaming.get("batch_processing_time_ms"))


READERS: dict[str, Callable[[Facts, Facts], None]] = {
    "update_progress": _update_progress,
    "create_update": _create_update,
    "flow_progress": _flow_progress,
    "runtime_details": bodies.runtime_details,
    "flow_definition": bodies.flow_definition,
    "dataset_definition": bodies.dataset_definition,
    "sink_definition": bodies.sink_definition,
    "user_action": bodies.user_action,
    "operation_progress": bodies.operation_progress,
    "stream_progress": bodies.stream_progress,
    "planning_information": bodies.planning_information,
    "cluster_resources": bodies.cluster,
    "cluster_utilization": bodies.cluster,
    "autoscale": bodies.cluster,
    "hook_progress": bodies.hook_progress,
    "deprecation": bodies.notice,
    "behavior_change_in_spark_connect": bodies.notice,
}


def read(event_type: str | None, details: Any) -> tuple[str | None, Facts]:
    """The event type after looking at the details, and the typed facts of every known key that is present.

    Details win over the event type, the event type fills in where the details have no known key (quirks 24, 30, 31).
    """
    facts: Facts = {}
    if not isinstance(details, dict):
        return event_type, facts
    if len(details) == 1 and event_type in details:  # nearly every row
        reader, body = READERS.get(str(event_type)), details[event_type]
        if reader is not None and isinstance(body, dict):
            reader(body, facts)
        return event_type, facts
    known = [key for key in details if key.lower() in READERS]
    for key in known:
        if isinstance(details[key], dict):
            READERS[key.lower()](details[key], facts)
    if event_type in {key.lower() for key in details}:
        return event_type, facts
    if len(known) == 1:
        return known[0].lower(), facts
    if event_type is None and not known and len(details) == 1:
        return next(iter(details)).strip().lower() or None, facts
    return event_type, facts


def named_flow(details: Any) -> str | None:
    """A flow name given inside the details, for rows whose origin has none."""
    outer = as_dict(details)
    for body in (*outer.values(), outer):
        name = to_text(body.get("flow_name")) if isinstance(body, dict) else None
        if name:
            return name
    return None
