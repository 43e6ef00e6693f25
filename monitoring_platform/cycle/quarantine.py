"""Quarantine: rows and texts that could not be placed, each kept once however often it is read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from monitoring_platform.sources.files import HALF_LINE
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.store import Warehouse


def keep(warehouse: Warehouse, rows: pa.Table, settled: Sequence[tuple[str, str]] = ()) -> int:
    """Add rows that are not there yet, take out half lines (log, position) that have been read again; count the new."""
    table = contracts.QUARANTINE
    if settled:
        there = warehouse.arrow(table, ["quarantine_id", "_log", "position", "reason"]).to_pylist()
        again = {r["quarantine_id"] for r in there if (r["_log"], r["position"]) in settled and r["reason"] == HALF_LINE}
        if again:  # ids are hexadecimal, made by us
            warehouse.open(table).delete("quarantine_id IN (" + ", ".join(f"'{id_}'" for id_ in sorted(again)) + ")")
    if not rows.num_rows:
        return 0
    unique = rows.group_by("quarantine_id", use_threads=False).aggregate(
        [(name, "first") for name in rows.column_names if name != "quarantine_id"]
    )
    unique = unique.rename_columns([name.removesuffix("_first") for name in unique.column_names]).select(rows.column_names)
    known = warehouse.arrow(table, ["quarantine_id"], pc.field("quarantine_id").isin(unique["quarantine_id"]))
    new = unique.filter(pc.invert(pc.is_in(unique["quarantine_id"], known["quarantine_id"].combine_chunks())))
    if new.num_rows:
        write_deltalake(str(warehouse.path(table)), new, mode="append")
    return int(new.num_rows)
