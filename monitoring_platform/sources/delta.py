"""Event logs in Delta tables, by path: published tables, legacy `<storage>/system/events`, exports.

Where the table's files are its rows, exactly the files added since the version last read are read: late rows come by
themselves, compaction does not bring rows again. Where they are not (deletion vectors, column mapping) the engine
reads by time with a generous overlap. A table that was recreated, cut or vacuumed in between is read whole; the union
drops what it has already.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from monitoring_platform.config import DeltaSource
from monitoring_platform.event_log.values import to_instant
from monitoring_platform.sources.base import Chunk, Cursor, Listing, Log, Look, NeedsEngine, SourceError
from monitoring_platform.sources.paths import expand, resolve
from monitoring_platform.warehouse import delta_log
from monitoring_platform.warehouse.delta_log import DataFile, Snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
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

    def listing(self, look: Look | None = None) -> Listing:
        found: list[Path] = []
        for path in expand(self.path):
            if (path / "_delta_log").is_dir():
                found.append(path)
            elif path.is_dir():  # a folder of tables, or a legacy storage folder with system/events inside
                found += sorted(child.parent for child in path.rglob("_delta_log") if child.is_dir())
        return Listing([Log(str(p), self.name, "delta", self.pipeline_id) for p in dict.fromkeys(found)])

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
        table = _open(log)
        if not table.is_plain:
            return set()
        newest = table.files()[-1:] if cursor is None else []
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
        if not table.is_plain:
            if engine is None:
                raise NeedsEngine(log.location)
            return self._by_time(log, cursor, table, engine())
        try:
            plan = _plan(table, log, cursor)
        except (OSError, ValueError, KeyError) as error:
            raise _unreadable(log, error) from error
        return _read_files(log, plan, limit, table.table_id)

    def _by_time(self, log: Log, cursor: Cursor | None, table: Snapshot, spark: SparkSession) -> Chunk:
        """Rows at or after the newest time seen, less the overlap, and back to the oldest row of every file added."""
        from pyspark.sql import functions as F

        rows = spark.read.format("delta").load(log.location)
        latest = (cursor or {}).get("latest")
        by_time = dict(rows.dtypes).get("timestamp", "").startswith("timestamp")
        if by_time and latest is not None and cursor:
            oldest = self._oldest_added(log, cursor["version"], table.version)
            since = datetime.fromisoformat(latest) - timedelta(hours=self.overlap_hours)
            if oldest is not None:
                rows = rows.where(F.col("timestamp") >= F.lit(min(since, oldest).isoformat()).cast("timestamp"))
        arrow = rows.toArrow()
        if by_time and arrow.num_rows:
            times = arrow["timestamp"]
            newest = pc.max(pc.filter(times, pc.less(times, pa.scalar(_FAR_FUTURE, times.type)))).as_py()
            latest = max(filter(None, [latest, newest.isoformat() if newest else None]), default=None)
        after = {**_at(log, table.table_id, table.version), "latest": latest}
        return Chunk([arrow], after, more=False)

    def _oldest_added(self, log: Log, since: int, upto: int) -> datetime | None:
        """Smallest time in the files added since a version; None if that cannot be told."""
        added = delta_log.added_since(Path(log.location), since, upto)
        column = delta_log.physical_name(DeltaTable(log.location), "timestamp")
        if added.files is None or since > upto:
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


def _goes_on(table: Snapshot, log: Log, cursor: Cursor) -> bool:
    """Whether this is the table that the cursor was made on, its last commit as it was when it was read."""
    if cursor["table"] != table.table_id:
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


def _plan(table: Snapshot, log: Log, cursor: Cursor | None) -> _Plan:
    root = Path(log.location)
    if cursor is None:
        return _Plan(None, table.version, table.files(), 0)
    pending = cursor.get("pending")
    since, upto = (pending["since"], pending["upto"]) if pending else (cursor["version"], table.version)
    if since is not None and since <= upto <= table.version:
        added = delta_log.added_since(root, since, upto)
        # A file that is gone was compacted away and vacuumed since: its rows are in others.
        if added.files is not None and all(file.path.exists() for file in added.files):
            return _Plan(since, upto, added.files, pending["done"] if pending else 0)
    elif pending:  # finish the version that the first read began with: the log may grow faster than it is read
        with suppress(DeltaError, OSError, ValueError):
            files = delta_log.active_files(DeltaTable(log.location, version=upto), root)
            if all(file.path.exists() for file in files):
                return _Plan(None, upto, files, pending["done"])
    return _Plan(None, table.version, table.files(), 0)


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
    return Chunk(_joined(parts), cursor, more)


def _joined(parts: list[pa.Table]) -> list[pa.Table]:
    """Small files as one table, which converts far faster; apart where their columns' types do not go together."""
    try:
        return [pa.concat_tables(parts, promote_options="permissive")] if parts else []
    except pa.ArrowException:
        return parts


def _open(log: Log) -> Snapshot:
    try:
        return delta_log.snapshot(Path(log.location))
    except (DeltaError, OSError, ValueError, KeyError) as error:
        raise _unreadable(log, error) from error


def _unreadable(log: Log, error: Exception) -> SourceError:
    return SourceError(
        f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else 'no message'}",
        f"check that {log.location} is a whole Delta table and may be read by this user; it is tried again by itself",
    )
