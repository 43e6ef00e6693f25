"""The updates that a workspace knows, by the pipelines' listing, their updates, and the system table of updates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

import orjson

from monitoring_platform.event_log.values import to_instant
from monitoring_platform.sources.workspace.client import Workspace
from monitoring_platform.sources.workspace.discovery import ENDED
from monitoring_platform.sources.workspace.paths import Ask, instant
from monitoring_platform.sources.workspace.remedies import parts_of, qualified

Update = dict[str, Any]  # columns of `known_updates`; what is not said is None or left out
_PAGE = 100
_STATEMENT = """
SELECT pipeline_id, update_id, request_id, update_type, trigger_type, to_json(trigger_details) AS trigger_details,
       result_state, period_start_time, period_end_time
FROM {table}
WHERE update_id IN (SELECT update_id FROM {table}
                    WHERE period_end_time >= :since AND array_contains(split(:pipelines, ','), pipeline_id))
"""


def listed(pipeline_id: str, facts: dict[str, Any]) -> list[Update]:
    """The latest updates of a pipeline, newest first, from what its listing said."""
    return [
        {
            "pipeline_id": pipeline_id,
            "update_id": update["update_id"],
            "created_at": moment(update["creation_time"]),
            "state": update["state"],
            "known_from": ["listing"],
        }
        for update in facts.get("updates") or ()
        if update.get("update_id")
    ]


def updates(workspace: Workspace, pipeline_id: str, since: datetime, known: Collection[str]) -> Iterator[Update]:
    """Updates of a pipeline, newest first, down to one that is known or older. Raises SourceError."""
    for update in workspace.pages(f"/api/2.0/pipelines/{pipeline_id}/updates", {"max_results": _PAGE}, "updates"):
        created_at = moment(update.get("creation_time"))
        if update["update_id"] in known or (created_at is not None and created_at < since):
            return
        is_full, is_dry = update.get("full_refresh"), update.get("validate_only")
        yield {
            "pipeline_id": pipeline_id,
            "update_id": update["update_id"],
            "created_at": created_at,
            "state": update.get("state"),
            "update_type": "VALIDATE" if is_dry else "FULL_REFRESH" if is_full else "REFRESH",
            "trigger_type": update.get("cause"),
            "known_from": ["updates"],
        }


def timeline(ask: Ask, table: str, pipeline_ids: Iterable[str], since: datetime) -> list[Update]:
    """Updates that had a slice after `since`, each with all its slices. Raises SourceError."""
    statement = _STATEMENT.format(table=qualified(parts_of(table)))
    return folded(ask(statement, {"since": since, "pipelines": ",".join(pipeline_ids)}).to_pylist())


def folded(slices: Iterable[dict[str, Any]]) -> list[Update]:
    """One update for all its slices; the result stands on the last one only."""
    found: dict[tuple[str, str], Update] = {}
    for part in sorted(slices, key=lambda part: part["period_start_time"]):
        job_task = _job_task(part["trigger_details"])
        said: Update = {
            "state": part["result_state"],
            "ended_at": part["period_end_time"] if part["result_state"] else None,
            "request_id": part["request_id"],
            "update_type": part["update_type"],
            "trigger_type": part["trigger_type"],
            "job_id": _number(job_task.get("job_id")),
            "task_run_id": _number(job_task.get("job_task_run_id")),
        }
        first: Update = {
            "pipeline_id": part["pipeline_id"],
            "update_id": part["update_id"],
            "created_at": part["period_start_time"],
            "known_from": ["timeline"],
        }
        update = found.setdefault((part["pipeline_id"], part["update_id"]), first)
        update.update({name: value for name, value in said.items() if value is not None})
    return list(found.values())


def combined(known: Update | None, told: Update) -> Update:
    """What is known of an update together with what is told now: nothing gets lost, an end is not taken back."""
    if known is None:
        return told
    both = {**known, **{name: value for name, value in told.items() if value is not None}}
    if known["state"] in ENDED and told.get("state") not in ENDED:
        both["state"] = known["state"]
    times = [update["created_at"] for update in (known, told) if update.get("created_at")]
    both["created_at"] = min(times, default=None)
    both["known_from"] = sorted({*known["known_from"], *told["known_from"]})
    return both


def _job_task(details: str | None) -> dict[str, Any]:
    found = orjson.loads(details) if details else None
    return (found.get("job_task") or {}) if isinstance(found, dict) else {}


def _number(value: Any) -> str | None:
    """An id of the Jobs service. Refreshes that Databricks schedules itself carry a word in its place."""
    return str(value) if value is not None and str(value).isdigit() else None


def moment(value: Any) -> datetime | None:
    """A time as the services give it: ISO text, or milliseconds since the epoch. Zero stands for none."""
    found = to_instant(value)
    return instant(found.micros) if found else None
