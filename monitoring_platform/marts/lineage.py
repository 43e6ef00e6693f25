"""Which columns each column of a mart is computed from, read out of its SQL.

`python -m monitoring_platform.marts.lineage` writes `lineage.json`, because working it out takes longer than Dagster
should wait for its definitions; a test fails when the file and the SQL part.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from monitoring_platform.marts.registry import MARTS, TABLES, Mart, view
from monitoring_platform.warehouse.contracts import STANDING, UNION

Lineage = dict[str, list[list[str]]]
"""By column: the [table, column] pairs that it is computed from, sorted."""
_VIEWS = ("events", "batches", "rule_batches")


@cache
def shipped() -> dict[str, Lineage]:
    """The lineage of all marts as shipped."""
    text = (files(__package__) / "lineage.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def column_lineage(mart: Mart) -> Lineage:
    """The lineage of a mart's columns, worked out from its SQL."""
    from sqlglot import exp
    from sqlglot.lineage import lineage
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.optimizer.scope import build_scope

    schema: dict[str, Any] = {
        table.name: {c.name: _sql_type(c.type) for c in table.columns} for table in (*STANDING, *TABLES)
    }
    schema["raw_events"] = schema[UNION.name]
    schema["settings"] = {"time_zone": "STRING", "currency": "STRING"}
    schema["siblings"] = {name: kind for name, kind in schema[mart.name].items() if name not in mart.chained}
    views: dict[str, Any] = {name: exp.maybe_parse(view(name), dialect="spark") for name in _VIEWS}
    query = exp.expand(exp.maybe_parse(mart.sql, dialect="spark"), views, dialect="spark")
    qualified = qualify(query, schema=schema, dialect="spark", validate_qualify_columns=False, identify=False)
    scope = build_scope(qualified)
    found: Lineage = {}
    for column in mart.table.columns:
        node = lineage(column.name, qualified, schema=schema, scope=scope, dialect="spark", copy=False)
        pairs = {
            (leaf.source.name, leaf.name.rpartition(".")[2].strip('"`'))
            for leaf in node.walk()
            if isinstance(leaf.source, exp.Table) and leaf.source.name not in ("settings", "siblings")
        }
        named = {(UNION.name if table == "raw_events" else table, name) for table, name in pairs}
        found[column.name] = [[table, name] for table, name in sorted(named) if name in schema[table]]
    return found


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        return "STRUCT<" + ", ".join(f"{field.name}: {_sql_type(field.type)}" for field in kind) + ">"
    if pa.types.is_list(kind):
        return f"ARRAY<{_sql_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{_sql_type(kind.key_type)}, {_sql_type(kind.item_type)}>"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    names = {"int64": "BIGINT", "int32": "INT", "double": "DOUBLE", "bool": "BOOLEAN", "date32[day]": "DATE"}
    return names.get(str(kind), "STRING")


def worked_out() -> str:
    """The lineage of all marts as JSON text, one column on a line."""
    parts = []
    for mart in MARTS:
        lines = [f"    {json.dumps(name)}: {json.dumps(pairs)}" for name, pairs in column_lineage(mart).items()]
        parts.append(f"  {json.dumps(mart.name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    (Path(__file__).parent / "lineage.json").write_text(worked_out(), encoding="utf-8")
