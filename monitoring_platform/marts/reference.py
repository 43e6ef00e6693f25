"""The table reference, written from the contracts: `python -m monitoring_platform.marts.reference > docs/tables.md`."""

from __future__ import annotations

import pyarrow as pa

from monitoring_platform.marts.registry import STOCK
from monitoring_platform.warehouse.contracts import Table

_HEAD = """# Tables

Written from the contracts by `make docs`; do not edit. All tables are Delta, all times UTC instants.
Null means unknown, not reported or still open, as each column says; it is never zero.
"""


def reference() -> str:
    """The whole reference as Markdown."""
    return "\n".join([_HEAD, *(_section(table) for table in STOCK.values())])


def _section(table: Table) -> str:
    keys = ", ".join(f"`{key}`" for key in table.keys) or "none"
    lines = [
        f"## {table.name}\n",
        f"One row: {table.grain}. Key: {keys}.\n",
        "| column | type | meaning |",
        "| --- | --- | --- |",
    ]
    lines += [f"| `{c.name}` | {type_name(c.type)} | {c.doc.replace('|', '/')} |" for c in table.columns]
    return "\n".join(lines) + "\n"


def type_name(kind: pa.DataType) -> str:
    """A type as Spark SQL writes it; structs without their members."""
    names = {
        "string": "STRING",
        "int64": "BIGINT",
        "double": "DOUBLE",
        "bool": "BOOLEAN",
        "date32[day]": "DATE",
        "int32": "INT",
    }
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    return "STRUCT" if pa.types.is_struct(kind) else names[str(kind)]


if __name__ == "__main__":
    print(reference(), end="")
