"""normalise(): delivered rows in, canonical Arrow rows and quarantined ones out. Plain Python, no engine.

A row that can be placed (pipeline and time) is kept whatever else is odd about it; what is odd is said in `flags`.
A row that cannot be placed goes to quarantine with the reason and its text. Nothing is dropped. Secrets are replaced
before anything leaves this module.

Flags: derived_id, assumed_utc, future_timestamp, invalid_details, details_not_object, truncated, inferred_state,
type_from_details, invalid_utf8, raw_origin, raw_sequence, raw_error.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.event_log import details as reading
from monitoring_platform.event_log import jsontext
from monitoring_platform.event_log.redact import DOUBTFUL, Policy, redact_broken, redact_text, redact_value
from monitoring_platform.event_log.schema import (
    ERROR,
    EVENT,
    ORIGIN,
    ORIGIN_FIELDS,
    QUARANTINE,
    SEQUENCE,
    TIMESTAMP,
)
from monitoring_platform.event_log.values import from_millis, to_bool, to_id, to_int, to_instant, to_text

_FUTURE = timedelta(days=1)
_RAW_LIMIT = 64 * 1024
_KNOWN_ORIGIN = frozenset(ORIGIN_FIELDS)
_ERROR_CODE = re.compile(r"\[([A-Za-z0-9_.:]+)\]")
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TOP = frozenset(
    "id pipeline_event_id sequence origin timestamp event_time message level maturity_level error details event_type "
    "pipeline_id update_id".split()
)


class Delivered(NamedTuple):
    """One row as delivered: the parsed members, where it stood, and flags the reader already knows."""

    members: dict[str, Any]
    position: str
    flags: tuple[str, ...] = ()


class Unreadable(NamedTuple):
    """Text that is no row: what is wrong with it and where it stood."""

    reason: str
    raw: str
    position: str


class Place(NamedTuple):
    """Where rows come from. `pipeline_id` stands in for rows that carry none."""

    source: str
    log: str
    pipeline_id: str | None = None


class Normalised(NamedTuple):
    """Canonical rows (`schema.EVENT`) and quarantined rows (`schema.QUARANTINE`)."""

    events: pa.Table
    quarantine: pa.Table


def normalise(
    rows: Iterable[Delivered | Unreadable], place: Place, *, now: datetime, policy: Policy = Policy()
) -> Normalised:
    """Canonical and quarantined rows of one delivery; their number is the number of rows given."""
    good: list[_Row] = []
    bad: list[dict[str, Any]] = []
    future = (now + _FUTURE - _EPOCH) // timedelta(microseconds=1)
    for row in rows:
        if isinstance(row, Unreadable):
            bad.append(_quarantined(row.reason, None, None, redact_broken(row.raw, policy), row.position, place, now))
            continue
        try:
            placed = _place(row, place, future)
        except RecursionError:
            text = str(row.members.get("id")) + " " + str(row.members.get("message"))
            shell = Unreadable("nested too deep to be read; only id and message are kept", text, row.position)
            bad.append(_quarantined(shell.reason, None, to_id(row.members.get("id")), redact_broken(text, policy),
                                    row.position, place, now))
            continue
        if isinstance(placed, str):
            bad.append(_refused(placed, row, place, now, policy))
        else:
            good.append(placed)
    _redact(good, policy)
    return Normalised(_table(good, place, now, policy), pa.Table.from_pylist(bad, QUARANTINE))


class _Row:
    """A row on its way: what stays parsed until the columns are built."""

    __slots__ = ("body", "details", "error", "event_type", "extra", "facts", "flags", "flow_name", "id", "level",
                 "maturity", "message", "micros", "origin", "pipeline_id", "sequence", "text")

    body: Any
    details: Any
    error: dict[str, Any] | None
    event_type: str | None
    extra: dict[str, Any] | None
    facts: dict[str, Any]
    flags: list[str] | None
    flow_name: str | None
    id: str | None
    level: str | None
    maturity: str | None
    message: str | None
    micros: int
    origin: dict[str, Any]
    pipeline_id: str
    sequence: dict[str, Any] | None
    text: str | None

    def flag(self, name: str) -> None:
        if self.flags is None:
            self.flags = [name]
        elif name not in self.flags:
            self.flags.append(name)

    def keep(self, name: str, value: Any) -> None:
        if self.extra is None:
            self.extra = {}
        self.extra[name] = value


def _place(row: Delivered, place: Place, future: int) -> _Row | str:
    """The row with pipeline, time and id settled, or the reason why it cannot be placed."""
    m = row.members
    out = _Row()
    out.flags = list(row.flags) or None
    out.extra = None
    origin = _struct(m.get("origin"), "origin", out)
    pipeline_id = to_id(origin.get("pipeline_id")) or to_id(m.get("pipeline_id")) or place.pipeline_id
    if pipeline_id is None:
        return "no pipeline_id: neither the row nor the source's settings name the pipeline"
    value = m.get("timestamp", m.get("event_time"))
    instant = to_instant(value) if value is not None else from_millis(m.get("timestamp_ms"))
    if instant is None:
        if value is None:
            return "no timestamp"
        return f"unreadable timestamp {redact_text(str(value)[:80])!r}"
    out.micros = instant.micros
    if instant.assumed_utc:
        out.flag("assumed_utc")
    if instant.micros > future:
        out.flag("future_timestamp")
    out.pipeline_id, out.origin = pipeline_id, origin
    out.message, out.level = to_text(m.get("message")), to_id(m.get("level"))
    out.maturity = to_id(m.get("maturity_level"))
    out.sequence = _sequence(m.get("sequence"), out)
    out.error = _error(m.get("error"), out)
    _read_details(out, m.get("details"), to_id(m.get("event_type")))
    update_id = to_id(origin.get("update_id")) or to_id(m.get("update_id"))
    origin["pipeline_id"], origin["update_id"] = pipeline_id, update_id
    if not m.keys() <= _TOP:
        for name in sorted(m.keys() - _TOP):
            if m[name] is not None:
                out.keep(name, m[name])
        if isinstance(m.get("truncation"), dict):
            out.flag("truncated")
    out.id = to_id(m.get("id")) or to_id(m.get("pipeline_event_id"))
    if out.id is None:
        out.id = _derived_id(out)
        out.flag("derived_id")
    return out


def _struct(value: Any, name: str, out: _Row) -> dict[str, Any]:
    """origin and its kind: an object, or an object as JSON text; anything else is kept raw."""
    parsed = value
    if isinstance(value, str) and value.strip():
        try:
            parsed = jsontext.loads(value)
        except jsontext.INVALID:
            parsed = value
    if isinstance(parsed, dict):
        return dict(parsed)
    if parsed not in (None, ""):
        out.keep(name, value)
        out.flag(f"raw_{name}")
    return {}


def _sequence(value: Any, out: _Row) -> dict[str, Any] | None:
    if value is None:
        return None
    parsed = _struct(value, "sequence", out)
    plane = reading.as_dict(parsed.get("data_plane_id"))
    control, seq_no = parsed.get("control_plane_seq_no"), plane.get("seq_no")
    data_plane = {"instance": to_text(plane.get("instance")), "seq_no": to_int(seq_no)} if plane else None
    result = {"data_plane_id": data_plane, "control_plane_seq_no": to_int(control)}
    if (control is not None and result["control_plane_seq_no"] is None) or (
        data_plane and seq_no is not None and data_plane["seq_no"] is None
    ):
        out.keep("sequence", value)
        out.flag("raw_sequence")
    return result if parsed else None


def _error(value: Any, out: _Row) -> dict[str, Any] | None:
    """error as struct. A plain string, a single object and other member names are read too, the original is kept."""
    if value is None or value == "":
        return None
    parsed = value
    if isinstance(value, str):
        try:
            parsed = jsontext.loads(value)
        except jsontext.INVALID:
            parsed = {"exceptions": value}
    if not isinstance(parsed, dict):
        parsed = {"exceptions": parsed}
    given = parsed.get("exceptions")
    listed = [given] if isinstance(given, (str, dict)) else given if isinstance(given, list) else None
    exceptions = None if listed is None else [_exception(item, out, value) for item in listed if item is not None]
    if parsed is not value or listed is not given:
        out.keep("error", value)
        out.flag("raw_error")
    return {"fatal": to_bool(parsed.get("fatal")), "exceptions": exceptions}


def _exception(item: Any, out: _Row, original: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        return {"message": to_text(item)}
    stack = item.get("stack")
    if stack is not None and not isinstance(stack, list) or "stack_trace" in item:
        out.keep("error", original)
        out.flag("raw_error")
    frames = [
        {**{k: to_text(f.get(k)) for k in ("declaring_class", "method_name", "file_name")},
         "line_number": to_int(f.get("line_number"))}
        for f in reading.as_list(stack)
        if isinstance(f, dict)
    ]
    texts = {k: to_text(item.get(k)) for k in ("class_name", "message", "error_class", "sql_state")}
    return {**texts, "stack": frames if isinstance(stack, (list, dict)) else None}


def _read_details(out: _Row, value: Any, event_type: str | None) -> None:
    """details as text and parsed, the event type after looking into it, and the typed facts."""
    out.text = out.details = None
    if isinstance(value, str):
        if value.strip():
            out.text = value
            try:
                out.details = jsontext.loads(value)
            except jsontext.INVALID:
                out.flag("invalid_details")
    elif value is not None:
        out.details, out.text = value, jsontext.dumps(value)
    if out.details is not None and not isinstance(out.details, dict):
        out.flag("details_not_object")
    given = event_type.lower() if event_type else None
    out.event_type, out.facts = reading.read(given, out.details)
    if out.event_type != given:
        if given is not None:
            out.keep("event_type", event_type)
        out.flag("type_from_details")
    if not out.text or out.details in ({}, []):
        inferred = reading.stated_in(out.event_type, out.message)
        if inferred:
            out.facts = inferred
            out.flag("inferred_state")
    origin_flow = to_text(out.origin.get("flow_name"))
    out.flow_name = origin_flow or reading.named_flow(out.details, out.event_type)


def _derived_id(row: _Row) -> str:
    """A stable id from the content, for rows without one: the same row has it on every delivery."""
    details = orjson.dumps(row.details, option=orjson.OPT_SORT_KEYS) if isinstance(row.details, dict) else row.text
    content = (row.pipeline_id, row.micros, row.event_type, row.level, row.message, row.origin.get("update_id"),
               row.flow_name, str(details))
    return "derived-" + hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _refused(reason: str, row: Delivered, place: Place, now: datetime, policy: Policy) -> dict[str, Any]:
    members = {k: redact_value(_parsed(v), policy) for k, v in row.members.items()}
    origin = reading.as_dict(members.get("origin"))
    pipeline_id = to_id(origin.get("pipeline_id")) or to_id(members.get("pipeline_id")) or place.pipeline_id
    return _quarantined(reason, pipeline_id, to_id(members.get("id")), jsontext.dumps(members), row.position, place, now)


def _parsed(value: Any) -> Any:
    """JSON text as what it holds, so that redaction by key reaches it."""
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return jsontext.loads(value)
        except jsontext.INVALID:
            return value
    return value


def _quarantined(
    reason: str, pipeline_id: str | None, event_id: str | None, raw: str, position: str, place: Place, now: datetime
) -> dict[str, Any]:
    return {
        "quarantine_id": quarantine_id(place.log, position, raw),
        "reason": reason,
        "pipeline_id": pipeline_id,
        "event_id": event_id,
        "raw": _clean(raw[:_RAW_LIMIT]),
        "_source": place.source,
        "_log": place.log,
        "position": position,
        "_ingested_at": now,
    }


def quarantine_id(log: str, position: str, raw: str) -> str:
    """Stable key of one piece of trouble: the same text at the same place is the same row on every reading."""
    return hashlib.sha256(f"{log}\0{position}\0{raw}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _clean(text: str | None) -> str | None:
    """Text that UTF-8 can hold: lone surrogates become replacement marks."""
    return None if text is None else text.encode("utf-8", "replace").decode()


def _doubtful_rows(texts: Sequence[str | None]) -> list[int]:
    """Numbers of the texts in which a secret may be: one vectorised look instead of patterns on every row."""
    mask = pc.match_substring_regex(_strings(texts), DOUBTFUL)
    return pc.indices_nonzero(mask.fill_null(False)).to_pylist()


def _redact(rows: list[_Row], policy: Policy) -> None:
    for i in _doubtful_rows([r.text for r in rows]):
        row = rows[i]
        if row.details is None:
            row.text = redact_broken(row.text or "", policy)
            continue
        try:
            redacted = redact_value(row.details, policy)
        except RecursionError:
            row.text = redact_broken(row.text or "", policy)
            continue
        if redacted != row.details:
            row.details, row.text = redacted, jsontext.dumps(redacted)
            if "inferred_state" not in (row.flags or ()):
                _, row.facts = reading.read(row.event_type, redacted)
    for i in _doubtful_rows([r.message for r in rows]):
        rows[i].message = redact_text(rows[i].message, policy)
    for row in rows:
        if row.error is not None:
            row.error = redact_value(row.error, policy)
        if row.extra is not None:
            row.extra = redact_value({k: _parsed(v) for k, v in row.extra.items()}, policy)


def _strings(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        return pa.array([_clean(to_text(v)) for v in values], pa.string())


def _longs(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.int64())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([to_int(v) for v in values], pa.int64())


def _origin_column(origins: list[dict[str, Any]]) -> pa.StructArray:
    present = set().union(*origins)
    children = [
        (_longs if kind == pa.int64() else _strings)([o.get(name) for o in origins])
        if name in present
        else pa.nulls(len(origins), kind)
        for name, kind in ORIGIN_FIELDS.items()
    ]
    host = list(ORIGIN_FIELDS).index("host")
    if children[host].null_count < len(children[host]):
        children[host] = _strings([redact_text(v) for v in children[host].to_pylist()])
    return pa.StructArray.from_arrays(children, fields=list(ORIGIN))


def _trimmed(array: pa.Array) -> pa.Array:
    """Ids: surrounding blanks off, the empty text is null."""
    trimmed = pc.utf8_trim_whitespace(array)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def _table(rows: list[_Row], place: Place, now: datetime, policy: Policy) -> pa.Table:
    if not rows:
        return EVENT.empty_table()
    for row in rows:
        if not row.origin.keys() <= _KNOWN_ORIGIN:
            extra = {k: v for k, v in row.origin.items() if k not in ORIGIN_FIELDS and v is not None}
            row.keep("origin", {**reading.as_dict((row.extra or {}).get("origin")), **redact_value(extra, policy)})
        if policy.pseudonymise_persons and row.origin.get("user_id") is not None:
            row.origin["user_id"] = int(hashlib.sha256(str(row.origin["user_id"]).encode()).hexdigest()[:12], 16)
    origin = _origin_column([r.origin for r in rows])
    first = [(r.error["exceptions"] or [{}])[0] if r.error and r.error["exceptions"] else None for r in rows]
    messages = _strings([e.get("message") if e else None for e in first])
    micros = pa.array([r.micros for r in rows], pa.int64())
    name = origin.field("pipeline_name")
    pipeline_id = _strings([r.pipeline_id for r in rows])
    given: dict[str, pa.Array] = {
        "pipeline_id": pipeline_id,
        "event_id": _strings([r.id for r in rows]),
        "event_ts": micros.cast(TIMESTAMP),
        "event_date": micros.cast(pa.timestamp("us")).cast(pa.date32()),
        "event_type": _strings([r.event_type for r in rows]),
        "level": pc.utf8_upper(_strings([r.level for r in rows])),
        "flow_name": _strings([r.flow_name for r in rows]),
        "dataset_name": pc.coalesce(_trimmed(origin.field("dataset_name")), _trimmed(origin.field("table_name"))),
        "pipeline_name": name,
        "maturity_level": pc.utf8_upper(_strings([r.maturity for r in rows])),
        "error_fatal": pa.array([r.error["fatal"] if r.error else None for r in rows], pa.bool_()),
        "exception_class": _strings([e.get("class_name") if e else None for e in first]),
        "exception_message": messages,
        "error_class": _strings([_code(e) if e else None for e in first]),
        "sql_state": _strings([e.get("sql_state") if e else None for e in first]),
        "message": _strings([r.message for r in rows]),
        "sequence": pa.array([r.sequence for r in rows], SEQUENCE),
        "origin": origin,
        "error": pa.array([r.error for r in rows], ERROR),
        "details": _strings([r.text for r in rows]),
        "extra": _strings([jsontext.dumps(r.extra) if r.extra else None for r in rows]),
        "flags": pa.array([r.flags for r in rows], pa.list_(pa.string())),
        "_source_pipeline": pc.coalesce(name, pipeline_id),
        "_source": pa.repeat(pa.scalar(place.source), len(rows)),
        "_log": pa.repeat(pa.scalar(place.log), len(rows)),
        "_ingested_at": pa.repeat(pa.scalar(now, TIMESTAMP), len(rows)),
    }
    for column in ("update_id", "flow_id", "request_id", "pipeline_type", "maintenance_id"):
        given[column] = _trimmed(origin.field(column))
    given["batch_id"] = origin.field("batch_id")
    facts = [r.facts for r in rows]
    stated = set().union(*facts)
    columns = [
        given[field.name]
        if field.name in given
        else _fact(facts, field.name, field.type)
        if field.name in stated
        else pa.nulls(len(rows), field.type)
        for field in EVENT
    ]
    return pa.Table.from_arrays(columns, schema=EVENT)


def _code(exception: dict[str, Any]) -> str | None:
    """The code in brackets at the start of the message, else the error class that is given."""
    match = _ERROR_CODE.match(exception.get("message") or "")
    return match.group(1) if match else exception.get("error_class")


def _fact(facts: list[dict[str, Any]], name: str, kind: pa.DataType) -> pa.Array:
    values = [f.get(name) for f in facts]
    if kind == pa.string():
        return _strings(values)
    if kind == TIMESTAMP:
        return pa.array(values, pa.int64()).cast(TIMESTAMP)
    return pa.array(values, kind)
