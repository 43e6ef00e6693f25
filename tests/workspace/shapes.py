"""One event in the shapes in which the service has it. The history itself is kept as REST objects, complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

import orjson
import pyarrow as pa

from monitoring_platform.demo.events import ERROR, ORIGIN, SEQUENCE

Json = dict[str, Any]
MICROS = pa.timestamp("us", tz="UTC")
_FRAME = pa.list_(
    pa.struct(
        [
            ("declaring_class", pa.string()),
            ("method_name", pa.string()),
            ("file_name", pa.string()),
            ("line_number", pa.int64()),
        ]
    )
)
_SYSTEM_ERROR = pa.struct(
    [
        ("fatal", pa.bool_()),
        (
            "exceptions",
            pa.list_(
                pa.struct(
                    [
                        ("class_name", pa.string()),
                        ("message", pa.string()),
                        ("error_class", pa.string()),
                        ("sql_state", pa.string()),
                        ("stack", _FRAME),
                    ]
                )
            ),
        ),
    ]
)
_HOISTED = ("pipeline_id", "update_id")
_SYSTEM_ORIGIN = pa.struct([field for field in ORIGIN if field.name not in _HOISTED])


def instant(value: str | datetime) -> datetime:
    """A time as REST gives it, as a UTC instant."""
    if isinstance(value, datetime):
        return value
    return datetime.fromisoformat(value.replace("Z", "+00:00")).astimezone(timezone.utc)


def iso(value: datetime) -> str:
    """A time as REST gives it."""
    return value.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def epoch_ms(value: datetime) -> int:
    """Milliseconds since the epoch."""
    return round(value.timestamp() * 1000)


def as_event(row: Mapping[str, Any]) -> Json:
    """A row of a log in either shape as a complete REST object."""
    details = row.get("details")
    event = {**row, "details": orjson.loads(details) if isinstance(details, str) and details else details}
    return {name: value for name, value in event.items() if value is not None}


def rest(event: Json, cut: Iterable[str] = ()) -> Json:
    """As the REST API gives it; `cut` names the fields that it leaves out because the event is too large."""
    fields = list(cut)
    if not fields:
        return event
    kept = {name: value for name, value in event.items() if name not in fields}
    return {**kept, "truncation": {"truncated_fields": [{"field_name": name} for name in fields]}}


def _columns(events: list[Json], types: Mapping[str, pa.DataType]) -> dict[str, pa.Array]:
    return {name: pa.array([event.get(name) for event in events], type) for name, type in types.items()}


def _texts(events: list[Json]) -> pa.Array:
    found = (event.get("details") for event in events)
    return pa.array([None if details is None else orjson.dumps(details).decode() for details in found], pa.string())


def table(events: list[Json]) -> pa.Table:
    """As the event log table, `event_log()` and the hidden table give it: `details` is JSON text."""
    text = dict.fromkeys(("message", "level", "maturity_level"), pa.string())
    return pa.table(
        {
            **_columns(events, {"id": pa.string(), "sequence": SEQUENCE, "origin": ORIGIN}),
            "timestamp": pa.array([instant(event["timestamp"]) for event in events], MICROS),
            **_columns(events, text),
            **_columns(events, {"error": ERROR}),
            "details": _texts(events),
            **_columns(events, {"event_type": pa.string()}),
        }
    )


def system_table(events: list[Json], account_id: str, workspace_id: str) -> pa.Table:
    """As the system table gives it: some names are others, ids are columns of their own, `details` is VARIANT."""
    origins = [event.get("origin") or {} for event in events]
    constant = {"account_id": account_id, "workspace_id": workspace_id}
    return pa.table(
        {
            **{name: pa.array([value] * len(events), pa.string()) for name, value in constant.items()},
            **{name: pa.array([origin.get(name) for origin in origins], pa.string()) for name in _HOISTED},
            "pipeline_event_id": pa.array([event.get("id") for event in events], pa.string()),
            "event_time": pa.array([instant(event["timestamp"]) for event in events], MICROS),
            **_columns(events, dict.fromkeys(("event_type", "message", "level", "maturity_level"), pa.string())),
            "origin": pa.array(origins, _SYSTEM_ORIGIN),
            "sequence": pa.array([event.get("sequence") for event in events], SEQUENCE),
            "error": pa.array([_with_codes(event.get("error")) for event in events], _SYSTEM_ERROR),
            "details": _texts(events),
        }
    )


def _with_codes(error: Json | None) -> Json | None:
    """The error with the code of each exception that has one at the start of its message."""
    if error is None:
        return None
    exceptions = []
    for exception in error.get("exceptions") or ():
        message = exception.get("message") or ""
        code = message[1 : message.index("]")] if message.startswith("[") and "]" in message else None
        exceptions.append({**exception, "error_class": code})
    return {**error, "exceptions": exceptions}


def iso_exact(value: str | datetime) -> str:
    """A time with all its digits."""
    return instant(value).isoformat()
