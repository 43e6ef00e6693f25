"""What a Delta table's commits say, read straight from its `_delta_log` (no engine, nothing is opened for writing).

Source of the rules: the Delta transaction protocol (actions add, remove, metaData, protocol; `dataChange` is false for
files that only rearrange rows).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

_OF_A_FILE = frozenset(["path", "modification_time", "partition", "partition_values"])
_MAPPED_OR_DELETED = frozenset(["deletionVectors", "columnMapping"])


class DataFile(NamedTuple):
    """One data file: absolute path, partition values as text, smallest values by column if the statistics say so."""

    path: Path
    partition: dict[str, str | None]
    smallest: dict[str, Any]


class Added(NamedTuple):
    """What came after a version. `files` is None when that can no longer be told from the log: read it all."""

    version: int
    files: list[DataFile] | None


def latest_version(table: Path) -> int | None:
    """The newest committed version, by the names in the log folder; None if there is no Delta log."""
    log = table / "_delta_log"
    if not log.is_dir():
        return None
    versions = [int(name.stem) for name in log.glob("*.json") if name.stem.isdigit()]
    versions += [int(name.name.split(".")[0]) for name in log.glob("*.checkpoint*.parquet")]
    return max(versions, default=None)


def commit_time(table: Path, version: int) -> int | None:
    """When a version was committed here (ns): another table at the same place has another one. None if it is gone."""
    try:
        return (table / "_delta_log" / f"{version:020d}.json").stat().st_mtime_ns
    except FileNotFoundError:
        return None


class Snapshot(NamedTuple):
    """One version of a table. `is_plain`: a data file's rows are the table's rows (no deletion vectors, no mapping)."""

    table_id: str
    version: int
    is_plain: bool
    files: Callable[[], list[DataFile]]
    """All its data files, oldest first."""


def snapshot(root: Path) -> Snapshot:
    """The newest version of a table. Raises DeltaError, OSError or ValueError if it is none."""
    return _replayed(root) or _opened(root)


def _opened(root: Path) -> Snapshot:
    table = DeltaTable(str(root))
    protocol = table.protocol()
    plain = _is_plain(protocol.min_reader_version, protocol.reader_features)
    return Snapshot(str(table.metadata().id), table.version(), plain, lambda: active_files(table, root))


def _is_plain(min_reader_version: int, features: Iterable[str] | None) -> bool:
    return min_reader_version != 2 and not _MAPPED_OR_DELETED.intersection(features or ())


def _replayed(root: Path) -> Snapshot | None:
    """A young table, all of whose commits are there and none summed up: replayed here, many times faster than opened.

    None if it is not that young.
    """
    names = sorted(name for name in os.listdir(root / "_delta_log") if not name.startswith((".", "_")))
    if not names or names != [f"{version:020d}.json" for version in range(len(names))]:
        return None
    files: dict[str, dict[str, Any]] = {}
    protocol: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for name in names:
        actions = [orjson.loads(line) for line in (root / "_delta_log" / name).read_bytes().splitlines() if line]
        for action in actions:
            protocol, metadata = action.get("protocol") or protocol, action.get("metaData") or metadata
            if "remove" in action:
                files.pop(action["remove"]["path"], None)
        files.update({action["add"]["path"]: action["add"] for action in actions if "add" in action})
    if not protocol or not metadata:
        return None
    added = sorted(files.values(), key=lambda add: (add["modificationTime"], add["path"]))
    found = [DataFile(root / unquote(add["path"]), add.get("partitionValues") or {}, {}) for add in added]
    plain = _is_plain(protocol["minReaderVersion"], protocol.get("readerFeatures"))
    return Snapshot(metadata["id"], len(names) - 1, plain, lambda: found)


def physical_name(table: DeltaTable, column: str) -> str:
    """The name that a column has in files and statistics (differs under column mapping)."""
    fields = orjson.loads(table.schema().to_json())["fields"]
    found = next((f["metadata"].get("delta.columnMapping.physicalName") for f in fields if f["name"] == column), None)
    return str(found or column)


def active_files(table: DeltaTable, root: Path) -> list[DataFile]:
    """All data files of the opened version, oldest first."""
    found = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=False)).read_all()
    # Statistics stay out: Python values of theirs take long, and those of nanoseconds import pandas.
    actions = found.select([n for n in found.column_names if n in _OF_A_FILE]).to_pylist()
    actions.sort(key=lambda a: (a["modification_time"], a["path"]))
    return [
        DataFile(root / unquote(a["path"]), _texts(a.get("partition") or a.get("partition_values") or {}), {})
        for a in actions
    ]


def _texts(values: dict[str, Any]) -> dict[str, str | None]:
    return {name: None if value is None else str(value) for name, value in values.items()}


def added_since(table: Path, version: int, upto: int) -> Added:
    """Files whose rows were added by versions after `version` up to `upto`; rearrangements are left out."""
    files: dict[str, DataFile] = {}
    for number in range(version + 1, upto + 1):
        commit = table / "_delta_log" / f"{number:020d}.json"
        try:
            lines = commit.read_bytes().splitlines()
        except FileNotFoundError:
            return Added(upto, None)
        for line in lines:
            action = orjson.loads(line) if line.strip() else {}
            add: dict[str, Any] | None = action.get("add")
            if add and add.get("dataChange", True):
                stats = orjson.loads(add["stats"]) if add.get("stats") else {}
                path = table / unquote(add["path"])
                files[add["path"]] = DataFile(path, add.get("partitionValues") or {}, stats.get("minValues") or {})
    return Added(upto, list(files.values()))


def read_file(file: DataFile, columns: list[str] | None = None) -> pa.Table:
    """Rows of one data file with its partition columns as text."""
    wanted = None if columns is None else [c for c in columns if c not in file.partition]
    # Apache Spark writes times as INT96 by default; read as nanoseconds, those beyond 1677 to 2262 wrap around.
    # Logs are read several at a time: threads for one small file would only get in each other's way.
    table = pq.ParquetFile(file.path, coerce_int96_timestamp_unit="us").read(columns=wanted, use_threads=False)
    for name, value in file.partition.items():
        if (columns is None or name in columns) and name not in table.column_names:
            table = table.append_column(name, pa.repeat(pa.scalar(value, pa.string()), table.num_rows))
    return table


def row_count(file: DataFile) -> int:
    """Rows of a data file, from its footer."""
    return int(pq.ParquetFile(file.path).metadata.num_rows)
