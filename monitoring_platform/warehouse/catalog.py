"""Tables of a catalog, `catalog.schema.table`: all goes through the engine, which alone may reach their files.

What was added to landing and union is read from their change data feed: inserted rows by commit, so that progress marks
stay versions, and neither compaction nor a deletion brings a row again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from monitoring_platform.config import Settings, dagster_home
from monitoring_platform.warehouse import duck
from monitoring_platform.warehouse.contracts import LANDING, UNION, Table
from monitoring_platform.warehouse.store import Added, Mark, Warehouse, framed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructField

    from monitoring_platform.warehouse.store import Rows

_FEED = {"delta.enableChangeDataFeed": "true"}
_FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
#: Files that compaction replaced may be gone after 7 days, and with them what the feed would show of older commits.
_FEED_KEPT = timedelta(days=6)
_NEWEST_COMMITS = 20
_NAMED_VALUES = 500  # in a condition; more of them are joined
_SMALL_FILES = 8  # of one table, before they are compacted


@dataclass(frozen=True)
class AddedCommits(Added):
    """Rows that these commits inserted, as (version, rows); with None all rows of the table."""

    warehouse: CatalogWarehouse
    table: Table
    commits: tuple[tuple[int, int], ...] | None

    def __bool__(self) -> bool:
        return bool(self.warehouse.rows(self.table)) if self.commits is None else bool(self.commits)

    def columns(self, names: Sequence[str]) -> pa.Table:
        schema = pa.schema([self.table.schema.field(name) for name in names])
        if not self:
            return schema.empty_table()
        return self.frame(self.warehouse.spark).select(*names).toArrow().cast(schema)

    def frame(self, spark: SparkSession) -> DataFrame:
        name = self.warehouse.name(self.table)
        if self.commits is None:
            return spark.read.table(name)
        feed = spark.read.option("readChangeFeed", "true")
        feed = feed.option("startingVersion", self.commits[0][0]).option("endingVersion", self.commits[-1][0])
        return feed.table(name).where("_change_type = 'insert'").drop(*_FEED_COLUMNS)

    def groups(self, rows: int) -> list[AddedCommits]:
        if self.commits is None:
            return [self] if self else []
        groups: list[list[tuple[int, int]]] = []
        room = 0
        for version, count in self.commits:
            if not groups or count > room:
                groups.append([])
                room = rows
            groups[-1].append((version, count))
            room -= count
        return [AddedCommits(self.warehouse, self.table, tuple(group)) for group in groups]


class CatalogWarehouse(Warehouse):
    """The tables of a configuration that says `warehouse.catalog` and `warehouse.schema`."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        place = settings.warehouse
        self._place = (str(place.catalog), str(place.schema_name))
        self._ids: dict[str, str] = {}

    @property
    def _home(self) -> Path:
        return dagster_home(self.settings)

    def _clear(self) -> None:
        """Temporary views end with their sessions."""

    def name(self, table: Table | str) -> str:
        """The table's name, quoted for SQL."""
        return _quoted(*self._place, table if isinstance(table, str) else table.name)

    # ---- what is there ----

    def address(self, table: Table | str) -> str:
        return ".".join((*self._place, table if isinstance(table, str) else table.name))

    def schema(self, table: Table | str) -> pa.Schema | None:
        from pyspark.sql.pandas.types import to_arrow_schema

        if not self.spark.catalog.tableExists(self.name(table)):
            return None
        schema: pa.Schema = to_arrow_schema(self.spark.read.table(self.name(table)).schema, timezone="UTC")
        return schema

    def version(self, table: Table | str) -> Mark:
        name = self.name(table)
        if name not in self._ids:
            self._ids[name] = str(self._sql(f"DESCRIBE DETAIL {name}")[0]["id"])
        return Mark(int(self._history(table, 1)[0]["version"]), self._ids[name])

    def rows(self, table: Table) -> int:
        return int(self.read(table).count()) if self.exists(table) else 0

    def arrow(
        self, table: Table, columns: Sequence[str] | None = None, only: Mapping[str, Sequence[Any]] | None = None
    ) -> pa.Table:
        from pyspark.sql.functions import col

        schema = pa.schema([table.schema.field(name) for name in columns or table.schema.names])
        if not self.exists(table):
            return schema.empty_table()
        rows = self.read(table)
        for name, values in (only or {}).items():
            if len(values) <= _NAMED_VALUES:
                rows = rows.where(col(name).isin(list(values)))
            else:
                given = pa.table({name: pa.array(values, table.schema.field(name).type)})
                rows = rows.join(self.frame(given), [name], "left_semi")
        return rows.select(*schema.names).toArrow().cast(schema)

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
        from pyspark.sql.functions import coalesce, col, lit

        schema = pa.schema([table.schema.field(name) for name in columns or table.schema.names])
        if not self.exists(table):
            return schema.empty_table()
        rows = self.read(table).join(self.frame(wanted), wanted.column_names, "left_semi")
        if since:
            column, start = since
            is_time = pa.types.is_timestamp(table.schema.field(column).type)
            is_recent = coalesce(col(column) >= lit(start if is_time else start.date()), lit(or_null))
            recent = rows.where(is_recent)
            if or_keys is not None:
                older = rows.where(~is_recent).join(self.frame(or_keys), or_keys.column_names, "left_semi")
                recent = recent.unionByName(older)
            rows = recent
        return rows.select(*schema.names).toArrow().cast(schema)

    def show(self, con: duckdb.DuckDBPyConnection, table: Table, name: str | None = None) -> list[str]:
        """A copy of the whole table."""
        duck.hold(con, name or table.name, self.arrow(table))
        return []

    def added(self, table: Table, since: Mark | None) -> tuple[AddedCommits, Mark]:
        mark = self.version(table)
        commits = None
        if since is not None and since.input_id == mark.input_id and since.version <= mark.version:
            commits = self._inserts(table, since.version, mark.version)
        return AddedCommits(self, table, commits), mark

    def newest(self, table: Table) -> AddedCommits:
        if not self.exists(table):
            return AddedCommits(self, table, ())
        latest = self.version(table).version
        return AddedCommits(self, table, self._inserts(table, max(latest - _NEWEST_COMMITS, 0), latest))

    def _inserts(self, table: Table, since: int, upto: int) -> tuple[tuple[int, int], ...] | None:
        """Commits after `since` that inserted rows, oldest first; None if the feed may have lost some of them."""
        if since == upto:
            return ()
        commits = self._history(table, upto - since)
        oldest = datetime.now(timezone.utc) - _FEED_KEPT  # commits have the system's time, whatever `--now` says
        if len(commits) < upto - since or min(commit["timestamp"] for commit in commits) < oldest:
            return None
        inserts = [(commit["version"], commit["rows"]) for commit in commits if commit["operation"] == "WRITE"]
        return tuple(sorted(insert for insert in inserts if insert[1]))

    def _history(self, table: Table | str, commits: int) -> list[dict[str, Any]]:
        """The newest commits."""
        history = self.spark.sql(f"DESCRIBE HISTORY {self.name(table)} LIMIT {commits}")
        rows = "CAST(operationMetrics['numOutputRows'] AS BIGINT) AS rows"
        found: list[dict[str, Any]] = (
            history.selectExpr("version", "timestamp", "operation", rows).toArrow().to_pylist()
        )
        return found

    def _sql(self, statement: str) -> list[Any]:
        return list(self.spark.sql(statement).collect())

    # ---- bookkeeping ----

    def _create(self, table: Table) -> None:
        schema = _quoted(*self._place)
        if not self.spark.catalog.databaseExists(schema):
            self._sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        columns = ", ".join(_definition(field, doc) for field, doc in self._fields(table))
        parts = f"PARTITIONED BY ({_listed(table.partition_by)})" if table.partition_by else ""
        feed = ", ".join(f"'{key}' = '{value}'" for key, value in _FEED.items())
        properties = f"TBLPROPERTIES ({feed})" if table.name in (LANDING.name, UNION.name) else ""
        self._sql(
            f"CREATE TABLE IF NOT EXISTS {self.name(table)} ({columns}) USING DELTA {parts} "
            f"COMMENT {_text(table.grain)} {properties}"
        )

    def _add_columns(self, table: Table, names: Sequence[str]) -> None:
        new = ", ".join(_definition(field, doc) for field, doc in self._fields(table) if field.name in names)
        self._sql(f"ALTER TABLE {self.name(table)} ADD COLUMNS ({new})")

    @staticmethod
    def _fields(table: Table) -> list[tuple[StructField, str]]:
        from pyspark.sql.pandas.types import from_arrow_schema

        return list(zip(from_arrow_schema(table.schema).fields, [column.doc for column in table.columns]))

    # ---- data on the engine ----

    def read(self, table: Table) -> DataFrame:
        return self.spark.read.table(self.name(table))

    def append(self, table: Table, rows: DataFrame) -> None:
        rows.select(*table.schema.names).writeTo(self.name(table)).append()

    def overwrite(self, table: Table, rows: DataFrame) -> None:
        from pyspark.sql.functions import lit

        self._widened(table, rows).writeTo(self.name(table)).overwrite(lit(True))

    def events_of(
        self, updates: pa.Table, dates: Sequence[date], columns: Sequence[str]
    ) -> tuple[Rows, dict[str, int]]:
        """A query that each mart runs for the columns that it needs: there is no place that all executors see."""
        name = self.name(UNION)

        def rows(spark: SparkSession) -> DataFrame:
            from pyspark.sql.functions import col

            days = spark.read.table(name).where(col("event_date").isin(list(dates))).select(*columns)
            return days.join(framed(spark, updates), updates.column_names, "left_semi")

        return rows, {}

    # ---- rows that are here already ----

    def append_rows(self, table: Table, rows: pa.Table) -> None:
        self.frame(rows).writeTo(self.name(table)).append()

    def overwrite_rows(self, table: Table, rows: pa.Table) -> None:
        from pyspark.sql.functions import lit

        self.frame(rows).writeTo(self.name(table)).overwrite(lit(True))

    def recreate(self, name: str, rows: pa.Table) -> None:
        self.frame(rows).writeTo(self.name(name)).using("delta").createOrReplace()

    def merge(self, table: Table, changed: pa.Table, gone: pa.Table) -> None:
        source = pa.concat_tables(
            [
                changed.append_column("_gone", pa.repeat(pa.scalar(False), changed.num_rows)),
                gone.append_column("_gone", pa.repeat(pa.scalar(True), gone.num_rows)),
            ]
        )
        names = table.schema.names
        self._merge(
            table,
            source,
            table.keys,
            "WHEN MATCHED AND s._gone THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{_quoted(n)} = s.{_quoted(n)}' for n in names)} "
            f"WHEN NOT MATCHED AND NOT s._gone THEN INSERT ({_listed(names)}) "
            f"VALUES ({', '.join(f's.{_quoted(n)}' for n in names)})",
        )

    def remove(self, table: Table, wanted: pa.Table) -> None:
        self._merge(table, wanted, wanted.column_names, "WHEN MATCHED THEN DELETE")

    def _merge(self, table: Table, source: pa.Table, keys: Iterable[str], actions: str) -> None:
        self.frame(source).createOrReplaceTempView("_merged")
        same = " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in keys)
        self._sql(f"MERGE INTO {self.name(table)} t USING _merged s ON {same} {actions}")

    # ---- maintenance ----

    def forget(self, table: Table, column: str, before: datetime) -> None:
        self._sql(f"DELETE FROM {self.name(table)} WHERE {column} < TIMESTAMP'{before:%Y-%m-%d %H:%M:%S}Z'")

    def tidy(self, table: Table, today: date) -> None:
        name = self.name(table)
        if table.name == UNION.name:  # the days that are over; compacted once, they are left alone
            self._sql(f"OPTIMIZE {name} WHERE event_date < DATE'{today}'")
        elif table.name != LANDING.name and self._sql(f"DESCRIBE DETAIL {name}")[0]["numFiles"] > _SMALL_FILES:
            self._sql(f"OPTIMIZE {name}")
        self._sql(f"VACUUM {name}")


def _quoted(*parts: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(_quoted(name) for name in names)


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _definition(field: StructField, doc: str) -> str:
    return f"{_quoted(field.name)} {field.dataType.simpleString()} COMMENT {_text(doc)}"
