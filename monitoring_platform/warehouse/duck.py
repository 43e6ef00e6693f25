"""DuckDB as it is used here: in memory, times in UTC, one connection kept for each thread."""

from __future__ import annotations

import threading

import duckdb
import pyarrow as pa

_own = threading.local()


def opened() -> duckdb.DuckDBPyConnection:
    """A new connection."""
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'; SET parquet_metadata_cache = true")
    return con


def kept() -> duckdb.DuckDBPyConnection:
    """This thread's connection: opening one costs more than most queries."""
    if not hasattr(_own, "con"):
        _own.con = opened()
    con: duckdb.DuckDBPyConnection = _own.con
    return con


def hold(con: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """A table of DuckDB's own: its joins push filters into scans, which scans of Arrow do not take."""
    con.register("_arrow", rows)
    con.execute(f'CREATE OR REPLACE TEMP TABLE "{name}" AS SELECT * FROM _arrow')
    con.unregister("_arrow")


def hold_none(con: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema) -> str:
    """The name of a table without rows that has these columns; made once for each connection."""
    empty = f"_no_{name}_{hash(schema) & 0xFFFFFFFF:x}"
    try:
        con.table(empty)
    except duckdb.CatalogException:
        hold(con, empty, schema.empty_table())
    return empty


def ask(sql: str, **tables: pa.Table) -> pa.Table:
    """A query over Arrow tables."""
    con = kept()
    for name, table in tables.items():
        hold(con, name, table)
    return con.sql(sql).to_arrow_table()
