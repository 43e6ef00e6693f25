"""What is new in the union for a mart, and which updates and days it touches."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.marts.registry import BY_NAME, PIPELINE_RUNS, Mart
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.store import Added, Mark, Marks, Warehouse

_COLUMNS = ["pipeline_id", "update_id", "event_type", "event_date"]


class News(NamedTuple):
    """Union rows that a mart does not reflect yet, what these events touch, and the mark after them."""

    added: Added | None  # None: none
    events: pa.Table  # distinct pipeline_id, update_id, event_type, event_date (as text), has_drift
    since: Mark | None
    mark: Mark

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

    def of(self, mart: Mart) -> News | None:
        """News of a mart that has been built before; None if what it is computed from has not come so far yet."""
        mark = self._marks.of(mart.name)
        runs = self._marks.of(PIPELINE_RUNS.name)
        # Dates of touched updates come from pipeline_runs: where that is behind, look back as far as it is.
        since = min(mark, runs, key=lambda m: m.version) if mark and runs else None
        latest = self._latest
        if mark == latest:
            return News(None, self._touched(None), mark, latest)
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
            self._found[since, latest] = News(added, self._touched(added), since, latest)
        return self._found[since, latest]

    @staticmethod
    def _touched(added: Added | None) -> pa.Table:
        schema = pa.schema([*((name, pa.string()) for name in _COLUMNS), ("has_drift", pa.bool_())])
        if added is None:
            return schema.empty_table()
        rows = added.columns([*_COLUMNS, "drift"])
        has_drift = pc.is_valid(rows["drift"])
        touched = rows.select(_COLUMNS).append_column("has_drift", has_drift).cast(schema)
        return touched.group_by(schema.names).aggregate([])
