"""Pipelines as the system table of pipelines has them: those too that the Pipelines API does not show us, and when one
was deleted. It is asked once a day, where SQL and the table may be used, and adds to what the listing tells."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson

from monitoring_platform.sources.base import Facts, SourceError
from monitoring_platform.sources.workspace.client import Workspace
from monitoring_platform.sources.workspace.remedies import parts_of, qualified

_SECONDS = 60.0
_SETTINGS = ("continuous", "development", "serverless", "photon", "channel", "edition")
#: Types that event logs call by another name.
_TYPES = {
    "ETL_PIPELINE": "WORKSPACE",
    "MATERIALIZED_VIEW": "DBSQL",
    "STREAMING_TABLE": "DBSQL",
    "INGESTION_PIPELINE": "MANAGED_INGESTION",
}
_NEWEST = """
SELECT workspace_id, pipeline_id, pipeline_type, name, created_by, run_as, tags, settings, delete_time
FROM (
  SELECT *, row_number() OVER (PARTITION BY workspace_id, pipeline_id ORDER BY change_time DESC) AS age FROM {table}
)
WHERE age = 1
"""


def completed(
    workspace: Workspace, table: str, found: dict[str, Facts], now: datetime, every: timedelta
) -> dict[str, Facts]:
    """The pipelines found, and what the system table adds to them. Without access to it they are as they were."""
    if workspace.sql_warehouse is None or not _is_due(found, now, every):
        return found
    try:
        rows = workspace.sql(_NEWEST.format(table=qualified(parts_of(table))), seconds=_SECONDS).to_pylist()
    except SourceError as error:  # the listing is enough; `doctor` says what is missing
        if error.transient:  # such as a SQL warehouse that is only starting
            return found
        rows = []
    shown = {id_ for id_, facts in found.items() if not facts.get("hidden") and not facts.get("deleted")}
    here = {row["workspace_id"] for row in rows if row["pipeline_id"] in shown}  # the table has a whole region
    completed = dict(found)
    for row in rows:
        id_ = row["pipeline_id"]
        if row["workspace_id"] not in here:
            continue
        if id_ in found:
            is_deleted = found[id_]["deleted"] or (id_ not in shown and row["delete_time"] is not None)
            completed[id_] = {**found[id_], "type": _type(row), "deleted": is_deleted}
        elif row["delete_time"] is None:
            completed[id_] = _unlisted(row, table, now)
    return {id_: {**facts, "catalogued_at": now.isoformat()} for id_, facts in completed.items()}


def _is_due(found: Mapping[str, Facts], now: datetime, every: timedelta) -> bool:
    asked = max((facts.get("catalogued_at") or "" for facts in found.values()), default="")
    return not asked or now - datetime.fromisoformat(asked) >= every


def _unlisted(row: Mapping[str, Any], table: str, now: datetime) -> Facts:
    """The facts of a pipeline that only the system table tells of."""
    settings = _object(row["settings"])
    spec = {name: settings[name] for name in _SETTINGS if settings.get(name) is not None}
    return {
        "name": row["name"],
        "type": _type(row),
        "creator": row["created_by"],
        "run_as": row["run_as"],
        "state": None,
        "health": None,
        "host": None,
        "updates": [],
        "spec": {**spec, "tags": _object(row["tags"])},
        "described_at": now.isoformat(),
        "changed_at": now.isoformat(),
        "deleted": False,
        "hidden": f"{table} has it, the Pipelines API does not show it",
        "undescribed": None,
    }


def _type(row: Mapping[str, Any]) -> str | None:
    """Type of a pipeline in the words of event logs, as far as they have one for it."""
    said: str | None = row["pipeline_type"]
    return _TYPES.get(said, said) if said else None


def _object(value: Any) -> dict[str, Any]:
    """A struct or a map, as Arrow or as JSON text has them."""
    parsed = orjson.loads(value) if isinstance(value, str) else value
    if isinstance(parsed, dict):
        return parsed
    pairs = [(pair["key"], pair["value"]) if isinstance(pair, dict) else pair for pair in parsed or ()]
    return dict(pairs)
