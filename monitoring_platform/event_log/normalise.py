"""normalise(): delivered rows in, canonical Arrow rows and quarantined ones out. Plain Python, no engine.

A row that can be placed (pipeline and time) is kept whatever else is odd about it; what is odd is said in `flags`.
A row that cannot be placed goes to quarantine with the reason and its text. Nothing is dropped. Secrets are replaced
before anything leaves this module.

Flags: derived_id, assumed_utc, future_timestamp, invalid_details, details_not_object, truncated, inferred_state,
type_from_details, invalid_utf8, raw_origin, raw_sequence, raw_error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone
from types import NoneType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.event_log import details as reading
from monitoring_platform.event_log import drift, jsontext, rootcause
from monitoring_platform.event_log.redact import DEFAULT, DOUBTFUL, MARK, Policy, redact_json, redact_text, redact_value
from monitoring_platform.event_log.schema import (
    ERROR,
    EVENT,
    ORIGIN,
    ORIGIN_FIELDS,
    QUARANTINE,
    ROOT_ERROR,
    SEQUENCE,
    TIMESTAMP,
)
from monitoring_platform.event_log.values import (
    INT64_MAX,
    as_dict,
    as_objects,
    from_millis,
    to_bool,
    to_id,
    to_instant,
    to_int,
    to_text,
)

_FUTURE = timedelta(days=1)
_RAW_LIMIT = 64 * 1024
_SEQUENCE = frozenset(field.name for field in SEQUENCE)
_PLANE = frozenset(field.name for field in SEQUENCE.field("data_plane_id").type)
_KNOWN_ORIGIN = frozenset(ORIGIN_FIELDS)
_FROM_ORIGIN = ("update_id", "flow_id", "request_id", "pipeline_type", "maintenance_id", "catalog_name", "schema_name",
                "sink_name")  # fmt: skip
_USUAL_ORIGIN = frozenset({str, int, type(None)})
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_STRUCTS = frozenset(["origin", "sequence", "error", "details", "timestamp"])
COLUMNS = frozenset(["id", "message", "level", "maturity_level", "event_type"]) | _STRUCTS
#: Other names of a column, and columns that stand beside a member of origin.
_ALIASES = {"pipeline_event_id": "id", "event_time": "timestamp"}
HOISTED = frozenset({"pipeline_id", "update_id"})


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


def latest_credible(now: datetime) -> int:
    """Times after this one (microseconds since the epoch) are flagged as of the far future."""
    return (now + _FUTURE - _EPOCH) // timedelta(microseconds=1)


def normalise(
    rows: Iterable[Delivered | Unreadable], place: Place, *, now: datetime, policy: Policy = DEFAULT
) -> Normalised:
    """Canonical and quarantined rows of one delivery; their number is the number of rows given."""
    good: list[_Row] = []
    bad: list[dict[str, Any]] = []
    future = latest_credible(now)
    for row in rows:
        if isinstance(row, Unreadable):
            raw = redact_text(row.raw, policy) or ""
            bad.append(_quarantined(row.reason, None, None, raw, row.position, place, now))
            continue
        try:
            placed = _place(row, place, future, policy)
            if isinstance(placed, str):
                bad.append(_refused(placed, row, place, now, policy))
            else:
                good.append(placed)
        except RecursionError:
            bad.append(_too_deep(row, place, now, policy))
    _redact(good, policy)
    return Normalised(_table(good, place, now), pa.Table.from_pylist(bad, QUARANTINE))


class _Row:
    """A row on its way: what stays parsed until the columns are built."""

    __slots__ = (
        "details", "error", "event_type", "extra", "facts", "flags", "flow_name", "id", "level", "maturity", "message",
        "micros", "origin", "pipeline_id", "sequence", "text",
    )  # fmt: skip

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


def _place(row: Delivered, place: Place, future: int, policy: Policy) -> _Row | str:
    """The row with pipeline, time and id settled, or the reason why it cannot be placed."""
    m = row.members
    out = _Row()
    out.flags = list(row.flags) or None
    out.extra = None
    origin = _struct(m.get("origin"), "origin", out)
    pipeline_id = to_id(origin.get("pipeline_id")) or to_id(m.get("pipeline_id")) or place.pipeline_id
    if pipeline_id is None:
        return "no pipeline_id: neither the row nor the source's settings name the pipeline"
    value = m.get("timestamp")
    if value is None:
        value = m.get("event_time")
    instant = to_instant(value) if value is not None else from_millis(m.get("timestamp_ms"))
    if instant is None:
        if value is None:
            value = m.get("timestamp_ms")
        text = to_text(value)
        if text is None:
            return "no timestamp" if value is None else "unreadable timestamp: no text and no number"
        return f"unreadable timestamp {(redact_text(text, policy) or '')[:80]!r}"
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
    given = to_id(m.get("event_type"))
    _read_details(out, m.get("details"), given)
    update_id = to_id(origin.get("update_id")) or to_id(m.get("update_id"))
    origin["pipeline_id"], origin["update_id"] = pipeline_id, update_id
    out.id = to_id(m.get("id")) or to_id(m.get("pipeline_event_id"))
    if out.id is None:
        out.id = _derived_id(out)
        out.flag("derived_id")
    unread = out.message is None or out.level is None or out.maturity is None or given is None
    if unread or not m.keys() <= COLUMNS or type(m.get("id")) is not str:
        _keep_rest(m, out)
    odd = not (origin.keys() <= _KNOWN_ORIGIN and set(map(type, origin.values())) <= _USUAL_ORIGIN)
    if odd or str in (type(origin.get("batch_id")), type(origin.get("org_id")), type(origin.get("user_id"))):
        _read_origin(out)
    if policy.pseudonymise_persons and origin.get("user_id") is not None:
        origin["user_id"] = int(hashlib.sha256(str(origin["user_id"]).encode()).hexdigest()[:12], 16)
    if out.error is not None:
        out.error = redact_value(out.error, policy)
    if out.extra is not None:
        out.extra = redact_value(out.extra, policy)
    return out


def _keep_rest(m: dict[str, Any], out: _Row) -> None:
    """Members that no column takes as they are: new ones, unreadable ones, second names that say something else."""
    for name in sorted(m.keys() - _STRUCTS):
        value = m[name]
        if value is None:
            continue
        taken = (
            name in COLUMNS
            or (name in _ALIASES and m.get(_ALIASES[name]) in (None, value))
            or (name in HOISTED and to_id(value) in (None, out.origin[name]))
        )
        if not taken or isinstance(value, (dict, list)):
            out.keep(name, value)
    truncation = m.get("truncation")
    if isinstance(truncation, dict) and truncation.get("truncated_fields", True):
        out.flag("truncated")


def _read_origin(out: _Row) -> None:
    """Members of origin that no column has, or whose value does not fit: typed as far as possible, the rest kept."""
    kept = {}
    for name, value in list(out.origin.items()):
        kind = ORIGIN_FIELDS.get(name)
        if kind is None:
            fits = value is None
        else:
            out.origin[name] = to_int(value) if kind == pa.int64() else to_text(value)
            fits = value in (None, "") or out.origin[name] is not None
        if not fits:
            kept[name] = value
    if kept:
        out.keep("origin", kept)


def _struct(value: Any, name: str, out: _Row) -> dict[str, Any]:
    """origin and its kind: an object, or an object as JSON text; anything else is kept raw."""
    parsed = _parsed(value)
    if isinstance(parsed, dict):
        return dict(parsed)
    if parsed is not None and parsed != "":
        out.keep(name, value)
        out.flag(f"raw_{name}")
    return {}


def _parsed(value: Any) -> Any:
    """JSON text as what it holds, other text trimmed, anything else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return jsontext.loads(value)
    except jsontext.INVALID:
        return value.strip()


def _sequence(value: Any, out: _Row) -> dict[str, Any] | None:
    if value is None:
        return None
    given = _struct(value, "sequence", out)
    if not given:
        return None
    if _is_usual_sequence(given):
        return given
    plane = given.get("data_plane_id")
    built = {
        "data_plane_id": {"instance": to_text(plane.get("instance")), "seq_no": to_int(plane.get("seq_no"))}
        if isinstance(plane, dict)
        else None,
        "control_plane_seq_no": to_int(given.get("control_plane_seq_no")),
    }
    if not _holds(built, given):
        out.keep("sequence", value)
        out.flag("raw_sequence")
    return built


def _is_usual_sequence(given: dict[str, Any]) -> bool:
    """Nearly every row: nothing but the known members, of the right types. Spares them the long way."""
    if not given.keys() <= _SEQUENCE or not _is_long(given.get("control_plane_seq_no")):
        return False
    plane = given.get("data_plane_id")
    if plane is None:
        return True
    return (
        type(plane) is dict
        and plane.keys() == _PLANE
        and _is_long(plane["seq_no"])
        and type(plane["instance"]) in (str, NoneType)
    )


def _is_long(value: Any) -> bool:
    return value is None or (type(value) is int and -INT64_MAX <= value <= INT64_MAX)


def _holds(built: Any, given: Any) -> bool:
    """Whether a typed value has something for everything that was given."""
    if isinstance(given, dict):
        return isinstance(built, dict) and all(_holds(built.get(k), v) for k, v in given.items())
    if isinstance(given, list):
        return isinstance(built, list) and len(built) == len(given) and all(map(_holds, built, given))
    return (built is not None and not isinstance(built, (dict, list))) or given is None or given == ""


def _error(value: Any, out: _Row) -> dict[str, Any] | None:
    """error as struct. A plain string, a single object and other member names are read too, the original is kept."""
    given = _parsed(value)
    if given is None or given == "":
        return None
    parsed = given if isinstance(given, dict) else {"exceptions": given}
    listed = parsed.get("exceptions")
    if isinstance(listed, (str, dict)):
        listed = [listed]
    exceptions = [_exception(item) for item in listed if item is not None] if isinstance(listed, list) else None
    built = {"fatal": to_bool(parsed.get("fatal")), "exceptions": exceptions}
    if not _holds(built, given):
        out.keep("error", value)
        out.flag("raw_error")
    return built


def _exception(item: Any) -> dict[str, Any]:
    if not isinstance(item, dict):
        return {"message": to_text(item)}
    stack = item.get("stack")
    frames = [
        {
            **{k: to_text(f.get(k)) for k in ("declaring_class", "method_name", "file_name")},
            "line_number": to_int(f.get("line_number")),
        }
        for f in as_objects(stack)
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
    if out.details in ({}, []) or (out.details is None and out.text in (None, "null")):
        inferred = reading.stated_in(out.event_type, out.message)
        if inferred:
            out.facts = inferred
            out.flag("inferred_state")
    origin_flow = to_text(out.origin.get("flow_name"))
    out.flow_name = origin_flow or reading.named_flow(out.details)


def _derived_id(row: _Row) -> str:
    """A stable id from the content, for rows without one: the same row has it on every delivery."""
    details = row.text if row.details is None else row.details
    origin = {name: value for name, value in row.origin.items() if value is not None}
    content = (row.pipeline_id, row.micros, row.event_type, row.level, row.message, row.flow_name, origin,
               row.sequence, row.error, details)  # fmt: skip
    return "derived-" + hashlib.sha256(jsontext.canonical(content).encode()).hexdigest()[:32]


def _refused(reason: str, row: Delivered, place: Place, now: datetime, policy: Policy) -> dict[str, Any]:
    members = redact_value(row.members, policy)
    origin = as_dict(_parsed(members.get("origin")))
    pipeline_id = to_id(origin.get("pipeline_id")) or to_id(members.get("pipeline_id")) or place.pipeline_id
    event_id = to_id(members.get("id")) or to_id(members.get("pipeline_event_id"))
    return _quarantined(reason, pipeline_id, event_id, jsontext.dumps(members), row.position, place, now)


def _too_deep(row: Delivered, place: Place, now: datetime, policy: Policy) -> dict[str, Any]:
    reason = "nested too deep to be read"
    try:
        raw = jsontext.dumps(row.members)
    except RecursionError:
        raw = f"{to_text(row.members.get('id'))} {to_text(row.members.get('message'))}"
        reason += "; only id and message are kept"
    event_id = to_id(row.members.get("id"))
    return _quarantined(reason, None, event_id, redact_text(raw, policy) or "", row.position, place, now)


def _quarantined(
    reason: str, pipeline_id: str | None, event_id: str | None, raw: str, position: str, place: Place, now: datetime
) -> dict[str, Any]:
    return {
        "quarantine_id": quarantine_id(place.log, position, raw),
        "reason": reason,
        "pipeline_id": _clean(pipeline_id),
        "event_id": _clean(event_id),
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


def doubtful(texts: pa.Array) -> list[int]:
    """Numbers of the texts in which a secret may be: one vectorised look instead of patterns on every row."""
    numbers: list[int] = pc.indices_nonzero(pc.match_substring_regex(texts, DOUBTFUL).fill_null(False)).to_pylist()
    return numbers


def redacted_details(text: str, details: Any, policy: Policy) -> tuple[str | None, Any]:
    """Text and parsed details without secrets; the parsed ones are the same object if nothing had to go."""
    if details is not None:
        try:
            return redact_json(text, details, policy)
        except RecursionError:
            pass
    return redact_text(text, policy), details


def _redact(rows: list[_Row], policy: Policy) -> None:
    for i in doubtful(strings([r.text for r in rows])):
        row = rows[i]
        row.text, redacted = redacted_details(row.text or "", row.details, policy)
        if redacted is not row.details:
            row.details = redacted
            if "inferred_state" not in (row.flags or ()):
                _, row.facts = reading.read(row.event_type, redacted)
    for i in doubtful(strings([r.message for r in rows])):
        rows[i].message = redact_value(rows[i].message, policy)


def strings(values: Sequence[Any]) -> pa.Array:
    """Text of any values; what UTF-8 cannot hold becomes replacement marks."""
    try:
        return pa.array(values, pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        return pa.array([_clean(to_text(v)) for v in values], pa.string())


def nested(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Lists and structs, texts made valid as in `strings`."""
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:
        return pa.array([_clean_all(v) for v in values], kind)


def _clean_all(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _clean_all(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean_all(item) for item in value]
    return _clean(value) if isinstance(value, str) else value


def _longs(values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(values, pa.int64())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([to_int(v) for v in values], pa.int64())


def _origin_column(origins: list[dict[str, Any]]) -> pa.StructArray:
    present = set().union(*origins)
    children = [
        (_longs if kind == pa.int64() else strings)([o.get(name) for o in origins])
        if name in present
        else pa.nulls(len(origins), kind)
        for name, kind in ORIGIN_FIELDS.items()
    ]
    return origin_of(children)


def origin_of(children: list[pa.Array]) -> pa.StructArray:
    """The column `origin` from its members, in the order of ORIGIN_FIELDS."""
    host = list(ORIGIN_FIELDS).index("host")
    if children[host].null_count < len(children[host]):
        children[host] = strings([redact_text(v) for v in children[host].to_pylist()])
    return pa.StructArray.from_arrays(children, fields=list(ORIGIN))


def _trimmed(array: pa.Array) -> pa.Array:
    """Ids: surrounding blanks off, the empty text is null."""
    trimmed = pc.utf8_trim_whitespace(array)
    return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)


def _table(rows: list[_Row], place: Place, now: datetime) -> pa.Table:
    if not rows:
        return EVENT.empty_table()
    first = [(r.error["exceptions"] or [{}])[0] if r.error and r.error["exceptions"] else None for r in rows]
    given: dict[str, pa.Array] = {
        "pipeline_id": strings([r.pipeline_id for r in rows]),
        "event_id": strings([r.id for r in rows]),
        "event_ts": pa.array([r.micros for r in rows], pa.int64()).cast(TIMESTAMP),
        "event_type": strings([r.event_type for r in rows]),
        "level": pc.utf8_upper(strings([r.level for r in rows])),
        "flow_name": strings([r.flow_name for r in rows]),
        "maturity_level": pc.utf8_upper(strings([r.maturity for r in rows])),
        "error_fatal": pa.array([r.error["fatal"] if r.error else None for r in rows], pa.bool_()),
        "exception_class": strings([e.get("class_name") if e else None for e in first]),
        "exception_message": strings([e.get("message") if e else None for e in first]),
        "error_class": strings([rootcause.code_of(e, MARK) if e else None for e in first]),
        "sql_state": strings([e.get("sql_state") if e else None for e in first]),
        "drift": nested([drift.unknown(r.event_type, r.details, r.extra) for r in rows], pa.list_(pa.string())),
        "root_error": nested([_root(r) for r in rows], ROOT_ERROR),
        "message": strings([r.message for r in rows]),
        "sequence": nested([r.sequence for r in rows], SEQUENCE),
        "error": nested([r.error for r in rows], ERROR),
        "details": strings([r.text for r in rows]),
        "extra": strings([jsontext.dumps(r.extra) if r.extra else None for r in rows]),
        "flags": nested([r.flags for r in rows], pa.list_(pa.string())),
    }
    return assemble(given, _origin_column([r.origin for r in rows]), [r.facts for r in rows], place, now)


def assemble(
    given: dict[str, pa.Array], origin: pa.StructArray, facts: list[dict[str, Any]], place: Place, now: datetime
) -> pa.Table:
    """Canonical rows from columns that are made, their origin and what their details state; columns left out are null.

    `given` has at least pipeline_id and event_ts.
    """
    length = len(origin)
    name = origin.field("pipeline_name")
    columns: dict[str, pa.Array] = {
        **given,
        "event_date": given["event_ts"].cast(pa.timestamp("us")).cast(pa.date32()),
        "dataset_name": pc.coalesce(_trimmed(origin.field("dataset_name")), _trimmed(origin.field("table_name"))),
        "pipeline_name": name,
        "batch_id": origin.field("batch_id"),
        "origin": origin,
        "_source_pipeline": pc.coalesce(_trimmed(name), given["pipeline_id"]),
        "_source": pa.repeat(pa.scalar(place.source), length),
        "_log": pa.repeat(pa.scalar(place.log), length),
        "_ingested_at": pa.repeat(pa.scalar(now, TIMESTAMP), length),
        **{column: _trimmed(origin.field(column)) for column in _FROM_ORIGIN},
    }
    for column, values in _by_column(facts).items():
        columns[column] = _fact(values, EVENT.field(column).type)
    return pa.Table.from_arrays(
        [columns[f.name] if f.name in columns else pa.nulls(length, f.type) for f in EVENT], schema=EVENT
    )


def _root(row: _Row) -> dict[str, Any] | None:
    """The cause of an error; a row at level ERROR without exceptions has its message."""
    exceptions = (row.error or {}).get("exceptions") or []
    if not exceptions and (row.level or "").upper() != "ERROR":
        return None
    return rootcause.root_error(exceptions, row.message, MARK)


def _by_column(facts: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Facts of all rows as columns; a row states a few of many, so only those are touched."""
    columns: dict[str, list[Any]] = {}
    for number, row in enumerate(facts):
        for name, value in row.items():
            if value is not None:
                if name not in columns:
                    columns[name] = [None] * len(facts)
                columns[name][number] = value
    return columns


def _fact(values: list[Any], kind: pa.DataType) -> pa.Array:
    if kind == pa.string():
        return strings(values)
    if kind == TIMESTAMP:
        return pa.array(values, pa.int64()).cast(TIMESTAMP)
    return nested(values, kind)
