"""The ways to the log of one pipeline. All give the same rows, in order of time, from a place on.

A way that is closed to us raises SourceError with the state of the pipeline that follows and what opens it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any, NamedTuple

import pyarrow as pa

from monitoring_platform.event_log.normalise import Delivered
from monitoring_platform.event_log.table_shape import delivered
from monitoring_platform.event_log.values import as_dict, to_id, to_instant
from monitoring_platform.sources.base import SourceError
from monitoring_platform.sources.workspace.client import Workspace
from monitoring_platform.sources.workspace.remedies import parts_of, qualified, quoted
from monitoring_platform.sources.workspace.statements import Value
from monitoring_platform.sources.workspace.tally import MONTH, Stamps

Ask = Callable[[str, Mapping[str, Value]], pa.Table]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_PAGE, _AT_ONCE = 1000, 200
_PLACE = frozenset({"account_id", "workspace_id"})  # where a row of a system table is from, no part of the event


class Span(NamedTuple):
    """A stretch of time to read, in microseconds, without its end; None = open."""

    since: int | None = None
    until: int | None = None


class Spot(NamedTuple):
    """How far a stretch was read: the last row's time and id, and all ids of that time."""

    micros: int
    id: str
    ids: frozenset[str] = frozenset()


class Batch(NamedTuple):
    """Rows in order of time, with their times and ids; whether these are all that there are now."""

    stamps: Stamps
    rows: pa.Table | list[Delivered]
    is_end: bool

    def chosen(self, kept: list[bool]) -> list[Any]:
        """The rows that are to be delivered."""
        if isinstance(self.rows, pa.Table):
            return [self.rows if all(kept) else self.rows.filter(pa.array(kept, pa.bool_()))]
        return [row for row, is_kept in zip(self.rows, kept) if is_kept]


class SqlLog(NamedTuple):
    """A log that SQL reads. `names`: the log's names of columns that are called otherwise here."""

    relation: str
    where: str | None = None
    parameters: Mapping[str, Value] = {}
    names: Mapping[str, str] = {}
    has_variant: bool = False

    @property
    def time(self) -> str:
        return quoted(self._here("timestamp"))

    @property
    def id(self) -> str:
        return quoted(self._here("id"))

    def _here(self, name: str) -> str:
        return next((here for here, there in self.names.items() if there == name), name)

    def fetch(self, ask: Ask, span: Span, spot: Spot | None, limit: int) -> Batch:
        """About `limit` rows of a stretch after a spot. The id goes on where rows share a time."""
        tests: list[str] = []
        values: dict[str, Value] = {"most": limit}
        if spot is not None:
            tests.append(f"({self.time} > :at OR ({self.time} = :at AND coalesce({self.id}, '') > :after))")
            values |= {"at": instant(spot.micros), "after": spot.id}
        elif span.since is not None:
            tests.append(f"{self.time} >= :since")
            values["since"] = instant(span.since)
        if span.until is not None:
            tests.append(f"{self.time} < :until")
            values["until"] = instant(span.until)
        rows = self._rows(ask, tests, f" ORDER BY {self.time}, {self.id} LIMIT :most", values)
        return Batch(_stamps(rows), rows, rows.num_rows < limit)

    def by_id(self, ask: Ask, ids: list[str]) -> dict[str, Delivered]:
        """Whole rows by their id."""
        found: dict[str, Delivered] = {}
        for start in range(0, len(ids), _AT_ONCE):
            values: dict[str, Value] = {f"id{n}": id_ for n, id_ in enumerate(ids[start : start + _AT_ONCE])}
            rows = self._rows(ask, [f"{self.id} IN ({', '.join(f':{name}' for name in values)})"], "", values)
            found.update((row.members["id"], row) for row in delivered(rows))
        return found

    def months(self, ask: Ask) -> dict[int, int]:
        """How many events the log has in each month of 30 days."""
        month = f"floor(unix_seconds({self.time}) / {MONTH // 1_000_000})"
        columns = f"{month} AS month, count(DISTINCT {self.id}) AS events"
        counted = ask(f"SELECT {columns} FROM {self._from([])} GROUP BY {month}", self.parameters)
        return {int(row["month"]): int(row["events"]) for row in counted.to_pylist() if row["month"] is not None}

    def _rows(self, ask: Ask, tests: list[str], order: str, values: Mapping[str, Value]) -> pa.Table:
        columns = "* EXCEPT (details), CAST(details AS STRING) AS details" if self.has_variant else "*"
        rows = ask(f"SELECT {columns} FROM {self._from(tests)}{order}", {**self.parameters, **values})
        rows = rows.drop_columns([name for name in rows.column_names if self.names and name in _PLACE])
        return rows.rename_columns([self.names.get(name, name) for name in rows.column_names])

    def _from(self, tests: list[str]) -> str:
        tests = [self.where, *tests] if self.where else tests
        return f"{self.relation} WHERE {' AND '.join(tests)}" if tests else self.relation


def table(name: tuple[str, ...]) -> SqlLog:
    """A published log, or a view over one."""
    return SqlLog(qualified(name))


def function(pipeline_id: str) -> SqlLog:
    """`event_log()` by the pipeline's id."""
    if not re.fullmatch(r"[\w-]+", pipeline_id):
        raise SourceError(f"{pipeline_id!r} is no id of a pipeline", "read its log in another way")
    return SqlLog(f"event_log('{pipeline_id}')")  # takes a literal only


def function_of(dataset: tuple[str, ...]) -> SqlLog:
    """`event_log()` by a table that the pipeline keeps."""
    return SqlLog(f"event_log(TABLE({qualified(dataset)}))")


def system_table(name: str, names: Mapping[str, str], pipeline_id: str) -> SqlLog:
    """The rows of one pipeline in the table of all pipelines' events."""
    return SqlLog(qualified(parts_of(name)), "pipeline_id = :pipeline_id", {"pipeline_id": pipeline_id}, names, True)


def storage(path: str) -> SqlLog:
    """The log in the storage folder of a pipeline without Unity Catalog."""
    return SqlLog(f"delta.{quoted(path)}")


def fetch_api(
    workspace: Workspace,
    pipeline_id: str,
    whole: Callable[[list[str]], dict[str, Delivered]],
    span: Span,
    spot: Spot | None,
    limit: int,
) -> Batch:
    """The same through the Events API, which filters by time only. Events that it cuts are taken from `whole`."""
    since = spot.micros if spot else span.since
    tests = [] if since is None else [f"timestamp >= '{_millis(since)}'"]
    tests += [] if span.until is None else [f"timestamp < '{_millis(span.until)}'"]
    query: dict[str, Any] = {"order_by": ["timestamp asc"], "max_results": _PAGE}
    if tests:
        query["filter"] = " AND ".join(tests)
    rows: dict[str, tuple[int | None, str | None, Delivered]] = {}
    is_end = True
    for page, following in workspace.walk(f"/api/2.0/pipelines/{pipeline_id}/events", query, kept=("max_results",)):
        for event in page.get("events") or ():
            micros, id_ = _micros(event.get("timestamp")), to_id(event.get("id"))
            if not _is_behind(micros, id_, spot):
                rows.setdefault(id_ or f"row {len(rows)}", (micros, id_, Delivered(event, "")))
        is_end = following is None
        # Not before the time moved on: the next chunk begins with the last time of this one.
        newest = max((micros for micros, _, _ in rows.values() if micros is not None), default=None)
        if len(rows) >= limit and newest is not None and (since is None or newest > since):
            break
    in_order = sorted(rows.values(), key=lambda row: row[0] or 0)  # pages may change while they are read
    stamps = [(micros, id_) for micros, id_, _ in in_order]
    return Batch(stamps, _mended([row for _, _, row in in_order], whole), is_end)


def _is_behind(micros: int | None, id_: str | None, spot: Spot | None) -> bool:
    if spot is None or micros is None:
        return False
    return micros < spot.micros or (micros == spot.micros and id_ in spot.ids)


def _mended(rows: list[Delivered], whole: Callable[[list[str]], dict[str, Delivered]]) -> list[Delivered]:
    """Rows that were cut, as another way has them; those that no way has keep their mark."""
    cut = [row.members["id"] for row in rows if _is_cut(row)]
    found = whole(cut) if cut else {}
    return [found.get(row.members["id"], row) if _is_cut(row) else row for row in rows]


def _is_cut(row: Delivered) -> bool:
    is_cut = bool(as_dict(row.members.get("truncation")).get("truncated_fields"))
    return is_cut and isinstance(row.members.get("id"), str)


def _stamps(rows: pa.Table) -> Stamps:
    """Times and ids of the rows of a table."""
    nothing = pa.nulls(rows.num_rows)
    times, ids = (rows[name] if name in rows.column_names else nothing for name in ("timestamp", "id"))
    if pa.types.is_timestamp(times.type):
        micros = times.cast(pa.timestamp("us", tz=times.type.tz), safe=False).cast(pa.int64()).to_pylist()
    else:
        micros = [_micros(value) for value in times.to_pylist()]
    return list(zip(micros, map(to_id, ids.to_pylist())))


def _micros(time: Any) -> int | None:
    found = to_instant(time)
    return found.micros if found else None


def instant(micros: int) -> datetime:
    """Microseconds since the epoch as a time."""
    return _EPOCH + timedelta(microseconds=micros)


def _millis(micros: int) -> str:
    """A time as the API's filters take it, in milliseconds, never later than it is."""
    return instant(micros).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
