"""Dagster's SQLite storage for cycles that log one event for each of many tables.

Dagster opens and closes the database for each event, and closing the last connection copies SQLite's log back into the
file: 40 ms for each of about 180 events, a third of a cycle. Here the connections stay open and a commit does not wait
for the disk: a power cut can lose the newest events of the history, never the database's integrity, and the history is
not the truth here. What the database's schema has, which Dagster asks with each event, is asked once: no migration
takes it away again. And each run has a database of its own, which is a copy of an empty one, not built anew.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import dagster
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME, SqliteEventLogStorage
from dagster._core.storage.sqlite_storage import DagsterSqliteStorage, _event_logs_directory
from sqlalchemy import event, text
from sqlalchemy.engine import Connection, Engine, create_engine

_PATIENCE = 60  # seconds to wait for another process that writes


class EventLog(SqliteEventLogStorage):
    """Keeps the connections to the index and to the run used last; files and tables are Dagster's own."""

    def __init__(self, base_dir: str) -> None:
        self._engines: dict[str, Engine] = {}
        self._there: set[tuple[str, str]] = set()
        super().__init__(base_dir)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[Connection]:
        with self._db_lock, self._engine(shard).begin() as connection:
            yield connection

    def _engine(self, shard: str) -> Engine:
        if shard not in self._engines:
            for other in self._engines.keys() - {INDEX_SHARD_NAME}:
                self._engines.pop(other).dispose()
            engine = create_engine(self.conn_string_for_shard(shard), connect_args={"timeout": _PATIENCE})
            event.listen(engine, "connect", _do_not_wait)
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            self._engines[shard] = engine
        return self._engines[shard]

    def _initdb(self, engine: Engine, for_index_shard: bool = False) -> None:
        database = Path(str(engine.url.database))
        empty = database.with_name(f"run-{dagster.__version__}.empty")
        spare = empty.with_name(f"{empty.name}-{uuid4().hex}")
        if for_index_shard or database.exists():
            super()._initdb(engine, for_index_shard)
        elif empty.exists():
            shutil.copyfile(empty, spare)
            with suppress(FileExistsError):  # another process was faster
                os.link(spare, database)
            spare.unlink()
        else:
            super()._initdb(engine)
            with engine.connect() as connection:
                connection.execute(text("VACUUM INTO :spare"), {"spare": str(spare)})
            spare.replace(empty)

    def _has(self, kind: str, name: str, look: Callable[[], bool]) -> bool:
        if (kind, name) not in self._there and look():
            self._there.add((kind, name))
        return (kind, name) in self._there

    def has_table(self, table_name: str) -> bool:
        return self._has("table", table_name, lambda: super(EventLog, self).has_table(table_name))

    def has_secondary_index(self, name: str) -> bool:
        return self._has("index", name, lambda: super(EventLog, self).has_secondary_index(name))

    def has_asset_key_col(self, column_name: str) -> bool:
        return self._has("column", column_name, lambda: super(EventLog, self).has_asset_key_col(column_name))

    def _has_asset_key_col_on_connection(self, conn: Connection, column_name: str) -> bool:
        look = super()._has_asset_key_col_on_connection
        return self._has("column", column_name, lambda: look(conn, column_name))

    def dispose(self) -> None:
        super().dispose()
        with self._db_lock:
            while self._engines:
                self._engines.popitem()[1].dispose()


class SqliteStorage(DagsterSqliteStorage):
    """`storage: custom` of the shipped dagster.yaml: runs, events and schedules in SQLite files under `base_dir`."""

    def __init__(self, base_dir: str, inst_data: Any = None) -> None:
        super().__init__(base_dir, inst_data)
        self._event_log_storage = EventLog(_event_logs_directory(base_dir))

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Any) -> SqliteStorage:
        return cls.from_local(inst_data=inst_data, **config_value)


def _do_not_wait(connection: Any, _: object) -> None:
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}").close()
