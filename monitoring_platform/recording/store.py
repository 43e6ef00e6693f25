"""Where jobs write: a folder or object store, or a schema of a catalog through the job's own Spark session.

Rows are only ever appended. Many jobs may append at once: a conflict is tried again after a random wait.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from monitoring_platform.recording.tables import QUALITY_CHECKS, TABLES
from monitoring_platform.warehouse.contracts import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Where records go if neither the call nor this environment variable names a place.
PLACE_VARIABLE, DEFAULT_PLACE = "MONITORING_RECORDS", "monitoring.pipeline_ops"
_ATTEMPTS = 8
T = TypeVar("T")


class Store(Protocol):
    """A place of records."""

    @property
    def running(self) -> str | None:
        """Folder for the signs of life of runs under way; None = there is none, and killed runs are not noticed."""

    def create(self) -> None:
        """Create what does not exist yet; what exists is left as it is."""

    def append(self, table: Table, rows: list[dict[str, Any]]) -> None:
        """Append rows in one commit."""

    def last_count(self, pipeline_name: str, check_name: str) -> int | None:
        """Rows that this check saw last time; None if there was no last time."""


def open_store(place: str | os.PathLike[str] | None = None) -> Store:
    """The store at a place: `catalog.schema` or a path. Raises ValueError for a schema without a Spark session."""
    named = os.fspath(place) if place is not None else os.environ.get(PLACE_VARIABLE, DEFAULT_PLACE)
    if is_path(named):
        return FolderStore(named.rstrip("/"))
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    if spark is None:
        raise ValueError(f"{named} is a schema of a catalog and there is no Spark session: start one, or give a path")
    return CatalogStore(named, spark)


def is_path(named: str) -> bool:
    """Whether a name of a place or table is a path: names of catalogs have neither slashes nor colons."""
    return "/" in named or ":" in named or "\\" in named


class FolderStore(NamedTuple):
    """Delta tables in a folder, a volume or an object store; no Spark is needed."""

    path: str

    @property
    def running(self) -> str | None:
        return f"{self.path}/_running" if "://" not in self.path else None

    def create(self) -> None:
        from deltalake import DeltaTable

        from monitoring_platform.warehouse.store import described  # with it comes the configuration: jobs do without

        for table in TABLES:
            _again(lambda t=table: DeltaTable.create(f"{self.path}/{t.name}", described(t), mode="ignore", name=t.name))  # type: ignore[misc]

    def append(self, table: Table, rows: list[dict[str, Any]]) -> None:
        from deltalake import CommitProperties, write_deltalake

        arrow = pa.Table.from_pylist(rows, table.schema)
        properties = CommitProperties(max_commit_retries=50)
        _again(lambda: write_deltalake(f"{self.path}/{table.name}", arrow, mode="append", commit_properties=properties))

    def last_count(self, pipeline_name: str, check_name: str) -> int | None:
        from deltalake import DeltaTable

        uri = f"{self.path}/{QUALITY_CHECKS.name}"
        if not DeltaTable.is_deltatable(uri):
            return None
        wanted = [("pipeline_name", "=", pipeline_name), ("check_name", "=", check_name)]
        columns = ["checked_at", "rows_checked"]
        rows = DeltaTable(uri).to_pyarrow_table(columns=columns, filters=wanted).to_pylist()
        return max(rows, key=lambda row: row["checked_at"])["rows_checked"] if rows else None


class CatalogStore(NamedTuple):
    """Tables of a catalog's schema, through the session of the job."""

    schema: str
    spark: SparkSession

    @property
    def running(self) -> str | None:
        return None

    def create(self) -> None:
        self.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {_quoted(self.schema)}")
        for table in TABLES:
            if not self.spark.catalog.tableExists(f"{self.schema}.{table.name}"):
                frame = self.spark.createDataFrame([], _spark_schema(table))
                _again(lambda t=table, f=frame: self._write(t, f, "ignore"))  # type: ignore[misc]

    def append(self, table: Table, rows: list[dict[str, Any]]) -> None:
        schema = _spark_schema(table)
        frame = self.spark.createDataFrame([tuple(row.get(n) for n in table.schema.names) for row in rows], schema)
        _again(lambda: self._write(table, frame, "append"))

    def _write(self, table: Table, frame: Any, mode: str) -> None:
        frame.write.format("delta").mode(mode).saveAsTable(f"{self.schema}.{table.name}")

    def last_count(self, pipeline_name: str, check_name: str) -> int | None:
        from pyspark.sql import functions as F

        name = f"{self.schema}.{QUALITY_CHECKS.name}"
        if not self.spark.catalog.tableExists(name):
            return None
        rows = self.spark.table(name).where(
            (F.col("pipeline_name") == pipeline_name) & (F.col("check_name") == check_name)
        )
        found = rows.orderBy(F.col("checked_at").desc()).select("rows_checked").head()
        return found[0] if found else None


def _quoted(name: str) -> str:
    return ".".join(f"`{part.replace('`', '``')}`" for part in name.split("."))


def _spark_schema(table: Table) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(table.schema)


def _again(commit: Callable[[], T]) -> T:
    """Commit, and after a conflict with another writer again: each time after a longer and random wait."""
    for attempt in range(_ATTEMPTS):
        try:
            return commit()
        except Exception as error:
            if attempt == _ATTEMPTS - 1 or not _is_conflict(error):
                raise
            time.sleep(random.uniform(0, 0.1 * 2**attempt))
    raise AssertionError("unreachable")


def _is_conflict(error: Exception) -> bool:
    text = f"{type(error).__name__} {error}".lower()
    return any(
        word in text for word in ("commitfailed", "concurrent", "conflict", "already exists", "version mismatch")
    )
