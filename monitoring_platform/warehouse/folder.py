"""Delta tables at `<path>/<table>`: delta-rs and DuckDB do small writes and looking, in milliseconds, engine or not."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema, WriterProperties, write_deltalake

from monitoring_platform.config import Settings
from monitoring_platform.warehouse import delta_log, duck
from monitoring_platform.warehouse.contracts import LANDING, UNION, Table
from monitoring_platform.warehouse.delta_log import DataFile
from monitoring_platform.warehouse.store import Added, Mark, Warehouse, described

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from monitoring_platform.warehouse.store import Rows

KEEP_VERSIONS = timedelta(days=7)  # time travel and slow readers
_MESSAGE_BYTES = 32 * 1024 * 1024
_NEWEST_FILES = 8
_SMALL_FILES = 8  # of one day or one mart, before they are compacted
_ROW_GROUP = 16_384  # rows: small enough that one pipeline's rows are a few groups of a day


@dataclass(frozen=True)
class AddedFiles(Added):
    """Data files of one of our tables, none of them compacted."""

    table: Table
    files: tuple[DataFile, ...]

    def __bool__(self) -> bool:
        return bool(self.files)

    def columns(self, names: Sequence[str]) -> pa.Table:
        schema = pa.schema([self.table.schema.field(name) for name in names])
        parts = (delta_log.read_file(file, list(names)).select(list(names)).cast(schema) for file in self.files)
        return pa.concat_tables([schema.empty_table(), *parts])

    def frame(self, spark: SparkSession) -> DataFrame:
        return spark.read.parquet(*[str(file.path) for file in self.files])

    def groups(self, rows: int) -> list[AddedFiles]:
        groups: list[list[DataFile]] = []
        room = 0
        for file in self.files:
            count = delta_log.row_count(file)
            if not groups or count > room:
                groups.append([])
                room = rows
            groups[-1].append(file)
            room -= count
        return [AddedFiles(self.table, tuple(group)) for group in groups]


class FolderWarehouse(Warehouse):
    """The tables of a configuration that says `warehouse.path`."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        assert settings.warehouse.path is not None
        self.root: Path = settings.warehouse.path
        self._opened: dict[str, tuple[tuple[int, int | None], DeltaTable]] = {}

    def for_thread(self) -> FolderWarehouse:
        twin = super().for_thread()
        twin._opened = self._opened
        return twin

    @property
    def _home(self) -> Path:
        return self.root

    @property
    def _staging(self) -> Path:
        return self.root / ".staging"

    def _clear(self) -> None:
        shutil.rmtree(self._staging, ignore_errors=True)

    def path(self, table: Table | str) -> Path:
        return self.root / (table if isinstance(table, str) else table.name)

    def open(self, table: Table | str) -> DeltaTable:
        """The newest version; opened anew only if there is one, because that costs more than most queries."""
        path = self.path(table)
        version = delta_log.latest_version(path)
        if version is None:
            return DeltaTable(str(path))  # which says what is wrong
        commit = (version, delta_log.commit_time(path, version))
        known = self._opened.get(path.name)
        if known is None or known[0] != commit:
            self._opened[path.name] = known = (commit, DeltaTable(str(path)))
        return known[1]

    # ---- what is there ----

    def address(self, table: Table | str) -> str:
        return self.path(table).as_uri()

    def exists(self, table: Table | str) -> bool:
        return delta_log.latest_version(self.path(table)) is not None

    def schema(self, table: Table | str) -> pa.Schema | None:
        if not self.exists(table):
            return None
        return pa.schema([pa.field(f.name, _plain(f.type)) for f in pa.schema(self.open(table).schema().to_arrow())])

    def version(self, table: Table | str) -> Mark:
        return _mark_of(self.open(table))

    def rows(self, table: Table) -> int:
        return int(self.open(table).count()) if self.exists(table) else 0

    def dataset(self, table: Table) -> Any:
        """The table as an Arrow dataset in the contract's types, whoever wrote its files; empty if there is none."""
        if not self.exists(table):
            return ds.dataset(table.schema.empty_table())
        # INT96 is how Spark writes times by default. A dataset of delta-rs has an expression for the statistics of
        # each file, and to make those takes longer than to read.
        parquet = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
        parts = pa.schema([table.schema.field(name) for name in table.partition_by])
        return ds.dataset(
            self.open(table).file_uris(),
            schema=table.schema,
            format=parquet,
            partitioning=ds.partitioning(parts, flavor="hive") if parts else None,
        )

    def arrow(
        self, table: Table, columns: Sequence[str] | None = None, only: Mapping[str, Sequence[Any]] | None = None
    ) -> pa.Table:
        conditions = [
            pc.field(name).isin(pa.array(values, table.schema.field(name).type))
            for name, values in (only or {}).items()
        ]
        where = reduce(and_, conditions) if conditions else None
        return self.dataset(table).to_table(columns=list(columns) if columns else None, filter=where)

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
        names = list(columns or table.schema.names)
        where = ""
        if since:
            column, start = since
            is_time = pa.types.is_timestamp(table.schema.field(column).type)
            limit = f"TIMESTAMPTZ '{start}'" if is_time else f"DATE '{start.date()}'"
            where = f' WHERE t."{column}" >= {limit}'
            if or_null:
                where += f' OR t."{column}" IS NULL'
            if or_keys is not None:
                same = " AND ".join(f'k."{key}" = t."{key}"' for key in or_keys.column_names)
                where += f" OR EXISTS (SELECT 1 FROM or_keys k WHERE {same})"
        rows_of_table, _ = self._scan(duck.kept(), table)
        joined = f"({rows_of_table}) t SEMI JOIN wanted USING ({_quoted(wanted.column_names)})"
        given = {"wanted": wanted, **({} if or_keys is None else {"or_keys": or_keys})}
        rows = duck.ask(f"SELECT {_quoted(names)} FROM {joined}{where}", **given)
        return rows.cast(pa.schema([table.schema.field(name) for name in names]))

    def show(self, con: duckdb.DuckDBPyConnection, table: Table, name: str | None = None) -> list[str]:
        """A view over the data files: the contract's columns and types, whatever older files lack."""
        rows, files = self._scan(con, table)
        con.execute(f'CREATE OR REPLACE TEMP VIEW "{name or table.name}" AS {rows}')
        return files

    def _scan(self, con: duckdb.DuckDBPyConnection, table: Table) -> tuple[str, list[str]]:
        """The query that reads the data files, and these."""
        parts = [f'SELECT * FROM "{duck.hold_none(con, table.name, table.schema)}"']
        files: list[str] = self.open(table).file_uris() if self.exists(table) else []
        if files:
            listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
            hive = f", hive_partitioning = {'true' if table.partition_by else 'false'}"
            parts.append(f"SELECT * FROM read_parquet([{listed}], union_by_name = true{hive})")
        return " UNION ALL BY NAME ".join(parts), files

    def added(self, table: Table, since: Mark | None) -> tuple[AddedFiles, Mark]:
        opened = self.open(table)
        mark = _mark_of(opened)
        if since is not None and since.input_id == mark.input_id and since.version <= mark.version:
            found = delta_log.added_since(self.path(table), since.version, mark.version).files
            if found is not None and all(file.path.exists() for file in found):
                return AddedFiles(table, tuple(found)), mark
        return AddedFiles(table, tuple(delta_log.active_files(opened, self.path(table)))), mark

    def newest(self, table: Table) -> AddedFiles:
        files = delta_log.active_files(self.open(table), self.path(table)) if self.exists(table) else []
        return AddedFiles(table, tuple(files[-_NEWEST_FILES:]))

    # ---- bookkeeping ----

    def _create(self, table: Table) -> None:
        self.path(table).mkdir(parents=True, exist_ok=True)
        DeltaTable.create(
            str(self.path(table)),
            Schema.from_arrow(described(table)),
            mode="ignore",
            partition_by=list(table.partition_by) or None,
            name=table.name,
            description=table.grain,
        )

    def _add_columns(self, table: Table, names: Sequence[str]) -> None:
        new = pa.schema([described(table).field(name) for name in names])
        self.open(table).alter.add_columns(list(Schema.from_arrow(new).fields))

    # ---- data on the engine ----

    def read(self, table: Table) -> DataFrame:
        return self.spark.read.format("delta").load(str(self.path(table)))

    def frame(self, rows: pa.Table) -> DataFrame:
        """Many rows go by way of a file, because a Spark Connect message is limited."""
        if rows.nbytes > _MESSAGE_BYTES:
            self._staging.mkdir(parents=True, exist_ok=True)
            file = self._staging / f"{uuid.uuid4().hex}.parquet"
            pq.write_table(rows, file)
            return self.spark.read.parquet(str(file))
        return super().frame(rows)

    def append(self, table: Table, rows: DataFrame) -> None:
        writer = rows.select(*table.schema.names).write.format("delta").mode("append")
        if table.partition_by:
            writer = writer.partitionBy(*table.partition_by)
        writer.save(str(self.path(table)))

    def overwrite(self, table: Table, rows: DataFrame) -> None:
        self._widened(table, rows).write.format("delta").mode("overwrite").save(str(self.path(table)))

    def events_of(
        self, updates: pa.Table, dates: Sequence[date], columns: Sequence[str]
    ) -> tuple[Rows, dict[str, int]]:
        """Copied to a file in batches: the memory needed does not grow with the rows."""
        self._staging.mkdir(parents=True, exist_ok=True)
        path = self._staging / f"{uuid.uuid4().hex}.parquet"
        where = pc.field("event_date").isin(list(dates))
        source = self.dataset(UNION)
        fragments = list(source.get_fragments(filter=where))
        read = {"files_read": len(fragments), "rows_scanned": sum(f.count_rows() for f in fragments), "rows_read": 0}
        wanted = _pair(updates["pipeline_id"], updates["update_id"])
        schema = pa.schema([UNION.schema.field(name) for name in columns])
        with pq.ParquetWriter(path, schema, compression="lz4") as writer:
            for batch in source.to_batches(columns=list(columns), filter=where):
                chosen = batch.filter(pc.is_in(_pair(batch["pipeline_id"], batch["update_id"]), wanted))
                if chosen.num_rows:
                    read["rows_read"] += chosen.num_rows
                    writer.write_batch(chosen)
        return lambda spark: spark.read.parquet(str(path)), read

    # ---- rows that are here already ----

    def append_rows(self, table: Table, rows: pa.Table) -> None:
        self._write(table, rows, "append")

    def overwrite_rows(self, table: Table, rows: pa.Table) -> None:
        self._write(table, rows, "overwrite")

    def _write(self, table: Table, rows: pa.Table, mode: Literal["append", "overwrite"]) -> None:
        if not self.exists(table):
            self._create(table)
        opened = self.open(table)
        write_deltalake(opened, rows, mode=mode)
        self._keep(table, opened)

    def _keep(self, table: Table, written: DeltaTable) -> None:
        """What wrote a version knows it: it need not be opened anew."""
        version = written.version()
        path = self.path(table)
        self._opened[path.name] = ((version, delta_log.commit_time(path, version)), written)

    def recreate(self, name: str, rows: pa.Table) -> None:
        write_deltalake(str(self.path(name)), rows, mode="overwrite", schema_mode="overwrite")

    def merge(self, table: Table, changed: pa.Table, gone: pa.Table) -> None:
        source = pa.concat_tables(
            [
                changed.append_column("_gone", pa.repeat(pa.scalar(False), changed.num_rows)),
                gone.append_column("_gone", pa.repeat(pa.scalar(True), gone.num_rows)),
            ]
        )
        columns = {f"`{name}`": f"s.`{name}`" for name in table.schema.names}
        opened = self.open(table)
        (
            _merger(opened, source, table.keys)
            .when_matched_delete(predicate="s._gone")
            .when_matched_update(columns)
            .when_not_matched_insert(columns, predicate="NOT s._gone")
            .execute()
        )
        self._keep(table, opened)

    def remove(self, table: Table, wanted: pa.Table) -> None:
        opened = self.open(table)
        _merger(opened, wanted, wanted.column_names).when_matched_delete().execute()
        self._keep(table, opened)

    # ---- maintenance ----

    def forget(self, table: Table, column: str, before: datetime) -> None:
        self.open(table).delete(f"{column} < TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}Z'")

    def tidy(self, table: Table, today: date) -> None:
        opened = self.open(table)
        if table.name == UNION.name:
            self._compact_days(opened, today)
        elif table.name != LANDING.name and len(opened.file_uris()) > _SMALL_FILES:
            opened.optimize.compact()
        opened.create_checkpoint()
        opened.cleanup_metadata()
        hours = int(KEEP_VERSIONS.total_seconds() // 3600)
        opened.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False)

    @staticmethod
    def _compact_days(union: DeltaTable, today: date) -> None:
        """Compact days that are over and have many files, each pipeline's rows together: few are read for one."""
        files = pa.table(union.get_add_actions(flatten=True))
        if files.num_rows:
            for row in files.group_by("partition.event_date").aggregate([("path", "count")]).to_pylist():
                day = row["partition.event_date"]
                if row["path_count"] > _SMALL_FILES and day < today:
                    union.optimize.z_order(
                        ["pipeline_id", "update_id"],
                        partition_filters=[("event_date", "=", str(day))],
                        writer_properties=WriterProperties(compression="ZSTD", max_row_group_size=_ROW_GROUP),
                    )


def _merger(table: DeltaTable, source: pa.Table, keys: Iterable[str]) -> Any:
    same = " AND ".join(f"t.`{key}` = s.`{key}`" for key in keys)
    return table.merge(source, predicate=same, source_alias="s", target_alias="t")


def _mark_of(opened: DeltaTable) -> Mark:
    return Mark(opened.version(), str(opened.metadata().id))


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _pair(pipeline_id: Any, update_id: Any) -> Any:
    """One text of both ids, null where either is."""
    return pc.binary_join_element_wise(pipeline_id, update_id, "\0")


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type without delta-rs's views of text."""
    names = {"string_view": pa.string(), "large_string": pa.string(), "binary_view": pa.binary()}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _plain(field.type)) for field in kind])
    return names.get(str(kind), kind)
