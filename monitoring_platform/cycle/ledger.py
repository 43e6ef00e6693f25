"""The coverage ledger: every known pipeline is seen, or its row says why not and how to fix it.

Pure functions from what is known (logs, what was read, the previous rows) to the rows of `pipelines`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.config import Settings

Row = dict[str, Any]
SOURCE = "source"  # kind of the row that stands for a source whose logs cannot be listed
INCLUDE_AGAIN = "remove it from pipelines.exclude to ingest it again"
#: What keeps a log from being read until somebody acts. Another log of the same pipeline may do.
_CLOSED = frozenset({"log_not_published", "no_grant", "not_owner", "excluded"})
#: States of a pipeline whose log is not read now.
NOT_READ = _CLOSED | {"unreadable", "rate_limited"}
_SETTINGS = ("catalog", "continuous", "development", "serverless", "channel", "edition")
_LONG_AGO = datetime(1, 1, 1, tzinfo=timezone.utc)

_NOTHING_READ: Row = {
    "pipeline_name": None,
    "name_as_of": None,
    "names_seen": [],
    "pipeline_type": None,
    "first_event_ts": None,
    "last_event_ts": None,
    "has_updates": False,
    "last_ingested_at": None,
    "registered_at": None,
}


def observe(events: pa.Table, now: datetime) -> dict[str, Row]:
    """What one batch of canonical rows says about each pipeline."""
    future = pc.fill_null(pc.list_value_length(events["flags"]), 0)
    normal = pc.equal(future, 0)
    if not pc.all(normal).as_py():
        flags = events["flags"].to_pylist()
        normal = pa.array(["future_timestamp" not in (f or ()) for f in flags])
    time = pc.if_else(normal, events["event_ts"], pa.scalar(None, events["event_ts"].type))
    table = pa.table(
        {
            "id": events["pipeline_id"],
            "name": events["pipeline_name"],
            "type": events["pipeline_type"],
            "ts": time,
            "update": events["update_id"],
        }
    )
    found: dict[str, Row] = {}
    groups = table.group_by("id").aggregate([("ts", "min"), ("ts", "max"), ("update", "count")])
    for row in groups.to_pylist():
        found[row["id"]] = {
            "first_event_ts": row["ts_min"],
            "last_event_ts": row["ts_max"],
            "has_updates": row["update_count"] > 0,
            "names": {},
            "last_ingested_at": now,
        }
    for row in table.group_by(["id", "name"]).aggregate([("ts", "max")]).to_pylist():
        if row["name"] is not None:
            found[row["id"]]["names"][row["name"]] = row["ts_max"]
    for row in table.group_by(["id", "type"]).aggregate([]).to_pylist():
        found[row["id"]]["pipeline_type"] = _most(found[row["id"]].get("pipeline_type"), row["type"])
    return found


def merge(row: Row, seen: Row) -> Row:
    """A pipeline's row after one more batch; the order of batches does not matter."""
    merged = {
        **row,
        "first_event_ts": _least(row["first_event_ts"], seen["first_event_ts"]),
        "last_event_ts": _most(row["last_event_ts"], seen["last_event_ts"]),
        "has_updates": bool(row["has_updates"]) or seen["has_updates"],
        "last_ingested_at": _most(row["last_ingested_at"], seen["last_ingested_at"]),
        "names_seen": sorted({*(row["names_seen"] or ()), *seen["names"]}),
        "pipeline_type": _most(row["pipeline_type"], seen["pipeline_type"]),
    }
    names = {**seen["names"]}
    if row["pipeline_name"] is not None:
        names[row["pipeline_name"]] = _most(names.get(row["pipeline_name"]), row["name_as_of"])
    if names:  # the newest name; one that only events of the far future carry counts last
        newest = max(names, key=lambda name: (names[name] is not None, names[name] or _LONG_AGO, name))
        merged["pipeline_name"], merged["name_as_of"] = newest, names[newest]
    return merged


def rows(
    previous: Mapping[str, Row], logs: Iterable[Row], seen: Mapping[str, list[Row]], settings: Settings, now: datetime
) -> list[Row]:
    """All rows of `pipelines`: known before, told by a workspace, found in logs, and logs of unknown pipelines."""
    by_pipeline: dict[str, list[Row]] = {}
    anonymous: list[Row] = []
    for log in logs:
        for pipeline_id in log["pipeline_ids"] or ():
            by_pipeline.setdefault(pipeline_id, []).append(log)
        if not log["pipeline_ids"] and log["state"] != "gone" and (log["kind"] != "files" or log["error"]):
            anonymous.append(log)
    known = {id_ for id_, row in previous.items() if row["has_updates"] or row["first_event_ts"] or id_ in by_pipeline}
    result = []
    for pipeline_id in sorted({*known, *by_pipeline, *seen}):
        row = {**_NOTHING_READ, "registered_at": now, **previous.get(pipeline_id, {})}
        row = reduce(merge, seen.get(pipeline_id, ()), row)
        result.append(_with_state({**row, "pipeline_id": pipeline_id}, by_pipeline.get(pipeline_id, []), settings, now))
    told = {log["source"] for logs_of in by_pipeline.values() for log in logs_of}
    for log in anonymous:
        if log["kind"] == SOURCE and log["source"] in told:
            continue  # its pipelines say so
        row = {
            **_NOTHING_READ,
            "registered_at": now,
            **previous.get(log["location"], {}),
            "pipeline_id": log["location"],
        }
        result.append(_with_state(row, [log], settings, now))
    return _linked(result)


def _with_state(row: Row, logs: list[Row], settings: Settings, now: datetime) -> Row:
    present = [log for log in logs if log["state"] != "gone"] or logs
    present = sorted(present, key=lambda log: log["error"] is not None)  # of two ways to a log the one that is open
    facts = next((orjson.loads(log["facts"]) for log in present if log["facts"]), None)
    row = {**row, **_told(facts), "pipeline_type": row["pipeline_type"] or (facts or {}).get("type")}
    state, reason, remedy, remedy_sql = _state(row, logs, facts or {}, settings, now)
    failing = [log for log in present if log["error"]]
    tags = {**_tags(facts), **settings.tags_of(row["pipeline_id"], row["pipeline_name"])}
    return {
        **row,
        "source": present[0]["source"] if present else row.get("source"),
        "access_path": present[0]["kind"] if present else row.get("access_path"),
        "logs": sorted(log["location"] for log in logs) or row.get("logs"),
        "state": state,
        "reason": reason,
        "remedy": remedy,
        "remedy_sql": remedy_sql,
        "owner": settings.owner_of(row["pipeline_id"], row["pipeline_name"]),
        "tags": sorted(tags.items()),
        "last_position": _positions(logs),
        "consecutive_failures": max((log["consecutive_failures"] or 0 for log in present), default=0),
        "next_retry_at": min((log["next_retry_at"] for log in failing if log["next_retry_at"]), default=None),
    }


def told_by_workspace(log: Row) -> Row:
    """Columns of `pipelines` that the workspace of this log (a row of `source_logs`) fills; none if it has none."""
    return _told(orjson.loads(log["facts"])) if log["facts"] else {}


def _told(facts: Row | None) -> Row:
    if facts is None:
        return {}
    spec = facts.get("spec") or {}
    schema, setting = spec.get("schema") or spec.get("target"), spec.get("event_log") or {}
    table = (setting.get("catalog") or spec.get("catalog"), setting.get("schema") or schema, setting.get("name"))
    told = {
        "workspace": facts.get("host"),
        "creator": facts.get("creator"),
        "run_as": facts.get("run_as"),
        "schema": schema,
        "event_log_table": ".".join(part for part in table if part) if setting.get("name") else None,
        "deleted": bool(facts.get("deleted")),
        **{name: spec.get(name) for name in _SETTINGS},
    }
    return {**told, "pipeline_name": facts["name"]} if facts.get("name") else told


def _tags(facts: Row | None) -> dict[str, str]:
    tags = ((facts or {}).get("spec") or {}).get("tags") or {}
    return {key: str(value) for key, value in tags.items()}


def _linked(rows: list[Row]) -> list[Row]:
    """With the predecessor of each pipeline that was made anew: the last one before it that is no more."""
    gone: dict[tuple[Any, Any], list[Row]] = {}
    for row in rows:
        if row["state"] in ("deleted", "retired") and row["pipeline_name"] is not None:
            gone.setdefault((row["source"], row["pipeline_name"]), []).append(row)
    result = []
    for row in rows:
        before = [other for other in gone.get((row["source"], row["pipeline_name"]), ()) if _age(other) < _age(row)]
        newest = max(before, key=_age, default=None)
        result.append({**row, "predecessor_id": newest["pipeline_id"] if newest else None})
    return result


def _age(row: Row) -> tuple[datetime, str]:
    """When a pipeline was first heard of; ids tell those of one moment apart."""
    return row["first_event_ts"] or row["registered_at"], row["pipeline_id"]


def _state(
    row: Row, logs: list[Row], facts: Row, settings: Settings, now: datetime
) -> tuple[str, str, str | None, str | None]:
    """State, reason, remedy and what to paste for it."""
    if not settings.is_included(row["pipeline_id"], row["pipeline_name"]):
        return "excluded", "excluded by configuration", INCLUDE_AGAIN, None
    if all(log["state"] == "gone" for log in logs):
        remedy = "restore the log, or leave it: its history stays"
        return "retired", "no configured source lists its log any more", remedy, None
    if facts.get("deleted"):
        return "deleted", "the workspace does not have it any more", "nothing to do: its history stays", None
    failing = _failing([log for log in logs if log["state"] != "gone"])
    if failing:
        coverage = failing["coverage"] or "unreadable"
        if coverage == "log_not_published" and not (row["has_updates"] or facts.get("updates") or facts.get("hidden")):
            reason, remedy = f"no update yet; {failing['error']}", f"start an update, or delete it; {failing['remedy']}"
            return "never_ran", reason, remedy, failing["remedy_sql"]
        return coverage, failing["error"], failing["remedy"], failing["remedy_sql"]
    if not row["has_updates"]:
        reason = "its log is empty" if row["first_event_ts"] is None else "no update in its log yet"
        return "never_ran", reason, "start an update, or retire it", None
    last, hours = row["last_event_ts"], settings.coverage.stale_after_hours
    if last is None or last < now - timedelta(hours=hours):
        when = "unknown" if last is None else f"{last:%Y-%m-%d %H:%M} UTC"
        reason = f"last event {when}, more than {hours:g} h ago"
        return "stale", reason, "check its schedule and whether its log still grows", None
    return "seen", "its log is read and recent", None, None


def _failing(logs: list[Row]) -> Row | None:
    """The log that is not read, unless somebody would only have to open a way that another log has already."""
    failing = [log for log in logs if log["error"]]
    if len(failing) < len(logs):
        failing = [log for log in failing if log["coverage"] not in _CLOSED]
    return failing[0] if failing else None


def _positions(logs: list[Row]) -> str | None:
    found = {log["location"]: orjson.loads(log["cursor"]) for log in logs if log["cursor"]}
    return orjson.dumps(found, option=orjson.OPT_SORT_KEYS).decode() if found else None


def _least(left: Any, right: Any) -> Any:
    return min((v for v in (left, right) if v is not None), default=None)


def _most(left: Any, right: Any) -> Any:
    return max((v for v in (left, right) if v is not None), default=None)
