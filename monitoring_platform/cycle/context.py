"""Context: what workspaces and billing say beside the logs. Known updates, job runs, usage, prices.

Each kind of each source is read by itself: one that fails is named in `context_reads`, keeps what it read before, is
tried again later and stops nothing. Rows are added and restated by their keys, never removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa

from monitoring_platform.cycle.ingest import fail
from monitoring_platform.marts.refresh import write_difference
from monitoring_platform.sources import SourceError, billing
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.contracts import Table
from monitoring_platform.warehouse.store import Warehouse

Row = dict[str, Any]
_READS = contracts.CONTEXT_READS


@dataclass
class Gathered:
    """What one look at the context brought."""

    written: dict[str, int] = field(default_factory=dict)  # rows added or restated, by table
    failed: dict[str, str] = field(default_factory=dict)  # "kind of source" -> reason


class _Task(NamedTuple):
    """One kind of context of one source. `read` gets the row of `context_reads`, whose position it moves on."""

    source: str
    kind: str
    read: Callable[[Row], Iterator[tuple[Table, pa.Table]]]


def gather(
    warehouse: Warehouse, now: datetime, *, force: bool = True, progress: Callable[[str], None] = lambda text: None
) -> Gathered:
    """Read what is new of everything that the configuration asks for. Nothing is asked for: nothing is done."""
    report = Gathered()
    tasks = list(_tasks(warehouse, now))
    if not tasks:
        return report
    warehouse.create((*contracts.CONTEXT_TABLES, _READS))
    reads = {(row["source"], row["kind"]): row for row in warehouse.arrow(_READS).to_pylist()}
    for task in tasks:
        row = reads.setdefault((task.source, task.kind), _new_row(task))
        if row["error"] and not force and row["next_retry_at"] and now < row["next_retry_at"]:
            report.failed[f"{task.kind} of {task.source}"] = row["error"]
            continue
        try:
            _read(warehouse, task, row, now, report)
        except SourceError as error:
            fail(row, error, now)
        except Exception as error:  # a surprise of one source must not stop the others
            fail(row, SourceError(f"{type(error).__name__}: {error}", "this looks like a bug: please report it"), now)
        if row["error"]:
            report.failed[f"{task.kind} of {task.source}"] = row["error"]
            progress(f"cannot read {task.kind} of {task.source}: {row['error']}")
    ordered = [reads[key] for key in sorted(reads)]
    warehouse.replace_rows(_READS, pa.Table.from_pylist(ordered, _READS.schema))
    return report


def _new_row(task: _Task) -> Row:
    row: Row = dict.fromkeys(_READS.schema.names)
    row.update(source=task.source, kind=task.kind, state="readable", consecutive_failures=0)
    return row


def _read(warehouse: Warehouse, task: _Task, row: Row, now: datetime, report: Gathered) -> None:
    """Keep what the task brings. It moves its position on after it is asked for more: then the rows are there."""
    for table, rows in task.read(row):
        report.written[table.name] = report.written.get(table.name, 0) + _keep(warehouse, table, rows)
    row.update(state="readable", error=None, remedy=None, consecutive_failures=0, next_retry_at=None, last_read_at=now)


def _keep(warehouse: Warehouse, table: Table, rows: pa.Table) -> int:
    """Add rows, and restate those whose key is there; returns how many were new or differ."""
    if not rows.num_rows:
        return 0
    changed, _ = write_difference(warehouse, table, rows, warehouse.stored(table, None, rows.select(list(table.keys))))
    return int(changed.num_rows)


# ---- what there is to read ----


def _tasks(warehouse: Warehouse, now: datetime) -> Iterator[_Task]:
    costs = warehouse.settings.costs
    if costs.enabled:
        for table, kind, path in (
            (contracts.BILLING_USAGE, "usage", costs.usage),
            (contracts.LIST_PRICES, "list_prices", costs.list_prices),
        ):
            if path:
                yield _Task(_shown(warehouse, path), kind, _exports(table, path, _shown(warehouse, path)))


def _shown(warehouse: Warehouse, path: str) -> str:
    """A path as people know it: relative to the configuration where it is below it."""
    try:
        return str(Path(path).relative_to(warehouse.settings.base_dir))
    except ValueError:
        return path


def _exports(table: Table, path: str, source: str) -> Callable[[Row], Iterator[tuple[Table, pa.Table]]]:
    """Reads the exports that are new or changed since the last look, in the order of their names."""

    def read(row: Row) -> Iterator[tuple[Table, pa.Table]]:
        known: dict[str, Any] = orjson.loads(row["position"]) if row["position"] else {}
        files = billing.files(path)
        if not files:
            raise SourceError(f"{source} matches nothing", "check the path in costs, or export the table there")
        broken: list[SourceError] = []
        for file in files:
            stat = file.stat()
            mark = [stat.st_size, stat.st_mtime_ns]
            if known.get(str(file)) != mark:
                try:
                    yield table, billing.from_file(table, file, source)
                    known[str(file)] = mark
                except SourceError as error:
                    broken.append(error)
        row["position"] = orjson.dumps(known).decode()
        if broken:
            raise broken[0]

    return read
