"""A warehouse with a hand-written past: rows of marts, no engine. What a row does not say is null."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from monitoring_platform.config import Settings
from monitoring_platform.config import Warehouse as Place
from monitoring_platform.health import rules
from monitoring_platform.health.history import History
from monitoring_platform.marts.registry import STOCK
from monitoring_platform.warehouse.opening import open_warehouse


class Past:
    """Tables under `folder`, and what rules find in them."""

    def __init__(self, folder: Path, **sections: Any) -> None:
        self.settings = Settings(warehouse=Place(path=folder / "warehouse"), sources=(), **sections)
        self.warehouse = open_warehouse(self.settings)
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def add(self, table: str, **values: Any) -> None:
        """A row, stored by `write`."""
        self._rows.setdefault(table, []).append(values)

    def pipeline(self, pipeline_id: str = "p", **other: Any) -> None:
        self.add("pipelines", pipeline_id=pipeline_id, pipeline_name=f"name of {pipeline_id}", state="seen", **other)

    def run(
        self,
        start: datetime,
        minutes: float | None,
        pipeline_id: str = "p",
        status: str = "COMPLETED",
        ingested: datetime | None = None,
        **other: Any,
    ) -> str:
        """An update, open without minutes, with an event at its start and one at its end, read at `ingested`."""
        update_id = other.pop("update_id", f"{pipeline_id} {start:%Y-%m-%d %H:%M:%S}")
        end = None if minutes is None else start + timedelta(minutes=minutes)
        row = {
            "request_id": update_id,
            "attempt_number": 1,
            "run_kind": "normal",
            "pipeline_name": f"name of {pipeline_id}",
        }
        row |= {"start_ts": start, "end_ts": end, "duration_seconds": None if minutes is None else minutes * 60}
        row |= {"status": "RUNNING" if minutes is None else status, **other}
        self.add("pipeline_runs", pipeline_id=pipeline_id, update_id=update_id, **row)
        for name, at in (("start", start), ("end", end)):
            if at is not None:
                event = {"event_id": f"{update_id} {name}", "event_ts": at, "event_date": at.date()}
                read = ingested or datetime(2026, 6, 1, tzinfo=start.tzinfo)
                self.add(
                    "all_pipelines_event_log", pipeline_id=pipeline_id, update_id=update_id, _ingested_at=read, **event
                )
        return update_id

    def write(self) -> Past:
        """Store what was added."""
        for name, rows in self._rows.items():
            self.warehouse.create([STOCK[name]])
            schema = STOCK[name].schema
            filled = [{column: row.get(column) for column in schema.names} for row in rows]
            self.warehouse.append_rows(STOCK[name], pa.Table.from_pylist(filled, schema))
        self._rows = {}
        return self

    def history(self, now: datetime, *names: str, since: datetime | None = None) -> History:
        """The tables that these rules read, as known at a time."""
        return History(self.write().warehouse, [*rules.queries(self.settings, names), "pipelines"], now, since)

    def found(self, rule: str, now: datetime) -> list[rules.Found]:
        """What a rule finds at a time, by pipeline and subject."""
        self.warehouse.create([STOCK["incidents"], STOCK["pipelines"]])
        con = self.history(now, rule).con
        rules.prepare(con)
        (evaluation,) = rules.evaluate(con, self.settings, rules.pipelines(con), [rule])
        assert evaluation.error is None, evaluation.error
        return sorted(evaluation.found, key=lambda one: (one.pipeline_id, one.subject))
