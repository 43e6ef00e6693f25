"""Event logs in Delta tables, by path: published tables, legacy `<storage>/system/events`, exports.

Where the table's files are its rows, exactly the files added since the version last read are read: late rows come by
themselves, compaction does not bring rows again. Where they are not (deletion vectors, column mapping) the engine
reads by time with a generous overlap. A table that was recreated, cut or vacuumed in between is read whole; the union
drops what it has already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from monitoring_platform.config import DeltaSource
from monitoring_platform.event_log.normalise import Delivered, Unreadable
from monitoring_platform.event_log.values import Micros, to_instant
from monitoring_platform.sources.base import Chunk, Cursor, Log, NeedsEngine, SourceError
from monitoring_platform.sources.paths import expand, resolve
from monitoring_platform.warehouse import delta_log
from monitoring_platform.warehouse.delta_log import DataFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_TIMES = ("timestamp", "event_time")
_FAR_FUTURE = datetime(2200, 1, 1, tzinfo=timezone.utc)


class DeltaLogs(NamedTuple):
    """A table, a folder of tables, or a glob. Each table may hold one or many pipelines."""

    name: str
    path: str
    pipeline_id: str | None
    overlap_hours: float

    @classmethod
    def from_settings(cls, entry: DeltaSource, base_dir: Path) -> DeltaLogs:
        return cls(str(entry.name), resolve(base_dir, entry.path), entry.pipeline_id, entry.overlap_hours)

    def logs(self) -> list[Log]:
        found: list[Path] = []
        for path in expand(self.path):
            if (path / "_delta_log").is_dir():
                found.append(path)
            elif path.is_dir():  # a folder of tables, or a legacy storage folder with system/events inside
                found += sorted(child.parent for child in path.rglob("_delta_log") if child.is_dir())
        return [Log(str(p), self.name, "delta", self.pipeline_id) for p in dict.fromkeys(found)]

    def position(self, log: Log) -> Any:
        try:
            root = Path(log.location)
            version = delta_log.latest_version(root)
            position = version is not None and [version, delta_log.commit_time(root, version)]
        except OSError as error:
            raise _unreadable(log, error) from error
        if version is None:
            raise SourceError("no commit in its _delta_log", f"check that {log.location} is a whole Delta table")
        return position

    def pipelines(self, log: Log, cursor: Cursor | None) -> set[str]:
        root = Path(log.location)
        table = _open(log)
        if not delta_log.is_plain(table):
            return set()
        files = delta_log.active_files(table, root)
        newest = files[-1:] if cursor is None else []
        found: set[str] = set()
        try:
            for file in newest:
                origin = delta_log.read_file(file, ["origin"]).column("origin").combine_chunks()
                if pa.types.is_struct(origin.type):
                    found.update(pc.unique(origin.field("pipeline_id")).drop_null().to_pylist())
        except (OSError, KeyError, pa.ArrowException):
            return set()
        return {str(value) for value in found}

    def read(
        self, log: Log, cursor: Cursor | None, limit: int, engine: Callable[[], SparkSession] | None = None
    ) -> Chunk:
        table = _open(log)
        cursor = cursor if cursor and _goes_on(table, log, cursor) else None
        if not delta_log.is_plain(table):
            if engine is None:
                raise NeedsEngine(log.location)
            return self._by_time(log, cursor, table, engine())
        try:
            plan = _plan(table, log, cursor)
        except (OSError, ValueError, KeyError) as error:
            raise _unreadable(log, error) from error
        return _read_files(log, plan, limit, str(table.metadata().id))

    def _by_time(self, log: Log, cursor: Cursor | None, table: DeltaTable, spark: SparkSession) -> Chunk:
        """Rows at or after the newest time seen, less the overlap, and back to the oldest row of every file added."""
        from pyspark.sql import functions as F

        rows = spark.read.format("delta").load(log.location)
        identity, latest = str(table.metadata().id), (cursor or {}).get("latest")
        by_time = dict(rows.dtypes).get("timestamp", "").startswith("timestamp")
        if by_time and latest is not None and cursor:
            oldest = self._oldest_added(log, cursor["version"], table)
            since = datetime.fromisoformat(latest) - timedelta(hours=self.overlap_hours)
            if oldest is not None:
                rows = rows.where(F.col("timestamp") >= F.lit(min(since, oldest).isoformat()).cast("timestamp"))
        arrow = rows.toArrow()
        if by_time and arrow.num_rows:
            times = arrow["timestamp"]
            newest = pc.max(pc.filter(times, pc.less(times, pa.scalar(_FAR_FUTURE, times.type)))).as_py()
            latest = max(filter(None, [latest, newest.isoformat() if newest else None]), default=None)
        after = {**_at(log, identity, table.version()), "latest": latest}
        return Chunk(_rows(arrow), after, more=False)

    def _oldest_added(self, log: Log, since: int, table: DeltaTable) -> datetime | None:
        """Smallest time in the files added since a version; None if that cannot be told."""
        added = delta_log.added_since(Path(log.location), since, table.version())
        column = delta_log.physical_name(table, "timestamp")
        if added.files is None or since > table.version():
            return None
        instants = [to_instant(file.smallest.get(column)) for file in added.files]
        if any(instant is None for instant in instants):
            return None
        return min((_EPOCH + timedelta(microseconds=i.micros) for i in instants if i), default=_FAR_FUTURE)


class _Plan(NamedTuple):
    """Files still to read to be at `version`; `done` of `files` were read by earlier chunks."""

    since: int | None
    version: int
    files: list[DataFile]
    done: int


def _goes_on(table: DeltaTable, log: Log, cursor: Cursor) -> bool:
    """Whether this is the table that the cursor was made on, its last commit as it was when it was read."""
    if cursor["table"] != str(table.metadata().id):
        return False
    if cursor["position"] is None:
        return True
    version, then = cursor["position"]
    now = delta_log.commit_time(Path(log.location), version)
    return then is None or now is None or then == now


def _at(log: Log, identity: str, version: int) -> Cursor:
    """The cursor of a log that is read up to a version."""
    position = [version, delta_log.commit_time(Path(log.location), version)]
    return {"table": identity, "position": position, "version": version}


def _plan(table: DeltaTable, log: Log, cursor: Cursor | None) -> _Plan:
    root = Path(log.location)
    if cursor is None:
        return _Plan(None, table.version(), delta_log.active_files(table, root), 0)
    pending = cursor.get("pending")
    since, upto = (pending["since"], pending["upto"]) if pending else (cursor["version"], table.version())
    if since is not None and since <= upto <= table.version():
        added = delta_log.added_since(root, since, upto)
        # A file that is gone was compacted away and vacuumed since: its rows are in others.
        if added.files is not None and all(file.path.exists() for file in added.files):
            return _Plan(since, upto, added.files, pending["done"] if pending else 0)
    elif pending:  # finish the version that the first read began with: the log may grow faster than it is read
        with suppress(DeltaError, OSError, ValueError):
            files = delta_log.active_files(DeltaTable(log.location, version=upto), root)
            if all(file.path.exists() for file in files):
                return _Plan(None, upto, files, pending["done"])
    return _Plan(None, table.version(), delta_log.active_files(table, root), 0)


def _read_files(log: Log, plan: _Plan, limit: int, identity: str) -> Chunk:
    parts: list[pa.Table] = []
    rows = done = 0
    for file in plan.files[plan.done :]:
        if rows >= limit:
            break
        try:
            part = delta_log.read_file(file)
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(log, error) from error
        parts.append(part)
        rows, done = rows + part.num_rows, done + 1
    position = plan.done + done
    more = position < len(plan.files)
    cursor = _at(log, identity, plan.version)
    if more:
        cursor.update(position=None, pending={"since": plan.since, "upto": plan.version, "done": position})
    return Chunk((row for part in _joined(parts) for row in _rows(part)), cursor, more)


def _joined(parts: list[pa.Table]) -> list[pa.Table]:
    """Small files as one table, which converts far faster; apart where their columns' types do not go together."""
    try:
        return [pa.concat_tables(parts, promote_options="permissive")] if parts else []
    except pa.ArrowException:
        return parts


def _open(log: Log) -> DeltaTable:
    try:
        return DeltaTable(log.location)
    except (DeltaError, OSError, ValueError) as error:
        raise _unreadable(log, error) from error


def _unreadable(log: Log, error: Exception) -> SourceError:
    return SourceError(
        f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else 'no message'}",
        f"check that {log.location} is a whole Delta table and may be read by this user; it is tried again by itself",
    )


def _rows(table: pa.Table) -> Iterator[Delivered | Unreadable]:
    """Rows as members, column by column: typed times stay exact, structs become small dicts without their nulls."""
    columns = []
    for name in table.column_names:
        array = table.column(name).combine_chunks()
        values = _instants(array) if name in _TIMES else _values(array)
        if values is not None:
            columns.append((name, values))
    if not columns:
        return iter(Delivered({}, "") for _ in range(table.num_rows))
    names = [name for name, _ in columns]
    return (Delivered(dict(zip(names, row)), "") for row in zip(*(values for _, values in columns)))


def _instants(array: Any) -> list[Any] | None:
    """A column that is the time of the event: typed times stay exact."""
    if not pa.types.is_timestamp(array.type):
        return _values(array)
    micros = array.cast(pa.timestamp("us", tz=array.type.tz), safe=False).cast(pa.int64()).to_pylist()
    return [None if value is None else Micros(value) for value in micros]


def _values(array: Any) -> list[Any] | None:
    """A column as Python values; None if it holds nothing."""
    if isinstance(array, pa.ChunkedArray):  # an empty one stays chunked
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if array.null_count == len(array):
        return None
    kind = array.type
    if pa.types.is_struct(kind):
        children = [(f.name, _values(array.field(i))) for i, f in enumerate(kind)]
        present = [(name, values) for name, values in children if values is not None]
        names = [name for name, _ in present]
        rows = [dict(zip(names, row)) for row in zip(*(values for _, values in present))] or [{}] * len(array)
        return rows if array.null_count == 0 else [r if v else None for r, v in zip(rows, array.is_valid().to_pylist())]
    if pa.types.is_nested(kind):
        return [json_safe(value) for value in array.to_pylist()]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [None if v is None else v.decode("utf-8", "replace") for v in array.to_pylist()]
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return list(array.cast(pa.string()).to_pylist())
    if (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or (pa.types.is_integer(kind) and not array.null_count)
    ):
        return list(array.to_numpy(zero_copy_only=False).tolist())  # several times faster, and as exact for these
    return list(array.to_pylist())


def json_safe(value: Any) -> Any:
    """Nested values as JSON can hold them: times, decimals and bytes of unknown columns become text, NaN null."""
    return orjson.loads(orjson.dumps(value, default=_text)) if value is not None else None


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
