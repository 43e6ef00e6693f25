"""Once a day: landing forgets what the union has, small files become large ones, old versions go.

Nothing here adds or changes a row of the union: compaction is marked as no data change, so readers of new files,
ours and those who stream the union, do not see its rows again.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties

from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.contracts import Table
from monitoring_platform.warehouse.store import Mark, Warehouse

STEP = "maintenance"
KEEP_VERSIONS = timedelta(days=7)  # time travel and slow readers
_SMALL_FILES = 8  # of one day or one mart, before they are compacted
_ROW_GROUP = 16_384  # rows: small enough that one pipeline's rows are a few groups of a day


def maintain(warehouse: Warehouse, tables: Iterable[Table], now: datetime) -> bool:
    """Do the day's maintenance unless it was done; the first call only starts the count. True if it was done."""
    today, mark = now.date().toordinal(), warehouse.mark(STEP)
    if mark is not None and mark.version >= today:
        return False
    if mark is not None:
        _forget_landing(warehouse, now)
        _compact_union(warehouse, now)
        for table in tables:
            if warehouse.exists(table):
                opened = warehouse.open(table)
                if table.name not in (contracts.UNION.name, contracts.LANDING.name):
                    _compact(opened)
                opened.create_checkpoint()
                opened.cleanup_metadata()
                hours = int(KEEP_VERSIONS.total_seconds() // 3600)
                opened.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False)
    warehouse.advance(STEP, Mark(today, ""))
    return mark is not None


def _forget_landing(warehouse: Warehouse, now: datetime) -> None:
    """Drop landed rows that are older than the retention and in the union."""
    united, landing = warehouse.mark("union"), warehouse.open(contracts.LANDING)
    if united is None or united.version < landing.version():
        return
    limit = now - timedelta(days=warehouse.settings.ingest.landing_retention_days)
    landing.delete(f"_ingested_at < TIMESTAMP '{limit:%Y-%m-%d %H:%M:%S}Z'")


def _compact(table: DeltaTable) -> None:
    """One file for the many small ones that a mart's cycles left."""
    if len(table.file_uris()) > _SMALL_FILES:
        table.optimize.compact()


def _compact_union(warehouse: Warehouse, now: datetime) -> None:
    """Compact days that are over and have many files, each pipeline's rows together: its questions read few of them."""
    union = warehouse.open(contracts.UNION)
    files = pa.table(union.get_add_actions(flatten=True))
    if files.num_rows:
        for row in files.group_by("partition.event_date").aggregate([("path", "count")]).to_pylist():
            day = row["partition.event_date"]
            if row["path_count"] > _SMALL_FILES and day < now.date():
                union.optimize.z_order(
                    ["pipeline_id", "update_id"],
                    partition_filters=[("event_date", "=", str(day))],
                    writer_properties=WriterProperties(compression="ZSTD", max_row_group_size=_ROW_GROUP),
                )
