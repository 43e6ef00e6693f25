"""What one event of a log is, before it is written anywhere, and the shapes in which it can be written."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

Json = dict[str, Any]

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

EXTRA_COLUMN = "archive_note"

EPOCH = datetime(1970, 1, 1)


class Event(NamedTuple):
    """One event; `ts` is in milliseconds since the epoch, `details` an object whose only key is the event type."""

    id: str
    ts: int
    event_type: str
    level: str
    message: str
    origin: Json
    sequence: Json
    maturity_level: str
    error: Json | None
    details: Json | None


def iso(ms: int) -> str:
    """RFC 3339 text in UTC with three fraction digits."""
    return (EPOCH + timedelta(milliseconds=ms)).isoformat(timespec="milliseconds") + "Z"


def iso_without_colon(ms: int) -> str:
    """The form that older exports of the table carry: an offset without a colon."""
    return iso(ms)[:-1] + "+0000"


def new_id(rng: Random) -> str:
    """A UUID-shaped id that depends on nothing but the generator's state."""
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def json_text(value: Any) -> str:
    """Compact JSON text."""
    return orjson.dumps(value).decode()


def rest_shape(event: Event) -> Json:
    """As the REST API gives it: `details` is an object and what is missing is not there."""
    row = {
        "id": event.id,
        "sequence": event.sequence,
        "origin": event.origin,
        "timestamp": iso(event.ts),
        "message": event.message,
        "level": event.level,
        "error": event.error,
        "details": event.details,
        "event_type": event.event_type,
        "maturity_level": event.maturity_level,
    }
    return {key: value for key, value in row.items() if value is not None}


def table_shape(event: Event, without_colon: bool = False) -> Json:
    """As a row exported from the table: `details` is JSON text and what is missing is null."""
    return {
        "id": event.id,
        "sequence": event.sequence,
        "origin": event.origin,
        "timestamp": iso_without_colon(event.ts) if without_colon else iso(event.ts),
        "message": event.message,
        "level": event.level,
        "maturity_level": event.maturity_level,
        "error": event.error,
        "details": None if event.details is None else json_text(event.details),
        "event_type": event.event_type,
    }


_ORIGIN_BIGINTS = ("org_id", "user_id", "batch_id")
_ORIGIN_FIELDS = """
    cloud region org_id user_id pipeline_id pipeline_type pipeline_name cluster_id update_id maintenance_id
    table_id table_name flow_id flow_name batch_id request_id uc_resource_id dataset_name sink_name catalog_name
    schema_name materialization_name operation_id flow_attempt_id source_name uc_table_id ingestion_source_type
    uc_parent_table_id
"""

ORIGIN = pa.struct(
    [pa.field(name, pa.int64() if name in _ORIGIN_BIGINTS else pa.string()) for name in _ORIGIN_FIELDS.split()]
)
SEQUENCE = pa.struct(
    [
        pa.field("data_plane_id", pa.struct([pa.field("instance", pa.string()), pa.field("seq_no", pa.int64())])),
        pa.field("control_plane_seq_no", pa.int64()),
    ]
)
_FRAME = pa.struct(
    [
        pa.field("declaring_class", pa.string()),
        pa.field("method_name", pa.string()),
        pa.field("file_name", pa.string()),
        pa.field("line_number", pa.int64()),
    ]
)
_EXCEPTION = pa.struct(
    [pa.field("class_name", pa.string()), pa.field("message", pa.string()), pa.field("stack", pa.list_(_FRAME))]
)
ERROR = pa.struct([pa.field("fatal", pa.bool_()), pa.field("exceptions", pa.list_(_EXCEPTION))])


def arrow_table(events: list[Event]) -> pa.Table:
    """The ten columns of the published event log table."""
    details = [None if event.details is None else json_text(event.details) for event in events]
    timestamps = pa.array([event.ts for event in events], pa.timestamp("ms", tz="UTC"))
    return pa.table(
        {
            "id": pa.array([event.id for event in events], pa.string()),
            "sequence": pa.array([event.sequence for event in events], SEQUENCE),
            "origin": pa.array([event.origin for event in events], ORIGIN),
            "timestamp": timestamps.cast(pa.timestamp("us", tz="UTC")),
            "message": pa.array([event.message for event in events], pa.string()),
            "level": pa.array([event.level for event in events], pa.string()),
            "maturity_level": pa.array([event.maturity_level for event in events], pa.string()),
            "error": pa.array([event.error for event in events], ERROR),
            "details": pa.array(details, pa.string()),
            "event_type": pa.array([event.event_type for event in events], pa.string()),
        }
    )


def older_arrow_table(events: list[Event]) -> pa.Table:
    """As copies of old logs look: `origin` and `sequence` are JSON text and no row has a maturity level."""
    table = arrow_table(events)
    replaced = {
        "sequence": pa.array([json_text(event.sequence) for event in events], pa.string()),
        "origin": pa.array([json_text(event.origin) for event in events], pa.string()),
        "maturity_level": pa.nulls(len(events), pa.string()),
    }
    return pa.table({name: replaced.get(name, table.column(name)) for name in table.column_names})


def rearranged_arrow_table(events: list[Event]) -> pa.Table:
    """The columns in another order, and one of somebody's own among them."""
    table = arrow_table(events)
    order = ["timestamp", "event_type", "level", "id", "message", "details", "origin", "error", "sequence"]
    note = pa.array(["copied by the archive job"] * len(events), pa.string())
    return table.select([*order, "maturity_level"]).add_column(3, EXTRA_COLUMN, note)
