"""Questions to the tables in DuckDB's SQL: checks, `status`, `sql`, `query`.

Tables in a folder are read by DuckDB itself, in milliseconds and without an engine. delta-rs writes text as Arrow views
when it merges, deletes or compacts, and PyArrow cannot filter those; DuckDB reads Parquet by its own types. Tables of a
catalog are fetched through the engine, whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import duckdb

from monitoring_platform.warehouse.contracts import Table
from monitoring_platform.warehouse.duck import opened
from monitoring_platform.warehouse.store import Warehouse


def connect(warehouse: Warehouse, *tables: Table) -> duckdb.DuckDBPyConnection:
    """DuckDB with these tables (empty ones where they do not exist yet), times in UTC."""
    con = opened()
    for table in tables:
        warehouse.show(con, table)
    return con


def question(warehouse: Warehouse, query: str, tables: Sequence[Table]) -> duckdb.DuckDBPyConnection:
    """The answer to one SELECT over these tables. It can read their files and nothing else, and write nowhere.

    Raises duckdb.Error for SQL that is wrong or more than one SELECT.
    """
    con = opened()
    statements = con.extract_statements(query)
    if len(statements) != 1 or statements[0].type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
        raise duckdb.InvalidInputException("one SELECT is expected: tables are only read")
    words = set(re.findall(r"\w+", query.lower()))  # DuckDB's own list of a query's tables fails at JOIN ... USING
    files = [file for table in tables if table.name in words for file in warehouse.show(con, table)]
    con.execute("SET allowed_paths = ?", [files])
    con.execute("SET enable_external_access = false")
    return con.execute(statements[0])
