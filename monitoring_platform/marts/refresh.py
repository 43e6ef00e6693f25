"""Bring marts up to date: recompute the rows of what new events touched, write only rows that changed.

A mart's mark is the version of the union that its rows reflect. Redoing a refresh changes nothing, so a kill between
the rows and the mark is harmless; `rebuild` computes the same rows from everything.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.marts.news import News, NewsDesk
from monitoring_platform.marts.registry import BY_NAME, MARTS, PIPELINE_RUNS, REQUESTS, STOCK, Mart, view
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.contracts import CONTEXT, Table
from monitoring_platform.warehouse.duck import ask
from monitoring_platform.warehouse.store import Mark, Marks, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from monitoring_platform.warehouse.store import Rows

_THREADS = 3  # marts at a time: their queries wait for the engine most of the time
_UPDATE = ["pipeline_id", "update_id"]
#: Wide texts that no mart of scope update reads: left out of what is staged for them.
_NOT_STAGED = frozenset(["details", "error", "extra", "message", "origin", "drift"])
#: How far before the first touched week a mart with a window looks: usual durations, the week before, retries.
_LOOKBACK = timedelta(days=35)
_FEW_PIPELINES = 50  # whose rows are read once for all marts; of more they may not fit into memory
_MANY_PIPELINES = 500  # named in a filter; more are not worth naming


@dataclass
class Refreshed:
    """What one refresh did to a mart."""

    mart: str
    touched: int = 0  # updates, events, days or pipelines that new events touched
    written: int = 0  # rows added or changed
    removed: int = 0  # rows that no longer follow from the events
    read: dict[str, int] = field(default_factory=dict)  # what it read of the union: files, rows scanned and used


class NotRefreshed(Exception):
    """A mart was left as it was, because one of its inputs failed."""


class _Change(NamedTuple):
    since: Mark | None
    pipelines: pa.Array  # of the rows that this refresh changed


def rebuild(warehouse: Warehouse, mart: Mart) -> int:
    """Compute the whole mart from everything, replace it in one commit, and return its number of rows."""
    warehouse.create((contracts.UNION, contracts.PROGRESS, mart.table))
    marks = warehouse.marks()
    rows = _rebuild(warehouse, mart, marks, _types(warehouse))
    marks.save()
    return rows


def _types(warehouse: Warehouse) -> frozenset[str]:
    """Types of the events that there are."""
    events, _ = warehouse.added(contracts.UNION, None)
    return frozenset(pc.unique(events.columns(["event_type"])["event_type"]).to_pylist())


def _has_input(warehouse: Warehouse, mart: Mart, types: frozenset[str]) -> bool:
    """Whether there is anything that rows of the mart could follow from."""
    if mart.scope in ("pipeline", "whole"):
        return any(warehouse.rows(STOCK[name]) for name in (*mart.inputs, *mart.context))
    return not mart.event_types or not types.isdisjoint(mart.event_types)


def _rebuild(warehouse: Warehouse, mart: Mart, marks: Marks, types: frozenset[str]) -> int:
    latest = warehouse.version(contracts.UNION)
    reached = [latest, *(mark for name in mart.inputs if name in BY_NAME and (mark := marks.of(name)))]
    warehouse.create([STOCK[name] for name in mart.context])
    versions = {**NewsDesk(warehouse, marks, latest).versions(mart), **_fixed_versions(warehouse, mart)}
    if _has_input(warehouse, mart, types):
        _whole_inputs(warehouse, mart)
        _settings(warehouse, mart)
        if mart.scope in ("event", "update", "day"):
            warehouse.read(contracts.UNION).createOrReplaceTempView("raw_events")
            for name in _event_views(mart):
                _shared_view(name, warehouse.spark).createOrReplaceTempView(name)
        if mart.chained:
            _siblings(warehouse, mart, mart.table.schema.empty_table())
        warehouse.overwrite(mart.table, warehouse.spark.sql(mart.sql))
    elif warehouse.rows(mart.table):
        warehouse.overwrite_rows(mart.table, mart.table.schema.empty_table())
    if mart.scope == "whole":
        versions = _input_versions(warehouse, mart)
    for step, version in versions.items():
        marks.set(step, version)
    marks.set(mart.name, min(reached, key=lambda mark: mark.version))
    return warehouse.rows(mart.table)


def behind(warehouse: Warehouse) -> list[str]:
    """Marts that do not reflect all events of the union yet; no engine is started."""
    if not warehouse.exists(contracts.UNION):
        return []
    marks, latest = warehouse.marks(), warehouse.version(contracts.UNION)
    late = []
    for mart in MARTS:
        mark = marks.of(mart.name)
        if mart.scope == "whole" or not warehouse.exists(mart.table):
            continue
        if mart.context and (mark is None or not warehouse.settings.has_context):
            continue
        if mark != latest and warehouse.added(contracts.UNION, mark)[0]:
            late.append(mart.name)
    return late


class Refresher:
    """Refreshes the marts of one cycle; what is found and read for one serves the others."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._base = warehouse
        self._own = threading.local()
        self._once = threading.RLock()  # what is shared is found by one thread
        warehouse.create((contracts.UNION, contracts.PROGRESS))
        self._marks = warehouse.marks()
        self._union = warehouse.version(contracts.UNION)
        self._desk = NewsDesk(warehouse, self._marks, self._union)
        self._changes: dict[str, _Change] = {}
        self._is_empty = not warehouse.rows(contracts.UNION)
        self._found_types: frozenset[str] | None = None
        self._staged: dict[tuple[Mark | None, Mark], tuple[Rows, dict[str, int]]] = {}
        self._inputs: dict[tuple[object, ...], pa.Table] = {}
        self._cutoffs: dict[tuple[object, ...], datetime] = {}

    @property
    def _warehouse(self) -> Warehouse:
        own: Warehouse = getattr(self._own, "warehouse", self._base)
        return own

    def refresh_all(self, marts: Sequence[Mart]) -> Iterator[Refreshed]:
        """Refresh marts, each after its inputs, a few at a time; gives the reports in the order of `marts`.

        `marts` are in the order of MARTS. Raises what the first failing one raised; those that do not need it are done.
        """
        done: dict[str, Future[Refreshed]] = {}

        def work(mart: Mart, inputs: list[Future[Refreshed]]) -> Refreshed:
            for upstream in inputs:  # submitted before, so one that is waited for is done or runs
                if upstream.exception():
                    raise NotRefreshed(f"{mart.name}: what it is computed from could not be refreshed")
            if not hasattr(self._own, "warehouse"):
                self._own.warehouse = self._base.for_thread()
            return self.refresh(mart)

        threads = 1 if self._base.has_one_session else _THREADS
        with ThreadPoolExecutor(threads, thread_name_prefix="marts") as pool:
            for mart in marts:
                done[mart.name] = pool.submit(work, mart, [done[name] for name in mart.inputs if name in done])
            for future in done.values():
                yield future.result()

    def save(self) -> None:
        """Record how far the marts have come, after their rows."""
        self._marks.save()

    def refresh(self, mart: Mart) -> Refreshed:
        """Recompute what changed since the mart's mark; `save` makes the new mark last."""
        warehouse = self._warehouse
        report = Refreshed(mart.name)
        if warehouse.create((mart.table,)):
            self._marks.forget(mart.name)
        mark = self._marks.of(mart.name)
        if mart.context and not self._has_context(mart):
            return report
        if mart.scope == "whole":
            self._refresh_whole(mart, report)
        elif mark is None or mark.input_id != self._union.input_id or self._is_unfixed(mart):
            if self._is_empty and not mart.context:
                return report
            report.touched = report.written = _rebuild(warehouse, mart, self._marks, self._types())
            self._own.__dict__.pop("shown", None)
        else:
            with self._once:
                news = self._desk.of(mart)
            if news is None:
                return report
            if news.added or news.context:
                self._refresh_touched(mart, news, report)
                for step, version in {mart.name: news.mark, **news.context}.items():
                    self._marks.set(step, version)
            else:
                self._changes[mart.name] = _Change(mark, pa.array([], pa.string()))
        return report

    def _types(self) -> frozenset[str]:
        with self._once:
            if self._found_types is None:
                self._found_types = _types(self._base)
            return self._found_types

    def _has_context(self, mart: Mart) -> bool:
        warehouse = self._warehouse
        warehouse.create([STOCK[name] for name in mart.context])
        return warehouse.rows(STOCK[mart.context[0]]) > 0

    def _is_unfixed(self, mart: Mart) -> bool:
        """Whether something has changed on which every row may depend."""
        fixed = _fixed_versions(self._warehouse, mart)
        return any(self._marks.of(step) != version for step, version in fixed.items())

    def _refresh_touched(self, mart: Mart, news: News, report: Refreshed) -> None:
        """Recompute and write the rows of what the news touch."""
        touched = self._touched(mart, news)
        report.touched = len(touched)
        if not report.touched:
            self._changes[mart.name] = _Change(news.since, pa.array([], pa.string()))
        elif mart.scope == "event":
            self._write(mart, news, self._event_rows(mart, news), report, None)
        elif mart.scope == "update":
            rows, report.read = self._update_rows(mart, news)
            if mart.chained:
                self._write(mart, news, rows, report, news.pipelines(), self._cutoff(news))
            else:
                self._write(mart, news, rows, report, news.updates())
        elif mart.scope == "day":
            days = touched.set_column(1, "event_date", touched["event_date"].cast(pa.date32()))
            self._write(mart, news, self._day_rows(mart, touched), report, days)
        else:
            rows, cutoff = self._pipeline_rows(mart, news, touched)
            self._write(mart, news, rows, report, touched, cutoff)

    def _touched(self, mart: Mart, news: News) -> Any:
        """What the news touch, by the mart's scope: events, events of updates, days of pipelines, or pipelines."""
        if mart.scope == "pipeline":
            return self._changed_pipelines(mart, news)
        events = news.of_types(mart.event_types)
        if mart.scope == "update":
            return events.filter(pc.is_valid(events["update_id"]))
        if mart.scope == "day":
            drifted = events.filter(events["has_drift"])
            return drifted.group_by(["pipeline_id", "event_date"]).aggregate([])
        return events

    # ---- rows of each scope ----

    def _event_rows(self, mart: Mart, news: News) -> pa.Table:
        added = news.added
        assert added is not None
        self._events(mart, ("added", news.key), added.frame)
        return _collect(self._warehouse.spark.sql(mart.sql), mart.table)

    def _update_rows(self, mart: Mart, news: News) -> tuple[pa.Table, dict[str, int]]:
        """Rows of the touched updates, from all their events."""
        with self._once:
            staged, read = self._stage(news)
        self._events(mart, ("staged", news.key), staged)
        updates = news.updates()
        for name in mart.inputs:
            stored = self._warehouse.stored(STOCK[name], None, updates)
            self._show(name, None, partial(_frame, self._warehouse, stored))
        if not mart.chained:
            return _collect(self._warehouse.spark.sql(mart.sql), mart.table), read
        cutoff = self._cutoff(news)
        recent = ("start_ts", cutoff - _LOOKBACK)
        near = self._warehouse.stored(mart.table, None, _column(news.pipelines()), since=recent)
        _siblings(self._warehouse, mart, _matching(near, updates, "ANTI"))
        rows = _collect(self._warehouse.spark.sql(mart.sql), mart.table)
        return rows.filter(_since(mart, cutoff)), read

    def _show(self, name: str, key: object, rows: Rows) -> None:
        """A view in this thread's session; one that is there already, by its key, is not made again. None = no key."""
        shown = self._own.__dict__.setdefault("shown", {})
        if key is None or shown.get(name) != key:
            rows(self._warehouse.spark).createOrReplaceTempView(name)
            shown[name] = key

    def _events(self, mart: Mart, key: object, rows: Rows) -> None:
        self._show("raw_events", key, rows)
        for name in _event_views(mart):
            self._show(name, key, partial(_shared_view, name))

    def _stage(self, news: News) -> tuple[Rows, dict[str, int]]:
        """All events of the touched updates, read once for all marts: only the days on which they have events."""
        key = (news.since, news.mark)
        if key not in self._staged:
            updates = news.updates()
            known = self._warehouse.stored(PIPELINE_RUNS, ["event_dates"], updates)["event_dates"]
            days = news.update_dates().union(*({str(day) for day in found or ()} for found in known.to_pylist()))
            columns = [name for name in contracts.UNION.schema.names if name not in _NOT_STAGED]
            dates = [date.fromisoformat(day) for day in sorted(days)]
            self._staged[key] = self._warehouse.events_of(updates, dates, columns)
        return self._staged[key]

    def _day_rows(self, mart: Mart, days: pa.Table) -> pa.Table:
        """Rows of the touched days of the touched pipelines."""
        self._warehouse.frame(days).createOrReplaceTempView("touched_days")
        dates = ", ".join(f"DATE'{date}'" for date in sorted(pc.unique(days["event_date"]).to_pylist()))
        self._warehouse.read(contracts.UNION).where(f"event_date IN ({dates})").createOrReplaceTempView("union_rows")
        rows = self._warehouse.spark.sql(
            "SELECT u.* FROM union_rows u LEFT SEMI JOIN touched_days t "
            "ON t.pipeline_id = u.pipeline_id AND CAST(t.event_date AS DATE) = u.event_date"
        )
        self._events(mart, None, lambda _: rows)
        return _collect(self._warehouse.spark.sql(mart.sql), mart.table)

    def _changed_pipelines(self, mart: Mart, news: News) -> pa.Array:
        """Pipelines whose inputs changed; where that is not known, all that new events touched."""
        mark = self._marks.of(mart.name)
        changes = [self._changes.get(name) for name in mart.inputs]
        if all(change is not None and change.since is not None and change.since == mark for change in changes):
            return pc.unique(pa.chunked_array([change.pipelines for change in changes if change], pa.string()))
        return news.pipelines()

    def _pipeline_rows(self, mart: Mart, news: News, pipelines: pa.Array) -> tuple[pa.Table, datetime | None]:
        """Rows of the touched pipelines from the first touched week on, or all of them; and where they begin."""
        cutoff = self._cutoff(news) if mart.window else None
        since = cutoff - _LOOKBACK if cutoff else None
        _settings(self._warehouse, mart)
        # Marts may be touched in a few pipelines less than the news are of: one reading serves all.
        known = pc.unique(pa.chunked_array([news.pipelines(), pipelines]))
        for name in mart.inputs:
            self._input(name, pipelines, known, since if name not in mart.uncut else None)
        rows = _collect(self._warehouse.spark.sql(mart.sql), mart.table)
        if len(pipelines) > _MANY_PIPELINES:
            rows = _matching(rows, _column(pipelines), "SEMI")
        return (rows.filter(_since(mart, cutoff)) if cutoff else rows), cutoff

    def _input(self, name: str, pipelines: pa.Array, known: pa.Array, since: datetime | None) -> None:
        """An input under its own name: rows of these pipelines, not older than `since` if its rows have a time.

        `known`: these and maybe others, whose rows are read once for all marts.
        """
        table = STOCK[name]
        if len(known) > _FEW_PIPELINES or "pipeline_id" not in table.schema.names:
            self._show(name, None, lambda _: _view(self._warehouse, name, pipelines, since))
            return
        key = (name, since, frozenset(known.to_pylist()))
        with self._once:
            if key not in self._inputs:
                window = _window(name)
                begin = (window, since) if window and since else None
                self._inputs[key] = self._warehouse.stored(table, None, _column(known), since=begin, or_null=True)
        rows = self._inputs[key]
        if len(pipelines) < len(known):
            rows = rows.filter(pc.is_in(rows["pipeline_id"], pipelines))
        self._show(name, (*key, frozenset(pipelines.to_pylist())), partial(_frame, self._warehouse, rows))

    def _cutoff(self, news: News) -> datetime:
        """Monday, 0:00 UTC, of the week in which the oldest touched update began."""
        with self._once:
            if news.key not in self._cutoffs:
                self._cutoffs[news.key] = self._find_cutoff(news)
        return self._cutoffs[news.key]

    def _find_cutoff(self, news: News) -> datetime:
        """Monday of the oldest of: the new events, the touched updates, and the requests that these may belong to."""
        updates, warehouse = news.updates(), self._warehouse
        runs = warehouse.stored(PIPELINE_RUNS, ["start_ts", "request_id"], updates)
        day = datetime.fromisoformat(pc.min(news.events["event_date"]).as_py()).replace(tzinfo=timezone.utc)
        first = min(day, pc.min(runs["start_ts"]).as_py() or day)
        # A retry without request_id continues the newest request of its pipeline.
        columns = ["pipeline_id", "request_id", "start_ts", "last_start_ts"]
        pipelines, recent = _column(news.pipelines()), ("start_ts", first - _LOOKBACK)
        oldest = ask(
            """
            SELECT min(start_ts) AS start_ts
            FROM (SELECT *, max(last_start_ts) OVER (PARTITION BY pipeline_id) AS newest FROM nearby)
            WHERE request_id IN (SELECT request_id FROM touched) OR last_start_ts = newest
            """,
            nearby=warehouse.stored(REQUESTS, columns, pipelines, since=recent),
            touched=runs,
        )
        first = min(first, oldest["start_ts"][0].as_py() or first)
        midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - timedelta(days=midnight.weekday())

    # ---- whole tables ----

    def _refresh_whole(self, mart: Mart, report: Refreshed) -> None:
        """Recompute a small table from its inputs if any of them has a new version."""
        warehouse = self._warehouse
        versions = _input_versions(warehouse, mart)
        if all(self._marks.of(step) == version for step, version in versions.items()):
            return
        _whole_inputs(warehouse, mart)
        rows = _collect(warehouse.spark.sql(mart.sql), mart.table)
        old = warehouse.arrow(mart.table)
        report.touched = rows.num_rows
        _save(warehouse, mart.table, rows, old, report)
        for step, version in versions.items():
            self._marks.set(step, version)

    # ---- writing ----

    def _write(
        self,
        mart: Mart,
        news: News,
        new: pa.Table,
        report: Refreshed,
        scope: pa.Table | pa.Array | None,
        cutoff: datetime | None = None,
    ) -> None:
        """Write what differs from the stored rows of the same scope.

        `scope`: None = these events, a table = these updates or days, an array = these pipelines, from `cutoff` on.
        """
        warehouse, table = self._warehouse, mart.table
        if scope is None:
            scope = new.select(list(table.keys))
        if not isinstance(scope, pa.Table):
            scope = _column(scope)
        # A row may have come into the window only now (a request of last week that is retried).
        since, keys = ((mart.window, cutoff), new.select(list(table.keys))) if mart.window and cutoff else (None, None)
        old = warehouse.stored(table, None, scope, since=since, or_keys=keys)
        pipelines = _save(warehouse, table, new, old, report)
        self._changes[mart.name] = _Change(news.since, pipelines)


def _event_views(mart: Mart) -> list[str]:
    """Of the views over `raw_events`: `events` with their place in the order, and those that the SQL names."""
    return ["events", *(name for name in ("batches", "rule_batches") if f"FROM {name}" in mart.sql)]


def _frame(warehouse: Warehouse, rows: pa.Table, _: SparkSession) -> DataFrame:
    return warehouse.frame(rows)


def _shared_view(name: str, spark: SparkSession) -> DataFrame:
    return spark.sql(view(name))


def _whole_inputs(warehouse: Warehouse, mart: Mart) -> None:
    """The mart's inputs under their own names, all rows."""
    for name in mart.inputs:
        warehouse.create((STOCK[name],))
        warehouse.read(STOCK[name]).createOrReplaceTempView(name)


def _input_versions(warehouse: Warehouse, mart: Mart) -> dict[str, Mark]:
    """For a mart of scope whole: the step that stands for each input, and the version that the input has."""
    return {f"{mart.name} < {name}": warehouse.version(name) for name in mart.inputs if warehouse.exists(name)}


def _fixed_versions(warehouse: Warehouse, mart: Mart) -> dict[str, Mark]:
    """The step and version of what any row of a mart may depend on: settings that it reads, tables of all pipelines."""
    found = {f"{mart.name} < {name}": warehouse.version(name) for name in mart.context if not CONTEXT[name]}
    if "settings" in mart.sql:
        found[f"{mart.name} < settings"] = Mark(0, repr(_known_settings(warehouse).to_pylist()[0]))
    return found


def _known_settings(warehouse: Warehouse) -> pa.Table:
    """What SQL may know of the configuration: one row."""
    settings = warehouse.settings
    return pa.table({"time_zone": [settings.time_zone], "currency": pa.array([settings.costs.currency], pa.string())})


def _settings(warehouse: Warehouse, mart: Mart) -> None:
    if "settings" in mart.sql:
        warehouse.frame(_known_settings(warehouse)).createOrReplaceTempView("settings")


def _siblings(warehouse: Warehouse, mart: Mart, rows: pa.Table) -> None:
    columns = [name for name in mart.table.schema.names if name not in mart.chained]
    warehouse.frame(rows.select(columns)).createOrReplaceTempView("siblings")


def _view(warehouse: Warehouse, name: str, pipelines: pa.Array, since: datetime | None) -> DataFrame:
    """A table: rows of these pipelines, and not older than `since` if its rows have a time."""
    from pyspark.sql.functions import col

    rows = warehouse.read(STOCK[name])
    if len(pipelines) <= _MANY_PIPELINES and "pipeline_id" in STOCK[name].schema.names:
        rows = rows.where(col("pipeline_id").isin(pipelines.to_pylist()))  # bound, never SQL: ids come from logs
    window = _window(name)
    if since is not None and window:
        rows = rows.where(f"{window} >= TIMESTAMP'{since:%Y-%m-%d %H:%M:%S}Z' OR {window} IS NULL")
    return rows


def _window(name: str) -> str | None:
    """The time by which rows of an input are told apart."""
    return BY_NAME[name].window if name in BY_NAME else CONTEXT.get(name)


def _since(mart: Mart, cutoff: datetime) -> Any:
    column = pc.field(str(mart.window))
    kind = mart.table.schema.field(str(mart.window)).type
    return column >= pa.scalar(cutoff, kind) if kind == pa.timestamp("us", "UTC") else column >= cutoff.date()


def _save(warehouse: Warehouse, table: Table, new: pa.Table, old: pa.Table, report: Refreshed) -> pa.Array:
    """Write the difference, and give the pipelines of changed rows."""
    changed, gone = write_difference(warehouse, table, new, old)
    report.written, report.removed = changed.num_rows, gone.num_rows
    if "pipeline_id" not in table.schema.names:
        return pa.array([], pa.string())
    return pc.unique(pa.chunked_array([*changed["pipeline_id"].chunks, *gone["pipeline_id"].chunks], pa.string()))


def write_difference(warehouse: Warehouse, table: Table, new: pa.Table, old: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Write what differs: nothing, an append or one merge. Gives the changed rows, and those that are gone."""
    changed, gone = differences(new, old, table.keys)
    keys = list(table.keys)
    if gone.num_rows or changed.select(keys).join(old.select(keys), keys, join_type="left semi").num_rows:
        warehouse.merge(table, changed, gone)
    elif changed.num_rows:
        warehouse.append_rows(table, changed)
    return changed, gone


def differences(new: pa.Table, old: pa.Table, keys: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
    """Rows of `new` that `old` does not hold, and rows of `old` whose key `new` does not hold."""
    if not old.num_rows:
        return new, old
    changed = ask("SELECT * FROM new_rows EXCEPT SELECT * FROM old_rows", new_rows=new, old_rows=old)
    return changed.cast(new.schema), _matching(old, new.select(list(keys)), "ANTI")


def _collect(rows: DataFrame, table: Table) -> pa.Table:
    return rows.select(*table.schema.names).toArrow().cast(table.schema)


def _column(pipelines: pa.Array) -> pa.Table:
    return pa.table({"pipeline_id": pipelines})


def _matching(rows: pa.Table, keys: pa.Table, how: Literal["SEMI", "ANTI"]) -> pa.Table:
    """Rows that have (SEMI) or lack (ANTI) a partner in `keys`, by all its columns."""
    using = ", ".join(f'"{name}"' for name in keys.column_names)
    return ask(f"SELECT * FROM given {how} JOIN wanted USING ({using})", given=rows, wanted=keys).cast(rows.schema)


__all__ = ["MARTS", "Refreshed", "Refresher", "behind", "differences", "rebuild", "write_difference"]
