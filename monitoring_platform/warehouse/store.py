"""The warehouse: Delta tables at `<path>/<table>`.

Big data moves through the engine; bookkeeping (a few rows) and looking are done by delta-rs in milliseconds, on every
engine alike. Steps that write hold the lock of the warehouse, so that runs that overlap wait for each other.
"""

from __future__ import annotations

import datetime
import fcntl
import shutil
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema, write_deltalake

from monitoring_platform.config import Settings
from monitoring_platform.warehouse import contracts, delta_log
from monitoring_platform.warehouse.contracts import Table

if TYPE_CHECKING:  # PySpark is imported with the first use of the engine: looking does without
    from pyspark.sql import DataFrame, SparkSession


_MESSAGE_BYTES = 32 * 1024 * 1024
_creating = threading.Lock()  # threads that refresh marts need the same tables


class Mark(NamedTuple):
    """How far a step has read its input: the version of a table and the table's identity."""

    version: int
    input_id: str


class Warehouse:
    """The tables of one configuration. Cheap to make; the engine starts with the first use of `spark`."""

    def __init__(self, settings: Settings) -> None:
        if settings.warehouse.path is None:
            raise NotImplementedError("warehouse.catalog needs a metastore; configure warehouse.path")
        self.settings = settings
        self.root: Path = settings.warehouse.path
        self._checked: set[str] = set()  # tables whose columns were compared with their contract

        self._session: SparkSession | None = None
        self._is_twin = False

    @property
    def spark(self) -> SparkSession:
        """The engine's session, started on first use."""
        from monitoring_platform.warehouse.session import another, session

        if self._session is None:
            self._session = (another if self._is_twin else session)(self.settings.engine)
        return self._session

    def for_thread(self) -> Warehouse:
        """The same tables through a session of its own, whose temporary views no other thread sees."""
        twin = Warehouse(self.settings)
        twin._checked, twin._is_twin = self._checked, True
        return twin

    @property
    def _staging(self) -> Path:
        return self.root / ".staging"

    def path(self, table: Table | str) -> Path:
        return self.root / (table if isinstance(table, str) else table.name)

    @contextmanager
    def lock(self, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Exclusive right to write, held by the process: a kill frees it. Calls `waiting` once if it must wait."""
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / ".lock", "w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                yield
            finally:
                shutil.rmtree(self._staging, ignore_errors=True)

    def is_busy(self) -> bool:
        """Whether some process holds the lock now."""
        try:
            with open(self.root / ".lock", "w") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    # ---- looking (no engine) ----

    def exists(self, table: Table | str) -> bool:
        return delta_log.latest_version(self.path(table)) is not None

    def open(self, table: Table | str) -> DeltaTable:
        return DeltaTable(str(self.path(table)))

    def dataset(self, table: Table) -> Any:
        """The table as an Arrow dataset in the contract's types, whoever wrote its files; empty if there is none."""
        if not self.exists(table):
            return ds.dataset(table.schema.empty_table())
        options = ds.ParquetReadOptions(coerce_int96_timestamp_unit="us")  # as Spark writes times by default
        return self.open(table).to_pyarrow_dataset(parquet_read_options=options, schema=table.schema)

    def rows(self, table: Table) -> int:
        """Number of rows, from the table's statistics."""
        return int(self.open(table).count()) if self.exists(table) else 0

    def arrow(self, table: Table, columns: list[str] | None = None, where: Any = None) -> pa.Table:
        """Rows of a table without the engine; none if it does not exist."""
        return self.dataset(table).to_table(columns=columns, filter=where)

    def version(self, table: Table | str) -> Mark:
        """The newest version of a table and the table's identity."""
        return _mark_of(self.open(table))

    def added(self, table: Table, since: Mark | None) -> tuple[list[delta_log.DataFile], Mark]:
        """Files added to one of our own append-only tables after the mark, and the mark after them."""
        opened = self.open(table)
        mark = _mark_of(opened)
        if since is not None and since.input_id == mark.input_id and since.version <= mark.version:
            found = delta_log.added_since(self.path(table), since.version, mark.version).files
            if found is not None and all(file.path.exists() for file in found):
                return found, mark
        return delta_log.active_files(opened, self.path(table)), mark

    # ---- bookkeeping (no engine) ----

    def create(self, tables: Sequence[Table]) -> set[str]:
        """Create what does not exist yet, empty, and add columns that a newer contract has (null in older rows).

        Gives the names of tables that got columns: what computes their rows has to start anew.
        """
        return {table.name for table in tables if table.name not in self._checked and self._create(table)}

    def _create(self, table: Table) -> bool:
        with _creating:
            if table.name in self._checked:
                return False
            self._checked.add(table.name)
            if self.exists(table):
                opened = self.open(table)
                there = {field.name for field in opened.schema().fields}
                new = [field for field in _described(table) if field.name not in there]
                if new:
                    opened.alter.add_columns(list(Schema.from_arrow(pa.schema(new)).fields))
                return bool(new)
            self.path(table).mkdir(parents=True, exist_ok=True)
            DeltaTable.create(
                str(self.path(table)),
                Schema.from_arrow(_described(table)),
                mode="ignore",
                partition_by=list(table.partition_by) or None,
                name=table.name,
                description=table.grain,
            )
            return False

    def replace_rows(self, table: Table, rows: pa.Table) -> None:
        """Overwrite a small table in one commit; nothing is written if it holds these rows already."""
        if self.exists(table) and same_rows(self.arrow(table), rows, table.keys):
            return
        write_deltalake(str(self.path(table)), rows, mode="overwrite")

    def marks(self) -> Marks:
        """How far all steps have come."""
        return Marks(self)

    def mark(self, step: str) -> Mark | None:
        """How far the step has come; None if it has done nothing yet."""
        return self.marks().of(step)

    def advance(self, step: str, mark: Mark) -> None:
        """Record how far the step has come. Written after the data: a step that is redone changes nothing."""
        marks = self.marks()
        marks.set(step, mark)
        marks.save()

    # ---- data (engine) ----

    def read(self, table: Table) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.path(table)))

    def read_files(self, files: Sequence[delta_log.DataFile]) -> DataFrame:
        """Rows of data files of our own tables (without partition columns)."""
        return self.spark.read.parquet(*[str(file.path) for file in files])

    def frame(self, rows: pa.Table) -> DataFrame:
        """Arrow rows as a DataFrame; many of them by way of a file, because a Spark Connect message is limited."""
        if rows.nbytes > _MESSAGE_BYTES:
            self._staging.mkdir(parents=True, exist_ok=True)
            file = self._staging / f"{uuid.uuid4().hex}.parquet"
            pq.write_table(rows, file)
            return self.spark.read.parquet(str(file))
        if rows.num_rows:
            # Apache Spark takes an empty batch for the end and drops the rows after it.
            filled = [batch for batch in rows.to_batches() if batch.num_rows]
            return self.spark.createDataFrame(pa.Table.from_batches(filled, rows.schema))
        from pyspark.sql.pandas.types import from_arrow_schema

        return self.spark.createDataFrame([], from_arrow_schema(rows.schema))

    def append(self, table: Table, rows: DataFrame) -> None:
        writer = rows.select(*table.schema.names).write.format("delta").mode("append")
        if table.partition_by:
            writer = writer.partitionBy(*table.partition_by)
        writer.save(str(self.path(table)))

    def overwrite(self, table: Table, rows: DataFrame) -> None:
        """Replace all rows in one commit, numbers widened to the contract's types (Delta refuses others)."""
        from pyspark.sql.functions import col

        columns = [col(c.name).cast("bigint") if c.type == pa.int64() else col(c.name) for c in table.columns]
        rows.select(*columns).write.format("delta").mode("overwrite").save(str(self.path(table)))

    def stage(
        self, table: Table, columns: list[str], dates: Sequence[str], updates: pa.Table
    ) -> tuple[Path, dict[str, int]]:
        """Rows of these updates from these days, copied to a file that many queries can read; what that read.

        `updates` has pipeline_id and update_id. Rows pass in batches: the memory needed does not grow with them.
        """
        self._staging.mkdir(parents=True, exist_ok=True)
        path = self._staging / f"{uuid.uuid4().hex}.parquet"
        days = [datetime.date.fromisoformat(date) for date in dates]
        where = pc.field("event_date").isin(days)
        source = self.dataset(table)
        fragments = list(source.get_fragments(filter=where))
        read = {"files_read": len(fragments), "rows_scanned": sum(f.count_rows() for f in fragments), "rows_read": 0}
        wanted = _pair(updates["pipeline_id"], updates["update_id"])
        schema = pa.schema([table.schema.field(name) for name in columns])
        with pq.ParquetWriter(path, schema, compression="lz4") as writer:
            for batch in source.to_batches(columns=columns, filter=where):
                chosen = batch.filter(pc.is_in(_pair(batch["pipeline_id"], batch["update_id"]), wanted))
                if chosen.num_rows:
                    read["rows_read"] += chosen.num_rows
                    writer.write_batch(chosen)
        return path, read

    # ---- small writes (delta-rs): rows that are here already ----

    def append_rows(self, table: Table, rows: pa.Table) -> None:
        """Append Arrow rows in one commit."""
        write_deltalake(str(self.path(table)), rows, mode="append", partition_by=list(table.partition_by) or None)

    def merge(self, table: Table, changed: pa.Table, gone: pa.Table) -> None:
        """Update or insert the changed rows and delete the gone ones, in one commit."""
        source = pa.concat_tables(
            [
                changed.append_column("_gone", pa.repeat(pa.scalar(False), changed.num_rows)),
                gone.append_column("_gone", pa.repeat(pa.scalar(True), gone.num_rows)),
            ]
        )
        columns = {f"`{name}`": f"s.`{name}`" for name in table.schema.names}
        opened = self.open(table)
        (
            opened.merge(
                source,
                predicate=" AND ".join(f"t.`{key}` = s.`{key}`" for key in table.keys),
                source_alias="s",
                target_alias="t",
            )
            .when_matched_delete(predicate="s._gone")
            .when_matched_update(columns)
            .when_not_matched_insert(columns, predicate="NOT s._gone")
            .execute()
        )


def _mark_of(opened: DeltaTable) -> Mark:
    return Mark(opened.version(), str(opened.metadata().id))


def _described(table: Table) -> pa.Schema:
    """The contract's schema with each column's text as its comment."""
    return pa.schema([pa.field(c.name, c.type, metadata={"comment": c.doc}) for c in table.columns])


class Marks:
    """How far all steps have come, read once; `save` writes what was set, in one commit."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._warehouse = warehouse
        rows = warehouse.arrow(contracts.PROGRESS).to_pylist()
        self._marks = {row["step"]: Mark(row["version"], row["input_id"]) for row in rows}
        self._is_saved = True

    def of(self, step: str) -> Mark | None:
        """How far the step has come; None if it has done nothing yet."""
        return self._marks.get(step)

    def set(self, step: str, mark: Mark) -> None:
        """The step has come this far."""
        if self._marks.get(step) != mark:
            self._marks[step], self._is_saved = mark, False

    def forget(self, step: str) -> None:
        """The step starts from the beginning."""
        if self._marks.pop(step, None):
            self._is_saved = False

    def save(self) -> None:
        """Write the marks, after the data that they stand for."""
        if not self._is_saved:
            rows = [{"step": step, **self._marks[step]._asdict()} for step in sorted(self._marks)]
            table = pa.Table.from_pylist(rows, contracts.PROGRESS.schema)
            write_deltalake(str(self._warehouse.path(contracts.PROGRESS)), table, mode="overwrite")
            self._is_saved = True


def _pair(pipeline_id: Any, update_id: Any) -> Any:
    """One text of both ids, null where either is."""
    return pc.binary_join_element_wise(pipeline_id, update_id, "\0")


def same_rows(left: pa.Table, right: pa.Table, keys: Sequence[str]) -> bool:
    """Whether two tables hold equal rows, whatever their order."""
    if left.num_rows != right.num_rows:
        return False
    order = [(key, "ascending") for key in keys]
    return bool(left.select(right.column_names).cast(right.schema).sort_by(order).equals(right.sort_by(order)))
