"""Billed usage and list prices in whatever shape they are delivered: system tables, or their exports in files.

Columns are found by their names in the system tables, nested, as JSON text, or flattened (`usage_metadata.x`,
`usage_metadata_x`, `x`). Numbers and times may be texts. Files are Parquet, CSV or JSON and are read by DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from monitoring_platform.sources.base import SourceError
from monitoring_platform.sources.paths import expand
from monitoring_platform.warehouse.contracts import BILLING_USAGE, LIST_PRICES, Table

_READERS = {
    "parquet": "read_parquet({})",
    "csv": "read_csv({}, all_varchar = true, header = true)",
    "json": "read_json({}, maximum_depth = 1)",
    "jsonl": "read_json({}, maximum_depth = 1)",
    "ndjson": "read_json({}, maximum_depth = 1)",
}


class _Field(NamedTuple):
    """Where a column is found: paths into nested columns, in order of preference; what stands where it is missing."""

    type: str
    paths: tuple[str, ...]
    missing: str = "NULL"


class _Shape(NamedTuple):
    """How a table of ours is filled. `newest` decides between deliveries of one row."""

    table: Table
    fields: dict[str, _Field]
    needed: tuple[str, ...]
    newest: str


_TEXT, _CODE, _DAY, _TIME, _NUMBER = "text", "code", "day", "time", "number"
_CASTS = {
    _TEXT: "{}",
    _CODE: "upper({})",
    _DAY: "CAST(TRY_CAST({} AS TIMESTAMPTZ) AS DATE)",  # a time with an offset may be of another day in UTC
    _TIME: "TRY_CAST({} AS TIMESTAMPTZ)",
    _NUMBER: "TRY_CAST({} AS DECIMAL(38, 18))",
}
_USAGE = _Shape(
    BILLING_USAGE,
    {
        "record_id": _Field(_TEXT, ("record_id",)),
        "pipeline_id": _Field(_TEXT, ("usage_metadata.dlt_pipeline_id",)),
        "usage_date": _Field(_DAY, ("usage_date", "usage_start_time"), "DATE '1970-01-01'"),
        "update_id": _Field(_TEXT, ("usage_metadata.dlt_update_id",)),
        "maintenance_id": _Field(_TEXT, ("usage_metadata.dlt_maintenance_id",)),
        "record_type": _Field(_CODE, ("record_type",), "'ORIGINAL'"),
        "usage_start_time": _Field(_TIME, ("usage_start_time",)),
        "usage_end_time": _Field(_TIME, ("usage_end_time",)),
        "usage_quantity": _Field(_NUMBER, ("usage_quantity",)),
        "usage_unit": _Field(_TEXT, ("usage_unit",)),
        "sku_name": _Field(_TEXT, ("sku_name",)),
        "cloud": _Field(_CODE, ("cloud",)),
        "product": _Field(_TEXT, ("billing_origin_product",)),
        "custom_tags": _Field(_TEXT, ("custom_tags",), "'{}'"),
        "workspace_id": _Field(_TEXT, ("workspace_id",)),
        "account_id": _Field(_TEXT, ("account_id",)),
        "ingestion_date": _Field(_DAY, ("ingestion_date",)),
    },
    ("pipeline_id", "sku_name", "usage_quantity", "usage_date"),
    "ingestion_date",
)
_PRICES = _Shape(
    LIST_PRICES,
    {
        "sku_name": _Field(_TEXT, ("sku_name",)),
        "cloud": _Field(_CODE, ("cloud",), "''"),
        "usage_unit": _Field(_TEXT, ("usage_unit",), "''"),
        "currency_code": _Field(_CODE, ("currency_code",), "''"),
        "price_start_time": _Field(_TIME, ("price_start_time",), "TIMESTAMPTZ '1970-01-01 00:00:00Z'"),
        "price_end_time": _Field(_TIME, ("price_end_time",)),
        "default_price": _Field(_NUMBER, ("pricing.default", "default_price", "list_price", "price")),
        "effective_price": _Field(_NUMBER, ("pricing.effective_list.default", "effective_price")),
    },
    ("sku_name", "default_price"),
    "price_end_time",
)
SHAPES = {_USAGE.table.name: _USAGE, _PRICES.table.name: _PRICES}


def from_table(table: Table, delivered: pa.Table) -> pa.Table:
    """Rows of a system table in the columns of ours; each row once, the newest delivery of it. Raises SourceError."""
    return _read(SHAPES[table.name], lambda con: con.from_arrow(delivered))


def from_file(table: Table, file: Path) -> pa.Table:
    """Rows of an export, likewise. Raises SourceError."""
    quoted = "'" + str(file).replace("'", "''") + "'"
    reader = _READERS[_kind(file)].format(quoted)
    try:
        return _read(SHAPES[table.name], lambda con: con.sql(f"SELECT * FROM {reader}"))
    except (duckdb.Error, SourceError) as error:
        remedy = f"export it anew, with the columns of the system table: {file}"
        raise SourceError(f"{file.name}: {str(error).splitlines()[0]}", remedy) from None


def files(path: str) -> list[Path]:
    """The exports that a file, folder or glob names, sorted."""
    found: set[Path] = set()
    for place in expand(path):
        found.update(place.rglob("*") if place.is_dir() else [place])
    return sorted(file for file in found if file.is_file() and _kind(file) in _READERS)


def _kind(file: Path) -> str:
    return file.name.lower().removesuffix(".gz").rpartition(".")[2]


def _read(shape: _Shape, open_in: Callable[[duckdb.DuckDBPyConnection], Any]) -> pa.Table:
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        given = open_in(con)
        there = dict(zip(given.columns, given.types))
        found = {name: _found(field, there) for name, field in shape.fields.items()}
        missing = [shape.fields[name].paths[0] for name in shape.needed if found[name] is None]
        if missing:
            raise SourceError(f"it has no column {missing[0]}", "name the columns as the system table does")
        columns = [
            f'coalesce({_cast(found[name], field.type)}, {field.missing}) AS "{name}"'
            for name, field in shape.fields.items()
        ]
        given.create_view("given")
        con.execute(
            f"CREATE TEMP TABLE mapped AS SELECT {', '.join(columns)}, row_number() OVER () AS place FROM given"
        )
        if "record_id" in shape.fields:
            content = ", ".join(f'CAST("{name}" AS VARCHAR)' for name in shape.fields if name != "record_id")
            con.execute(
                f"UPDATE mapped SET record_id = 'derived:' || md5(concat_ws('|', {content})) WHERE record_id IS NULL"
            )
        keys = ", ".join(f'"{key}"' for key in shape.table.keys)
        rows = con.execute(
            f"SELECT * EXCLUDE (place) FROM mapped WHERE {shape.needed[0]} IS NOT NULL "
            f"QUALIFY row_number() OVER (PARTITION BY {keys} ORDER BY {shape.newest} DESC NULLS LAST, place DESC) = 1 "
            "ORDER BY place"
        ).to_arrow_table()
    return rows.select(shape.table.schema.names).cast(shape.table.schema)


def _found(field: _Field, there: dict[str, Any]) -> list[str] | None:
    """SQL for the values of a field, in order of preference; None if no column holds it."""
    names = {name.lower(): name for name in there}
    parts: list[str] = []
    for path in field.paths:
        steps = path.split(".")
        for flat in dict.fromkeys((path, "_".join(steps), steps[-1] if steps[-1] != "default" else path)):
            if flat in names:
                parts.append(_text(_quoted(names[flat]), there[names[flat]]))
        if len(steps) > 1 and steps[0] in names:
            parts += _inside(_quoted(names[steps[0]]), there[names[steps[0]]], steps[1:])
    return parts or None


def _inside(column: str, kind: Any, steps: list[str]) -> list[str]:
    """The member of a nested column as text: of a struct, or of JSON text."""
    if kind.id in ("varchar", "json") or str(kind) == "JSON":
        inner = "$." + ".".join(steps)
        return [f"json_extract_string({column}, '{inner}')"]
    for step in steps:
        members = {name.lower(): (name, inner) for name, inner in kind.children} if kind.id == "struct" else {}
        if step not in members:
            return []
        name, kind = members[step]
        column = f"{column}.{_quoted(name)}"
    return [_text(column, kind)]


def _text(column: str, kind: Any) -> str:
    """A value of any type as text: times and decimals in full, nested values as JSON."""
    if str(kind) == "JSON":
        return f"json_extract_string({column}, '$')"
    if kind.id in ("struct", "map", "list"):
        return f"CAST(to_json({column}) AS VARCHAR)"
    return f"CAST({column} AS VARCHAR)"


def _cast(found: list[str] | None, type: str) -> str:
    """The first value that is not blank, in its type."""
    values = [f"nullif(trim({text}), '')" for text in found or ["NULL"]]
    return _CASTS[type].format(f"coalesce({', '.join([*values, 'NULL'])})")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
