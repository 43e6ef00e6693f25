"""Rows of a table in the log's own shape (typed columns, structs, details as text), column by column.

Nearly every row of such a table is usual: typed as the schema says, an id without blanks around it, no error, nothing
that no column takes. The columns of these pass as they are, and only their details are parsed one by one. Every other
row goes the long way, through `normalise`. Both ways give the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.event_log import details as reading
from monitoring_platform.event_log import drift, jsontext
from monitoring_platform.event_log.normalise import (
    COLUMNS,
    HOISTED,
    Delivered,
    Normalised,
    Place,
    assemble,
    doubtful,
    latest_credible,
    nested,
    normalise,
    origin_of,
    redacted_details,
    strings,
)
from monitoring_platform.event_log.redact import DEFAULT, Policy, redact_value
from monitoring_platform.event_log.schema import BOOL, ERROR, LONG, ORIGIN_FIELDS, SEQUENCE, STRING, TIMESTAMP
from monitoring_platform.event_log.values import FIRST_MICROS, LAST_MICROS, Micros

Columns = dict[str, pa.Array]

_TIMES = ("timestamp", "event_time")
_TEXTS = ("id", "event_type", "level", "maturity_level", "message", "details")
#: Text that trimming leaves alone, whatever counts as a blank; a type that is in lower case already.
_PLAIN, _LOWER = r"^[!-~]([ -~]*[!-~])?$", r"^[a-z][a-z0-9_]*$"


def normalise_table(table: pa.Table, place: Place, *, now: datetime, policy: Policy = DEFAULT) -> Normalised:
    """Canonical and quarantined rows of one table; their number is the number of rows given."""
    usual = _usual(table, latest_credible(now), policy)
    if usual is None:
        return normalise(delivered(table), place, now=now, policy=policy)
    chosen = table.filter(usual)
    events, done = _usual_rows(_columns(chosen), place, now, policy)
    rest = pa.concat_tables([table.filter(pc.invert(usual)), chosen.filter(pc.invert(done))])
    long = normalise(delivered(rest), place, now=now, policy=policy)
    return long._replace(events=pa.concat_tables([events, long.events]))


def _usual(table: pa.Table, latest: int, policy: Policy) -> pa.Array | None:
    """Which rows are usual; None if the types of the columns already say that none is."""
    kinds = dict(zip(table.column_names, table.schema.types))
    if not table.num_rows or len(kinds) < table.num_columns or not kinds.keys() >= {"timestamp", "origin", *_TEXTS}:
        return None
    if not (pa.types.is_struct(kinds["origin"]) and pa.types.is_timestamp(kinds["timestamp"])):
        return None
    if not all(_is_text(kinds[name]) for name in _TEXTS):
        return None
    given = _columns(table)
    origin, micros = _members(given["origin"]), _micros(given["timestamp"])
    conditions = [
        pc.greater_equal(micros, FIRST_MICROS),
        pc.less_equal(micros, min(LAST_MICROS, latest)),
        _matches(given["id"], _PLAIN),
        _matches(given["event_type"], _LOWER),
        _matches(_member(origin, "pipeline_id", table.num_rows), _PLAIN),
        *(_matches(given[name], _PLAIN).fill_null(True) for name in ("level", "maturity_level")),
        _matches(_member(origin, "update_id", table.num_rows), _PLAIN).fill_null(True),
        # The message of an error is read for its cause.
        pc.not_equal(pc.utf8_upper(_text(given["level"])), "ERROR").fill_null(True),
    ]
    for name, member in origin.items():
        if not _fits(member.type, ORIGIN_FIELDS.get(name)) or (name == "user_id" and policy.pseudonymise_persons):
            conditions.append(pc.is_null(member))
    if "sequence" in given:
        conditions.append(_is_usual_sequence(given["sequence"]))
    if "error" in given:
        conditions.append(_is_no_error(given["error"]))
    for name in given.keys() - COLUMNS:  # another column: its values are kept, unless they repeat those of origin
        condition = pc.is_null(given[name])
        if name in HOISTED and _is_text(kinds[name]):
            same = pc.equal(_text(given[name]), _member(origin, name, table.num_rows))
            condition = pc.or_(condition, same.fill_null(False))
        conditions.append(condition)
    return reduce(pc.and_, conditions).fill_null(False)


def _usual_rows(given: Columns, place: Place, now: datetime, policy: Policy) -> tuple[pa.Table, pa.Array]:
    """Canonical rows of usual ones, and which of them these are: details may turn out to need the long way."""
    suspects = set(doubtful(given["details"]))
    flows = _member(_members(given["origin"]), "flow_name", len(given["id"])).to_pylist()
    texts, types = given["details"].fill_null("").to_pylist(), given["event_type"].to_pylist()
    found = [
        (_repeated if event_type in _REPEATED and len(text) <= _REMEMBERED else _body)(
            event_type, text, policy if number in suspects else None, not flow
        )
        for number, (event_type, text, flow) in enumerate(zip(types, texts, flows))
    ]
    usual = pa.array([body is not None for body in found], BOOL)
    bodies = [body for body in found if body is not None]
    given = {name: array.filter(usual) for name, array in given.items()}
    origin = _origin(_members(given["origin"]), len(bodies))
    columns = {
        "pipeline_id": origin.field("pipeline_id"),
        "event_id": _text(given["id"]),
        "event_ts": _micros(given["timestamp"]).cast(TIMESTAMP),
        "event_type": _text(given["event_type"]),
        "level": pc.utf8_upper(_text(given["level"])),
        "maturity_level": pc.utf8_upper(_text(given["maturity_level"])),
        "flow_name": _named(origin.field("flow_name"), bodies),
        "message": _redacted_messages(given["message"], policy),
        "details": strings([body.text for body in bodies]) if suspects else _text(given["details"]),
        "drift": nested([body.drift for body in bodies], pa.list_(STRING)),
    }
    if "sequence" in given:
        columns["sequence"] = _sequence(given["sequence"])
    if "error" in given:
        columns["error"], columns["error_fatal"] = _no_error(given["error"])
    return assemble(columns, origin, [body.facts for body in bodies], place, now), usual


def _named(flows: pa.Array, bodies: list[_Body]) -> pa.Array:
    return strings([name or body.flow_name for name, body in zip(flows.to_pylist(), bodies)])


class _Body(NamedTuple):
    """What the details of a usual row come to; the flow that they name if origin names none."""

    text: str
    facts: dict[str, Any]
    drift: list[str] | None
    flow_name: str | None


def _body(event_type: str, text: str, policy: Policy | None, seek_flow: bool) -> _Body | None:
    """Details read, and redacted if there is a policy; None if they need the long way."""
    try:
        details = jsontext.loads(text)
    except jsontext.INVALID:
        return None
    if type(details) is not dict or not details:
        return None
    read_type, facts = reading.read(event_type, details)
    if read_type != event_type:
        return None
    named = reading.named_flow(details) if seek_flow else None
    if policy is not None:
        clean, redacted = redacted_details(text, details, policy)
        if redacted is not details:
            text, details, (_, facts) = clean or "", redacted, reading.read(event_type, redacted)
    return _Body(text, facts, drift.unknown(event_type, details, None), named)


#: Definitions are written anew with every update, mostly word for word: each text is read once.
_REPEATED, _REMEMBERED = frozenset(["flow_definition", "dataset_definition"]), 16 * 1024
_repeated = lru_cache(maxsize=1024)(_body)


def _redacted_messages(texts: pa.Array, policy: Policy) -> pa.Array:
    suspects = doubtful(texts)
    if not suspects:
        return _text(texts)
    values = texts.to_pylist()
    for i in suspects:
        values[i] = redact_value(values[i], policy)
    return strings(values)


# ---- columns of a table ----


def _columns(table: pa.Table) -> Columns:
    return {name: _whole(column) for name, column in zip(table.column_names, table.columns)}


def _whole(array: Any) -> pa.Array:
    """One array; a column without rows stays chunked otherwise."""
    if isinstance(array, pa.ChunkedArray):
        return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _fits(kind: pa.DataType, wanted: pa.DataType | None) -> bool:
    """Whether values of a type go into a column without being looked at."""
    return _is_text(kind) if wanted == STRING else wanted == LONG and bool(pa.types.is_signed_integer(kind))


def _text(array: pa.Array) -> pa.Array:
    return array.cast(STRING)


def _micros(times: pa.Array) -> pa.Array:
    """Microseconds since the epoch; finer fractions are cut."""
    return times.cast(pa.timestamp("us", tz=times.type.tz), safe=False).cast(LONG)


def _matches(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(texts, pattern)


def _members(struct: pa.Array) -> Columns:
    """Members of a struct, null where the struct is."""
    return dict(zip([field.name for field in struct.type], struct.flatten()))


def _member(members: Columns, name: str, length: int) -> pa.Array:
    """A text member; null if the struct has none, or of another type."""
    found = members.get(name)
    return _text(found) if found is not None and _is_text(found.type) else pa.nulls(length, STRING)


def _origin(members: Columns, length: int) -> pa.StructArray:
    return origin_of(
        [
            members[name].cast(kind) if name in members and _fits(members[name].type, kind) else pa.nulls(length, kind)
            for name, kind in ORIGIN_FIELDS.items()
        ]
    )


def _is_usual_sequence(sequence: pa.Array) -> pa.Array:
    """Nothing there, or numbers and an instance as the schema has them."""
    absent = pc.is_null(sequence)
    kind = sequence.type
    if not pa.types.is_struct(kind) or {f.name for f in kind} - {f.name for f in SEQUENCE}:
        return absent
    usual = []
    for name, member in _members(sequence).items():
        if name == "control_plane_seq_no":
            fits = _fits(member.type, LONG)
        else:
            wanted = {f.name: f.type for f in SEQUENCE.field("data_plane_id").type}
            fits = pa.types.is_struct(member.type) and all(_fits(f.type, wanted.get(f.name)) for f in member.type)
        if not fits:
            return absent
        usual.append(pc.is_valid(member))
    return pc.or_(absent, reduce(pc.or_, usual, pa.repeat(pa.scalar(False), len(sequence))))


def _sequence(sequence: pa.Array) -> pa.Array:
    if sequence.null_count == len(sequence):
        return pa.nulls(len(sequence), SEQUENCE)
    given, length = _members(sequence), len(sequence)
    planes = given.get("data_plane_id", pa.nulls(length, SEQUENCE.field("data_plane_id").type))
    parts = _members(planes)
    plane_type = SEQUENCE.field("data_plane_id").type
    plane = pa.StructArray.from_arrays(
        [parts[f.name].cast(f.type) if f.name in parts else pa.nulls(length, f.type) for f in plane_type],
        fields=list(plane_type),
        mask=pc.is_null(planes),
    )
    control = given.get("control_plane_seq_no", pa.nulls(length, LONG)).cast(LONG)
    return pa.StructArray.from_arrays([plane, control], fields=list(SEQUENCE), mask=pc.is_null(sequence))


def _is_no_error(error: pa.Array) -> pa.Array:
    """Nothing there, or a struct without exceptions."""
    absent = pc.is_null(error)
    members = _members(error) if pa.types.is_struct(error.type) else {}
    if members.keys() != {"fatal", "exceptions"} or not pa.types.is_boolean(members["fatal"].type):
        return absent
    return pc.or_(absent, pc.is_null(members["exceptions"]))


def _no_error(error: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The columns error and error_fatal of rows without exceptions."""
    if error.null_count == len(error):
        return pa.nulls(len(error), ERROR), pa.nulls(len(error), BOOL)
    fatal = _members(error)["fatal"]
    nothing = pa.nulls(len(error), ERROR.field("exceptions").type)
    return pa.StructArray.from_arrays([fatal, nothing], fields=list(ERROR), mask=pc.is_null(error)), fatal


# ---- rows of a table, for the long way ----


def delivered(table: pa.Table) -> Iterator[Delivered]:
    """Rows as members without their nulls, column by column, so that a row is the same whatever rows are beside it.

    Typed times stay exact.
    """
    columns = []
    for name in table.column_names:
        array = _whole(table.column(name))
        values = _instants(array) if name in _TIMES else _values(array)
        if values is not None:
            columns.append((name, values))
    if not columns:
        return iter(Delivered({}, "") for _ in range(table.num_rows))
    names = [name for name, _ in columns]
    return (Delivered(_filled(names, row), "") for row in zip(*(values for _, values in columns)))


def _filled(names: Sequence[str], values: Iterable[Any]) -> dict[str, Any]:
    return {name: value for name, value in zip(names, values) if value is not None}


def _instants(array: Any) -> list[Any] | None:
    """A column that is the time of the event: typed times stay exact."""
    if not pa.types.is_timestamp(array.type):
        return _values(array)
    return [None if value is None else Micros(value) for value in _micros(array).to_pylist()]


def _values(array: Any) -> list[Any] | None:
    """A column as Python values; None if it holds nothing."""
    if array.null_count == len(array):
        return None
    kind = array.type
    if pa.types.is_struct(kind):
        children = [(f.name, _values(array.field(i))) for i, f in enumerate(kind)]
        present = [(name, values) for name, values in children if values is not None]
        names = [name for name, _ in present]
        rows = [_filled(names, row) for row in zip(*(values for _, values in present))] or [{}] * len(array)
        return rows if array.null_count == 0 else [r if v else None for r, v in zip(rows, array.is_valid().to_pylist())]
    if pa.types.is_nested(kind):
        return [json_safe(value) for value in array.to_pylist()]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [None if v is None else v.decode("utf-8", "replace") for v in array.to_pylist()]
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return list(array.cast(pa.string()).to_pylist())
    if (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (pa.types.is_integer(kind) and not array.null_count)
    ):
        return list(array.to_numpy(zero_copy_only=False).tolist())  # several times faster, and as exact for these
    return list(array.to_pylist())


def json_safe(value: Any) -> Any:
    """Nested values as JSON can hold them: times, decimals and bytes of unknown columns become text, NaN null."""
    return orjson.loads(orjson.dumps(value, default=_readable)) if value is not None else None


def _readable(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
