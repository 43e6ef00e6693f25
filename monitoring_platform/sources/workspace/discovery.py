"""What a workspace says of its pipelines: the listing, and the settings of those that are new, changed or not asked
for since yesterday.

What is known of a pipeline is one JSON object, its facts:

    name, creator, run_as, state, health, host
    type          as the system table of pipelines says: the API does not tell it; null = not said
    updates       the latest, newest first: update_id, state, creation_time (ISO text)
    spec          the settings that matter here; null = not told yet
    described_at  when the settings were asked for last
    changed_at    when the updates were seen to change last
    day           date of the listing; each pipeline is looked into once a day whatever the listing says
    position      see `_position`
    deleted       true = the workspace no longer has it
    hidden        why the workspace does not show its settings; null = it does
    catalogued_at when the system table of pipelines was asked last
    undescribed   why the settings could not be asked for just now; null = they could
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import orjson

from monitoring_platform.sources.base import GIVE_UP_AFTER, Facts, Look, SourceError
from monitoring_platform.sources.workspace.catalog import completed
from monitoring_platform.sources.workspace.client import Workspace

_PIPELINES = "/api/2.0/pipelines"
_PAGE, _PARALLEL, _UPDATES = 100, 8, 5
_SETTLED_AFTER = timedelta(minutes=10)
ENDED = frozenset({"COMPLETED", "FAILED", "CANCELED"})
_AT_WORK = frozenset({"DEPLOYING", "RECOVERING", "RESETTING", "RUNNING", "STARTING", "STOPPING"})
_SPEC = (
    "catalog", "schema", "target", "storage", "event_log", "tags", "continuous", "development", "serverless", "photon",
    "channel", "edition",
)  # fmt: skip

Known = dict[str, Facts]  # by pipeline_id


def discover(
    workspace: Workspace, table: str, known: Known, failing: frozenset[str], look: Look, every: timedelta
) -> tuple[Known, Any]:
    """Facts of all pipelines by id, and where a listing that ran out of time goes on. Raises SourceError.

    `table`: the system table of pipelines. `failing`: pipelines whose log could not be read, so that their settings
    are asked for again. `every`: after what time settings are asked for again.
    """
    statuses, rest = _listed(workspace, look.resume, look.deadline)
    found = {id_: from_listing(status, known.get(id_), look.now) for id_, status in statuses.items()}
    if look.deadline is None:
        vanished = {id_: facts for id_, facts in known.items() if id_ not in found}
        due = [id_ for id_, facts in found.items() if _is_due(facts, known.get(id_), id_ in failing, look.now, every)]
        due += [id_ for id_, facts in vanished.items() if _is_missed(facts, look.now, every)]
        found.update(vanished)
        for id_, told in _all_described(workspace, due, look.now):
            found[id_] = {**found[id_], **told}
        host = workspace.url
        found = completed(workspace, table, found, look.now, every)
        found = {id_: {**facts, "host": host} for id_, facts in found.items()}
    return {id_: _placed(facts, look.now) for id_, facts in found.items()}, rest


def _listed(workspace: Workspace, resume: Any, deadline: float | None) -> tuple[dict[str, dict[str, Any]], Any]:
    """The listing by id, from the page `resume` on; and the page to go on with if the deadline came first."""
    statuses: dict[str, dict[str, Any]] = {}
    try:
        for page, following in workspace.walk(_PIPELINES, {"max_results": _PAGE}, token=resume):
            statuses.update((status["pipeline_id"], status) for status in page.get("statuses") or ())
            if following and deadline is not None and time.monotonic() >= deadline:
                return statuses, following
    except SourceError as error:
        if error.transient or resume is None or statuses:
            raise
        return _listed(workspace, None, deadline)  # that page is no more
    return statuses, None


def from_listing(status: dict[str, Any], before: Facts | None, now: datetime) -> Facts:
    """The facts of a pipeline after it was listed."""
    before = before or {}
    updates = [
        {name: update.get(name) for name in ("update_id", "state", "creation_time")}
        for update in (status.get("latest_updates") or ())[:_UPDATES]
    ]
    return {
        "name": status.get("name"),
        "type": before.get("type"),
        "creator": status.get("creator_user_name"),
        "run_as": status.get("run_as_user_name"),
        "state": status.get("state"),
        "health": status.get("health"),
        "host": before.get("host"),
        "updates": updates,
        "spec": before.get("spec"),
        "described_at": before.get("described_at"),
        "changed_at": before["changed_at"] if before.get("updates") == updates else _changed_at(updates, before, now),
        "deleted": False,
        "hidden": before.get("hidden"),
        "undescribed": None,
        "catalogued_at": before.get("catalogued_at"),
    }


def _changed_at(updates: list[dict[str, Any]], before: Facts, now: datetime) -> str:
    """Now; for a pipeline that is new here and whose last update is over, when that update began."""
    if not before and updates and updates[0]["state"] in ENDED and updates[0]["creation_time"]:
        return min(datetime.fromisoformat(updates[0]["creation_time"].replace("Z", "+00:00")), now).isoformat()
    return now.isoformat()


def _is_due(facts: Facts, before: Facts | None, is_failing: bool, now: datetime, every: timedelta) -> bool:
    """Whether to ask for the settings of a listed pipeline."""
    return before is None or is_failing or before.get("name") != facts["name"] or _is_stale(facts, now, every)


def _is_missed(facts: Facts, now: datetime, every: timedelta) -> bool:
    """Whether to ask what became of a pipeline that is not listed any more."""
    return not facts.get("deleted") and (not facts.get("hidden") or _is_stale(facts, now, every))


def _is_stale(facts: Facts, now: datetime, every: timedelta) -> bool:
    at = facts.get("described_at")
    return at is None or now - datetime.fromisoformat(at) >= every or not (facts.get("hidden") or facts["spec"])


def _all_described(workspace: Workspace, ids: list[str], now: datetime) -> Iterator[tuple[str, Facts]]:
    """What the settings of these pipelines add to their facts. After too much trouble in a row nobody is asked more."""
    trouble: list[str] = []

    def one(pipeline_id: str) -> Facts:
        if len(trouble) >= GIVE_UP_AFTER:
            return {"undescribed": trouble[-1]}
        told = _described(workspace, pipeline_id, now)
        if told["undescribed"]:
            trouble.append(told["undescribed"])
        else:
            trouble.clear()
        return told

    with ThreadPoolExecutor(_PARALLEL, "describe") as pool:
        yield from zip(ids, pool.map(one, ids))


def _described(workspace: Workspace, pipeline_id: str, now: datetime) -> Facts:
    """What the settings of a pipeline add to its facts, or why they are not to be had."""
    try:
        answer = workspace.get(f"{_PIPELINES}/{pipeline_id}")
    except SourceError as error:
        if error.transient:
            return {"undescribed": error.reason}
        why = {"deleted": True} if error.state == "deleted" else {"hidden": error.reason}
        return {"described_at": now.isoformat(), "undescribed": None, **why}
    spec = answer.get("spec") or {}
    told = {name: spec[name] for name in _SPEC if spec.get(name) is not None}
    return {"described_at": now.isoformat(), "undescribed": None, "spec": told, "deleted": False, "hidden": None}


def _placed(facts: Facts, now: datetime) -> Facts:
    if facts.get("deleted"):
        return {**facts, "position": [{"deleted": True}, None]}
    return {**facts, "day": now.date().isoformat(), "position": _position(facts, now)}


def _position(facts: Facts, now: datetime) -> list[Any]:
    """Where the log of a pipeline ends, as far as the listing tells: [what is settled, what is on its way].

    Settled: the updates and their states, once more when they have been quiet for a while (the last events of an update
    appear after its end), the settings, and the day; the hour where no listing tells of updates. On its way: an update
    at work, which has news at any time.
    """
    updates = facts["updates"]
    settled = {
        "updates": [[update["update_id"], update["state"]] for update in updates],
        "quiet": now - datetime.fromisoformat(facts["changed_at"]) >= _SETTLED_AFTER,
        "spec": _fingerprint(facts["spec"]),
        "hidden": now.hour if facts.get("hidden") else None,  # the listing does not tell when it has news
        "day": now.date().isoformat(),
    }
    is_at_work = facts["state"] in _AT_WORK or (bool(updates) and updates[0]["state"] not in ENDED)
    return [settled, now.isoformat() if is_at_work else None]


def _fingerprint(spec: Facts | None) -> str | None:
    text = orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()[:12] if spec is not None else None
