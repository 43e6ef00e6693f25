"""Reading what a demo delivered, in one plain shape."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import orjson
from deltalake import DeltaTable

END = datetime(2025, 11, 30, 7, tzinfo=timezone.utc)
Row = dict[str, Any]


def rows_of_files(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.iterdir()):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        if path.suffix == ".json":
            whole = orjson.loads(text)
            found = whole["events"] if isinstance(whole, dict) else whole
        else:
            found = list(readable(text.splitlines()))
        yield from (_plain(row) for row in found if row["timestamp"] != "string")


def readable(lines: list[bytes]) -> Iterator[Row]:
    for line in lines:
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue


def rows_of_tables(folder: Path) -> Iterator[Row]:
    for path in sorted(folder.iterdir()):
        if path.name != "broken_export":
            table = DeltaTable(path).to_pyarrow_table()
            yield from (_plain(row) for row in table.to_pylist())


def _plain(row: Row) -> Row:
    """Details and origin as objects, the time as a datetime."""
    origin = orjson.loads(row["origin"]) if isinstance(row["origin"], str) else row["origin"]
    details = orjson.loads(row["details"]) if isinstance(row.get("details"), str) else row.get("details")
    at = row["timestamp"]
    if isinstance(at, str):
        at = datetime.strptime(at.replace("+0000", "Z"), "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    return {**row, "origin": origin, "details": details or {}, "at": at}
