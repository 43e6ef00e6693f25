"""Quarantine: rows and texts that could not be placed, each kept once however often it is read."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.sources.files import HALF_LINE
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.store import Warehouse

_TABLE, _ID = contracts.QUARANTINE, "quarantine_id"


def keep(warehouse: Warehouse, rows: pa.Table, read: Sequence[str] = ()) -> int:
    """Add rows that are not there yet; returns their number.

    Half last lines of the logs just read are taken out first: read again, they are whole now or among `rows`.
    """
    half = {"reason": [HALF_LINE], "_log": read}
    again = warehouse.arrow(_TABLE, [_ID], half) if read else _TABLE.schema.empty_table()
    settled = again.filter(_outside(again, rows))
    firsts = rows.group_by(_ID, use_threads=False).aggregate([(n, "first") for n in rows.column_names if n != _ID])
    unique = firsts.rename_columns([n.removesuffix("_first") for n in firsts.column_names]).select(rows.column_names)
    known = warehouse.arrow(_TABLE, [_ID], {_ID: unique[_ID].to_pylist()}) if unique.num_rows else unique
    new = unique.filter(_outside(unique, known))
    if settled.num_rows:
        there = warehouse.arrow(_TABLE)
        warehouse.replace_rows(_TABLE, pa.concat_tables([there.filter(_outside(there, settled)), new]))
    elif new.num_rows:
        warehouse.append_rows(_TABLE, new)
    return int(new.num_rows)


def _outside(rows: pa.Table, others: pa.Table) -> pa.ChunkedArray:
    return pc.invert(pc.is_in(rows[_ID], others[_ID].combine_chunks()))
