"""Once a day: landing forgets what the union has, small files become large ones, old versions go.

Nothing here adds or changes a row of the union: compaction is marked as no data change, so readers of new files,
ours and those who stream the union, do not see its rows again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.contracts import Table
from monitoring_platform.warehouse.store import Mark, Warehouse

STEP = "maintenance"


def maintain(warehouse: Warehouse, tables: Iterable[Table], now: datetime) -> bool:
    """Do the day's maintenance unless it was done; the first call only starts the count. True if it was done."""
    warehouse.create((contracts.PROGRESS,))
    today, mark = now.date().toordinal(), warehouse.mark(STEP)
    if mark is not None and mark.version >= today:
        return False
    if mark is not None:
        _forget_landing(warehouse, now)
        for table in tables:
            if warehouse.exists(table):
                warehouse.tidy(table, now.date())
    warehouse.advance(STEP, Mark(today, ""))
    return mark is not None


def _forget_landing(warehouse: Warehouse, now: datetime) -> None:
    """Drop landed rows that are older than the retention and in the union."""
    united = warehouse.mark("union")
    if united is None or united.version < warehouse.version(contracts.LANDING).version:
        return
    retention = timedelta(days=warehouse.settings.ingest.landing_retention_days)
    warehouse.forget(contracts.LANDING, "_ingested_at", now - retention)
