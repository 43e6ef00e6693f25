"""What to do about a log that cannot be read: in words, and as SQL or settings to paste."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson


def quoted(name: str) -> str:
    """An identifier for SQL: in back-ticks, those inside doubled."""
    return f"`{name.replace('`', '``')}`"


def qualified(parts: Sequence[str]) -> str:
    """A name of several parts for SQL."""
    return ".".join(map(quoted, parts))


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a name as it is written in a configuration: a.b.c, each part also in back-ticks."""
    found = re.findall(r"`((?:[^`]|``)*)`|([^.`]+)", name)
    return tuple(quoted_part.replace("``", "`") or plain for quoted_part, plain in found)


def grant_select(table: Sequence[str], principal: str) -> str:
    """What lets a principal read a table: three privileges."""
    who = quoted(principal)
    if len(table) != 3:
        return f"GRANT SELECT ON TABLE {qualified(table)} TO {who};"
    return "\n".join(
        [
            f"GRANT USE CATALOG ON CATALOG {quoted(table[0])} TO {who};",
            f"GRANT USE SCHEMA ON SCHEMA {qualified(table[:2])} TO {who};",
            f"GRANT SELECT ON TABLE {qualified(table)} TO {who};",
        ]
    )


def publish(pipeline_name: str | None, pipeline_id: str) -> str:
    """The pipeline's setting that publishes its log. Catalog and schema default to the pipeline's own."""
    stem = re.sub(r"\W+", "_", (pipeline_name or "").lower()).strip("_") or pipeline_id.replace("-", "_")
    return _json({"event_log": {"name": f"{stem}_event_log"}})


def view_permission(principal: str) -> str:
    """What the Permissions API takes (PATCH /api/2.0/permissions/pipelines/{pipeline_id}) to show a pipeline."""
    who = "user_name" if "@" in principal else "service_principal_name"
    return _json({"access_control_list": [{who: principal, "permission_level": "CAN_VIEW"}]})


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
