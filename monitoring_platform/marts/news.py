"""What is new for a mart, in the union and in the context, and which updates, days and pipelines it touches."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.event_log.schema import TIMESTAMP
from monitoring_platform.marts.registry import BY_NAME, PIPELINE_RUNS, STOCK, Mart
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.contracts import CONTEXT
from monitoring_platform.warehouse.store import Added, Mark, Marks, Warehouse

_COLUMNS = ["pipeline_id", "update_id", "event_type", "event_date"]
_SCHEMA = pa.schema([*((name, pa.string()) for name in _COLUMNS), ("has_drift", pa.bool_())])


class News(NamedTuple):
    """Union rows that a mart does not reflect yet, what these events touch, and the mark after them."""

    added: Added | None  # None: none
    events: pa.Table  # distinct pipeline_id, update_id, event_type, event_date (as text), has_drift
    since: Mark | None
    mark: Mark
    context: dict[str, Mark]  # by the step that stands for a table of the context: its version, where that is new

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for news of the same files."""
        return self.since, self.mark, *sorted(self.context.values())

    def of_types(self, types: tuple[str, ...]) -> pa.Table:
        """The distinct events of these types; of all types if none are named."""
        if not types:
            return self.events
        return self.events.filter(pc.is_in(self.events["event_type"], pa.array(types, pa.string())))

    def updates(self) -> pa.Table:
        """Touched updates: distinct pipeline_id, update_id."""
        known = self.events.filter(pc.is_valid(self.events["update_id"]))
        return known.group_by(["pipeline_id", "update_id"]).aggregate([])

    def update_dates(self) -> set[str]:
        """UTC dates of the new events that belong to updates."""
        known = self.events.filter(pc.is_valid(self.events["update_id"]))
        return set(pc.unique(known["event_date"]).to_pylist())

    def pipelines(self) -> pa.Array:
        """Touched pipelines."""
        return pc.unique(self.events["pipeline_id"])


class NewsDesk:
    """Finds the news of marts; marts that have come equally far share what is read."""

    def __init__(self, warehouse: Warehouse, marks: Marks, latest: Mark) -> None:
        self._warehouse, self._marks = warehouse, marks
        self._latest = latest  # version of the union; whoever refreshes marts holds the lock, so it stays
        self._found: dict[tuple[Mark | None, Mark], News] = {}
        self._versions: dict[str, Mark] = {}
        self._context: dict[tuple[str, Mark | None], pa.Table] = {}

    def of(self, mart: Mart) -> News | None:
        """News of a mart that has been built before; None if what it is computed from has not come so far yet."""
        news = self._of_union(mart)
        versions = self.versions(mart) if news else {}
        new = {step: mark for step, mark in versions.items() if self._marks.of(step) != mark}
        if news is None or not new:
            return news
        rows = [self._touched_by(step.rpartition(" < ")[2], self._marks.of(step)) for step in new]
        return news._replace(events=pa.concat_tables([news.events, *rows]), context=new)

    def versions(self, mart: Mart) -> dict[str, Mark]:
        """For each table of the context whose rows belong to pipelines: its step for this mart, and its version."""
        names = [name for name in mart.context if CONTEXT[name]]
        for name in names:
            if name not in self._versions:
                self._versions[name] = self._warehouse.version(name)
        return {f"{mart.name} < {name}": self._versions[name] for name in names}

    def _touched_by(self, name: str, since: Mark | None) -> pa.Table:
        """Pipelines and days of what was added to a table of context; a day earlier, for updates begun just before."""
        if (name, since) not in self._context:
            window = str(CONTEXT[name])
            added, _ = self._warehouse.added(STOCK[name], since)
            rows = added.columns(["pipeline_id", window])
            days = pc.subtract(rows[window].cast(TIMESTAMP), timedelta(days=1)).cast(pa.date32()).cast(pa.string())
            days = pc.fill_null(days, "1970-01-01")
            found = {"pipeline_id": rows["pipeline_id"], "event_date": days}
            touched = pa.table(found).group_by(list(found)).aggregate([])
            self._context[name, since] = pa.concat_tables([_SCHEMA.empty_table(), touched], promote_options="default")
        return self._context[name, since]

    def _of_union(self, mart: Mart) -> News | None:
        mark = self._marks.of(mart.name)
        runs = self._marks.of(PIPELINE_RUNS.name)
        # Dates of touched updates come from pipeline_runs: where that is behind, look back as far as it is.
        since = min(mark, runs, key=lambda m: m.version) if mark and runs else None
        latest = self._latest
        if mark == latest:
            return News(None, self._touched(None), mark, latest, {})
        for name in mart.inputs:
            upstream = self._marks.of(name) if name in BY_NAME else latest
            if upstream is None or upstream.input_id != latest.input_id:
                return None
            if upstream.version < latest.version:
                latest = upstream  # reading a little further than upstream has come only touches more
        if mark is not None and mark.input_id == latest.input_id and mark.version >= latest.version:
            return None
        if (since, latest) not in self._found:
            added, _ = self._warehouse.added(contracts.UNION, since)
            self._found[since, latest] = News(added, self._touched(added), since, latest, {})
        return self._found[since, latest]

    @staticmethod
    def _touched(added: Added | None) -> pa.Table:
        if added is None:
            return _SCHEMA.empty_table()
        rows = added.columns([*_COLUMNS, "drift"])
        has_drift = pc.is_valid(rows["drift"])
        touched = rows.select(_COLUMNS).append_column("has_drift", has_drift).cast(_SCHEMA)
        return touched.group_by(_SCHEMA.names).aggregate([])
