"""How a mart's contract is written down: one line for each column."""

from __future__ import annotations

import pyarrow as pa

from monitoring_platform.event_log.schema import (
    BOOL,
    DATASET,
    DOUBLE,
    FIELD,
    LONG,
    PLANNING,
    STREAM_SOURCE,
    STRING,
    TIMESTAMP,
    Column,
)
from monitoring_platform.warehouse.contracts import QUANTITY, Table

_TYPES: dict[str, pa.DataType] = {
    "text": STRING,
    "long": LONG,
    "double": DOUBLE,
    "quantity": QUANTITY,
    "money": pa.decimal128(38, 12),
    "bool": BOOL,
    "time": TIMESTAMP,
    "date": pa.date32(),
    "dates": pa.list_(pa.date32()),
    "texts": pa.list_(STRING),
    "int": pa.int32(),
    "fields": pa.list_(FIELD),
    "rules": DATASET.field("rules").type,
    "sources": pa.list_(STREAM_SOURCE),
    "techniques": PLANNING.field("techniques").type,
    "issues": PLANNING.field("issues").type,
    "seconds": pa.map_(STRING, DOUBLE),
}


def table(name: str, grain: str, keys: str, columns: str) -> Table:
    """A contract from lines `column type description`."""
    parsed = [line.split(maxsplit=2) for line in columns.strip().splitlines()]
    return Table(name, grain, tuple(keys.split()), tuple(Column(n, _TYPES[t], doc) for n, t, doc in parsed))
