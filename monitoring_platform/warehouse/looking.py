"""Looking at tables with DuckDB: no engine, milliseconds, straight from the data files of the newest version.

delta-rs writes text as Arrow views when it merges, deletes or compacts, and PyArrow cannot filter those; DuckDB reads
Parquet by its own types. So every question with a condition on text goes this way.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import duckdb
import pyarrow as pa

from monitoring_platform.warehouse.contracts import Table
from monitoring_platform.warehouse.store import Warehouse

_own = threading.local()


def connect(warehouse: Warehouse, *tables: Table) -> duckdb.DuckDBPyConnection:
    """DuckDB with these tables (empty ones where they do not exist yet), times in UTC."""
    con = _opened()
    for table in tables:
        _define(con, warehouse, table)
    return con


def ask(sql: str, **tables: pa.Table) -> pa.Table:
    """A query over Arrow tables; each thread keeps its connection, because opening one costs more than most queries."""
    con = _kept()
    for name, table in tables.items():
        _hold(con, name, table)
    return con.sql(sql).to_arrow_table()


def stored(warehouse: Warehouse, table: Table, columns: list[str] | None, where: str, **tables: pa.Table) -> pa.Table:
    """Rows of a table in its contract's types; `where` is what follows FROM, with Arrow tables under their names."""
    _define(_kept(), warehouse, table)
    names = columns or table.schema.names
    selected = ", ".join(f'"{name}"' for name in names)
    rows = ask(f'SELECT {selected} FROM "{table.name}" {where}', **tables)
    return rows.cast(pa.schema([table.schema.field(name) for name in names]))


def question(warehouse: Warehouse, query: str, tables: Sequence[Table]) -> duckdb.DuckDBPyConnection:
    """The answer to one SELECT over these tables. It can read their files and nothing else, and write nowhere.

    Raises duckdb.Error for SQL that is wrong or more than one SELECT.
    """
    con = _opened()
    statements = con.extract_statements(query)
    if len(statements) != 1 or statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise duckdb.InvalidInputException("one SELECT is expected: tables are only read")
    text = query.lower()  # DuckDB's own list of the tables in a query fails at JOIN ... USING
    files = [file for table in tables if table.name in text for file in _define(con, warehouse, table)]
    con.execute("SET allowed_paths = ?", [files])
    con.execute("SET enable_external_access = false")
    return con.execute(statements[0])


def _opened() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    return con


def _kept() -> duckdb.DuckDBPyConnection:
    if not hasattr(_own, "con"):
        _own.con = _opened()
    con: duckdb.DuckDBPyConnection = _own.con
    return con


def _hold(con: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """A table of DuckDB's own: its joins push filters into scans, which scans of Arrow do not take."""
    con.register("_arrow", rows)
    con.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT * FROM _arrow')
    con.unregister("_arrow")


def _define(con: duckdb.DuckDBPyConnection, warehouse: Warehouse, table: Table) -> list[str]:
    """A view of the table: the contract's columns and types, whatever older files lack. Gives its files."""
    _hold(con, f"_no_{table.name}", table.schema.empty_table())
    parts = [f'SELECT * FROM "_no_{table.name}"']
    files = warehouse.open(table).file_uris() if warehouse.exists(table) else []
    if files:
        listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
        hive = f", hive_partitioning = {'true' if table.partition_by else 'false'}"
        parts.append(f"SELECT * FROM read_parquet([{listed}], union_by_name = true{hive})")
    con.execute(f'CREATE OR REPLACE TEMP VIEW "{table.name}" AS ' + " UNION ALL BY NAME ".join(parts))
    return files
