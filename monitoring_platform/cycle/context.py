"""Context: what workspaces and billing say beside the logs. Known updates, job runs, billed usage, list prices.

Each kind of each source is read by itself: one that fails is named in `context_reads`, keeps what it read before, is
tried again later and stops nothing. Rows are added and restated by their keys, never removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from monitoring_platform.config import WorkspaceSource
from monitoring_platform.cycle.ingest import fail
from monitoring_platform.marts.refresh import write_difference
from monitoring_platform.sources import SourceError, billing
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.contracts import Table
from monitoring_platform.warehouse.store import Warehouse

Row = dict[str, Any]
Position = dict[str, Any]
Part = tuple[Table, pa.Table]
_READS = contracts.CONTEXT_READS
_FINE: Row = {"state": "readable", "error": None, "remedy": None, "consecutive_failures": 0, "next_retry_at": None}


@dataclass
class Gathered:
    """What one look at the context brought."""

    written: dict[str, int] = field(default_factory=dict)  # rows added or restated, by table
    failed: dict[str, str] = field(default_factory=dict)  # "kind of source" -> reason


@dataclass
class Reading:
    """One read of one kind: what its books say, and what it leaves there.

    A reader moves `position` on when it is asked for more: what it gave before is kept then.
    """

    position: Position
    failed_before: bool
    complete_to: datetime | None = None  # all that was published before then has been read
    note: str | None = None


class Task(NamedTuple):
    """One kind of context of one source."""

    source: str
    kind: str
    read: Callable[[Reading], Iterator[Part]]


def gather(
    warehouse: Warehouse, now: datetime, *, force: bool = True, progress: Callable[[str], None] = lambda text: None
) -> Gathered:
    """Read what is new of everything that the configuration asks for; if it asks for nothing, nothing is done.

    `force`: also what failed and is to be tried later.
    """
    report = Gathered()
    tasks = _tasks(warehouse, now)
    if not tasks:
        return report
    warehouse.create((*contracts.CONTEXT_TABLES, _READS))
    reads = {(row["source"], row["kind"]): row for row in warehouse.arrow(_READS).to_pylist()}
    for task in tasks:
        row = reads.setdefault((task.source, task.kind), _new_row(task))
        if force or not row["error"] or not row["next_retry_at"] or now >= row["next_retry_at"]:
            _read(warehouse, task, row, now, report)
        if row["error"]:
            report.failed[f"{task.kind} of {task.source}"] = row["error"]
            progress(f"cannot read {task.kind} of {task.source}: {row['error']}")
    asked = {(task.source, task.kind) for task in tasks}  # what is asked for no longer has no state any more
    ordered = [reads[key] for key in sorted(asked)]
    warehouse.replace_rows(_READS, pa.Table.from_pylist(ordered, _READS.schema))
    return report


def _new_row(task: Task) -> Row:
    return {**dict.fromkeys(_READS.schema.names), **_FINE, "source": task.source, "kind": task.kind}


def _read(warehouse: Warehouse, task: Task, row: Row, now: datetime, report: Gathered) -> None:
    position = orjson.loads(row["position"]) if row["position"] else {}
    reading = Reading(position, row["error"] is not None, row["complete_to"])
    try:
        for table, rows in task.read(reading):
            report.written[table.name] = report.written.get(table.name, 0) + keep(warehouse, table, rows)
        row.update(_FINE, last_read_at=now)
    except SourceError as error:
        fail(row, error, now)
    except Exception as error:  # a surprise of one source must not stop the others
        fail(row, SourceError(f"{type(error).__name__}: {error}", "this looks like a bug: please report it"), now)
    row["position"] = orjson.dumps(reading.position, option=orjson.OPT_SORT_KEYS).decode()
    row["note"], row["complete_to"] = reading.note, reading.complete_to


def keep(warehouse: Warehouse, table: Table, rows: pa.Table) -> int:
    """Add rows, and restate those whose key is there; returns how many were new or differ."""
    if not rows.num_rows:
        return 0
    changed, _ = write_difference(warehouse, table, rows, warehouse.stored(table, None, rows.select(list(table.keys))))
    return int(changed.num_rows)


def _tasks(warehouse: Warehouse, now: datetime) -> list[Task]:
    """What there is to read, by the configuration."""
    settings, tasks = warehouse.settings, []
    for table, kind, path in (
        (contracts.BILLING_USAGE, "usage", settings.costs.usage),
        (contracts.LIST_PRICES, "list_prices", settings.costs.list_prices),
    ):
        if settings.costs.enabled and path:
            source = _shown(warehouse, path)
            tasks.append(Task(source, kind, partial(_exports, table, path, source, now)))
    entries = [entry for entry in settings.sources if isinstance(entry, WorkspaceSource)]
    if entries:
        from monitoring_platform.cycle import workspace_context  # imports the SDK

        for entry in entries:
            tasks += workspace_context.tasks(warehouse, entry, now)
    return tasks


def _shown(warehouse: Warehouse, path: str) -> str:
    """A path as people know it: relative to the configuration where it is below it."""
    try:
        return str(Path(path).relative_to(warehouse.settings.base_dir))
    except ValueError:
        return path


def _exports(table: Table, path: str, source: str, now: datetime, reading: Reading) -> Iterator[Part]:
    """The exports that are new or changed since the last look, in the order of their names."""
    files = billing.files(path)
    if not files:
        raise SourceError(f"{source} matches nothing", "check the path in costs, or export the table there")
    broken: list[SourceError] = []
    written: list[datetime] = []
    for file in files:
        stat = file.stat()
        written.append(datetime.fromtimestamp(stat.st_mtime, timezone.utc))
        mark = [stat.st_size, stat.st_mtime_ns]
        if reading.position.get(str(file)) != mark:
            try:
                yield table, billing.from_file(table, file)
                reading.position[str(file)] = mark
            except SourceError as error:
                broken.append(error)
    if broken:
        raise broken[0]
    if table is contracts.BILLING_USAGE:
        reading.complete_to = min(max(written), now)
