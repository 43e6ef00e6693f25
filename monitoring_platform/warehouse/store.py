"""The warehouse: the tables of one configuration, and what the other rooms may do with them.

Big data moves through the engine; bookkeeping (a few rows) and rows that the process holds already take the shortest
way that the place of the tables allows: `folder` has Delta tables in a folder, `catalog` tables of a metastore. Steps
that write hold the lock of the warehouse, so that runs that overlap wait for each other.
"""

from __future__ import annotations

import fcntl
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

import pyarrow as pa

from monitoring_platform.config import Settings
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.contracts import Table

if TYPE_CHECKING:  # both are imported with their first use: most of looking does without
    import duckdb
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Self

    #: Rows that any session can be given as a DataFrame of its own.
    Rows = Callable[[SparkSession], DataFrame]

_creating = threading.Lock()  # threads that refresh marts need the same tables


class Mark(NamedTuple):
    """How far a step has read its input: the version of a table and the table's identity."""

    version: int
    input_id: str


class Added(ABC):
    """Rows that were added to an append-only table of ours; true if there are any."""

    @abstractmethod
    def __bool__(self) -> bool: ...

    @abstractmethod
    def columns(self, names: Sequence[str]) -> pa.Table:
        """These columns, here, in the contract's types."""

    @abstractmethod
    def frame(self, spark: SparkSession) -> DataFrame:
        """All columns, on the engine; without those that the table is partitioned by."""

    @abstractmethod
    def groups(self, rows: int) -> Sequence[Added]:
        """The same in parts of about so many rows."""


class Warehouse(ABC):
    """The tables of one configuration. Cheap to make; the engine starts with the first use of `spark`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
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

    @property
    def has_one_session(self) -> bool:
        """Whether there is no other session to be had: then `for_thread` shares this one."""
        from monitoring_platform.warehouse.session import is_only_one

        return is_only_one(self.settings.engine)

    def for_thread(self) -> Self:
        """The same tables through a session of its own, whose temporary views no other thread sees."""
        twin = type(self)(self.settings)
        twin._checked, twin._is_twin = self._checked, not self.has_one_session
        return twin

    # ---- the right to write ----

    @property
    @abstractmethod
    def _home(self) -> Path:
        """Folder of what belongs to the tables on this machine."""

    @contextmanager
    def lock(self, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """Exclusive right to write, held by the process: a kill frees it. Calls `waiting` once if it must wait."""
        self._home.mkdir(parents=True, exist_ok=True)
        with open(self._home / ".lock", "w") as handle:
            if not _taken(handle):
                waiting()
                fcntl.flock(handle, fcntl.LOCK_EX)
            try:
                yield
            finally:
                self._clear()

    def is_busy(self) -> bool:
        """Whether some process of this machine holds the lock now."""
        try:
            with open(self._home / ".lock", "w") as handle:
                return not _taken(handle)
        except FileNotFoundError:
            return False

    @contextmanager
    def turn(self, work: str) -> Iterator[bool]:
        """The right to do a kind of work that only one may do at a time, beside those who write.

        False if someone does it now. A kill frees it.
        """
        self._home.mkdir(parents=True, exist_ok=True)
        with open(self._home / f".{work}", "w") as handle:
            yield _taken(handle)

    @abstractmethod
    def _clear(self) -> None:
        """Remove what a step left that nobody needs any more."""

    # ---- what is there ----

    @abstractmethod
    def address(self, table: Table | str) -> str:
        """Where others find the table: the URI of its folder, or its name in the catalog."""

    @abstractmethod
    def schema(self, table: Table | str) -> pa.Schema | None:
        """The columns that the table has; None if it does not exist."""

    def exists(self, table: Table | str) -> bool:
        return self.schema(table) is not None

    @abstractmethod
    def version(self, table: Table | str) -> Mark:
        """The newest version of a table and the table's identity."""

    @abstractmethod
    def rows(self, table: Table) -> int:
        """Number of rows; 0 if the table does not exist."""

    @abstractmethod
    def arrow(
        self, table: Table, columns: Sequence[str] | None = None, only: Mapping[str, Sequence[Any]] | None = None
    ) -> pa.Table:
        """Rows of a table, those with one of the given values in each column of `only`; none if it does not exist."""

    @abstractmethod
    def stored(
        self,
        table: Table,
        columns: Sequence[str] | None,
        wanted: pa.Table,
        *,
        since: tuple[str, datetime] | None = None,
        or_null: bool = False,
        or_keys: pa.Table | None = None,
    ) -> pa.Table:
        """Rows that agree with a row of `wanted` in all its columns, in the contract's types.

        With `since` only those that have this time or a later one in its column, or no time if `or_null`, or a key that
        is in `or_keys`.
        """

    @abstractmethod
    def show(self, con: duckdb.DuckDBPyConnection, table: Table, name: str | None = None) -> Sequence[str]:
        """Let DuckDB see the table, under its own or another name, with the contract's columns.

        Gives the files that it reads.
        """

    @abstractmethod
    def added(self, table: Table, since: Mark | None) -> tuple[Added, Mark]:
        """What was added to one of our own append-only tables after the mark, and the mark after it."""

    @abstractmethod
    def newest(self, table: Table) -> Added:
        """What was added last: a bounded number of commits or files."""

    # ---- bookkeeping ----

    def create(self, tables: Sequence[Table]) -> set[str]:
        """Create what does not exist yet, empty, and add columns that a newer contract has (null in older rows).

        Gives the names of tables that got columns: what computes their rows has to start anew.
        """
        return {table.name for table in tables if table.name not in self._checked and self._checked_now(table)}

    def _checked_now(self, table: Table) -> bool:
        with _creating:
            if table.name in self._checked:
                return False
            self._checked.add(table.name)
            there = self.schema(table)
            if there is None:
                self._create(table)
                return False
            new = [column.name for column in table.columns if column.name not in there.names]
            if new:
                self._add_columns(table, new)
            return bool(new)

    @abstractmethod
    def _create(self, table: Table) -> None: ...

    @abstractmethod
    def _add_columns(self, table: Table, names: Sequence[str]) -> None: ...

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

    # ---- data on the engine ----

    @abstractmethod
    def read(self, table: Table) -> DataFrame: ...

    def frame(self, rows: pa.Table) -> DataFrame:
        """Arrow rows as a DataFrame."""
        return framed(self.spark, rows)

    @abstractmethod
    def append(self, table: Table, rows: DataFrame) -> None: ...

    @abstractmethod
    def overwrite(self, table: Table, rows: DataFrame) -> None:
        """Replace all rows in one commit."""

    @staticmethod
    def _widened(table: Table, rows: DataFrame) -> DataFrame:
        """The contract's columns, numbers widened to its types: Delta refuses others."""
        from pyspark.sql.functions import col

        return rows.select(
            *[col(c.name).cast("bigint") if c.type == pa.int64() else col(c.name) for c in table.columns]
        )

    @abstractmethod
    def events_of(
        self, updates: pa.Table, dates: Sequence[date], columns: Sequence[str]
    ) -> tuple[Rows, dict[str, int]]:
        """Events of these updates (pipeline_id, update_id) from these days, for many queries; what that read."""

    # ---- rows that are here already ----

    @abstractmethod
    def append_rows(self, table: Table, rows: pa.Table) -> None:
        """Append rows in one commit."""

    @abstractmethod
    def overwrite_rows(self, table: Table, rows: pa.Table) -> None:
        """Replace all rows in one commit."""

    @abstractmethod
    def recreate(self, name: str, rows: pa.Table) -> None:
        """Make the table hold these rows and have their columns, whatever it was before."""

    @abstractmethod
    def merge(self, table: Table, changed: pa.Table, gone: pa.Table) -> None:
        """Update or insert the changed rows and delete the gone ones, in one commit."""

    @abstractmethod
    def remove(self, table: Table, wanted: pa.Table) -> None:
        """Delete the rows that agree with a row of `wanted` in all its columns."""

    def replace_rows(self, table: Table, rows: pa.Table) -> None:
        """Overwrite a small table in one commit; nothing is written if it holds these rows already."""
        if not self.exists(table) or not same_rows(self.arrow(table), rows, table.keys):
            self.overwrite_rows(table, rows)

    # ---- maintenance ----

    @abstractmethod
    def forget(self, table: Table, column: str, before: datetime) -> None:
        """Delete rows with an older time in this column."""

    @abstractmethod
    def tidy(self, table: Table, today: date) -> None:
        """Make few files of many and drop old versions; no reader of new rows sees a row again."""


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
            self._warehouse.overwrite_rows(contracts.PROGRESS, pa.Table.from_pylist(rows, contracts.PROGRESS.schema))
            self._is_saved = True


def framed(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Arrow rows as a DataFrame of a session."""
    if rows.num_rows:
        # Apache Spark takes an empty batch for the end and drops the rows after it.
        filled = [batch for batch in rows.to_batches() if batch.num_rows]
        return spark.createDataFrame(pa.Table.from_batches(filled, rows.schema))
    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.createDataFrame([], from_arrow_schema(rows.schema))


def _taken(handle: TextIO) -> bool:
    """Take the lock of an open file, which goes with its closing; False if another process has it."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def described(table: Table) -> pa.Schema:
    """The contract's schema with each column's text as its comment."""
    return pa.schema([pa.field(c.name, c.type, metadata={"comment": c.doc}) for c in table.columns])


def same_rows(left: pa.Table, right: pa.Table, keys: Sequence[str]) -> bool:
    """Whether two tables hold equal rows, whatever their order."""
    if left.num_rows != right.num_rows:
        return False
    order = [(key, "ascending") for key in keys]
    return bool(left.select(right.column_names).cast(right.schema).sort_by(order).equals(right.sort_by(order)))
