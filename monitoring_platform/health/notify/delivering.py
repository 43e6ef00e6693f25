"""Planned messages reach their channels, each once: `alert_deliveries` is written before and after each try."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from monitoring_platform.config import Settings
from monitoring_platform.health.notify import digests, messages
from monitoring_platform.health.notify.channels import Channel, Urgency
from monitoring_platform.health.notify.planning import delivery, hurried, plan
from monitoring_platform.health.rules import pipelines
from monitoring_platform.marts.tables.health import ALERT_DELIVERIES, INCIDENT_EVENTS, INCIDENTS
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.looking import connect
from monitoring_platform.warehouse.store import Warehouse

Row = dict[str, Any]

_REMEMBERED = timedelta(days=7)
_FIRST_RETRY, _LAST_RETRY = timedelta(minutes=1), timedelta(minutes=60)
_TITLES = 60  # listed by a summary

_UNPLANNED = """
WITH all_events AS (
  SELECT *, lag(severity) OVER w AS severity_before, lag(pipeline_ids) OVER w AS pipeline_ids_before
  FROM incident_events
  WINDOW w AS (PARTITION BY incident_id ORDER BY "at")
)
SELECT e.*, i.rule, i.owner, i.started_at, i.opened_at, map(i.pipeline_ids, i.pipeline_names) AS names
FROM all_events e JOIN incidents i USING (incident_id)
WHERE e.is_told AND e.at > $since AND e.at <= $now
  AND NOT EXISTS (SELECT 1 FROM alert_deliveries d
                  WHERE d.incident_id = e.incident_id AND d.transition = e.transition AND d.transition_at = e.at)
ORDER BY e.at, e.incident_id
"""
_TOLD = """
SELECT incident_id, list(DISTINCT channel) FROM alert_deliveries
WHERE transition IN ('opened', 'escalated') AND incident_id IS NOT NULL
GROUP BY incident_id
"""
_UNSENT = """
SELECT d.*, i.severity
FROM alert_deliveries d LEFT JOIN incidents i USING (incident_id)
WHERE d.sent_at IS NULL AND d.due_at <= $now
ORDER BY d.transition_at, d.delivery_id
"""
#: A summary is one message, counted by the delivery that carried it: the others had no try of their own.
_SENT_LATELY = """
SELECT channel, count(*) FROM alert_deliveries WHERE sent_at > $since AND sent_at <= $now AND attempts > 0 GROUP BY ALL
"""


class Delivered(NamedTuple):
    """What one delivery did, in deliveries: sent; tried in vain; due but not tried, or not yet due again."""

    sent: int = 0
    failed: int = 0
    waiting: int = 0


def notify(warehouse: Warehouse, now: datetime) -> Delivered:
    """Plan what is to be told and send what is due. Nothing is looked at where no channel is configured."""
    if not warehouse.settings.notifications.channels:
        return Delivered()
    plan_due(warehouse, now)
    return deliver(warehouse, now)


# ---- what is to be sent ----


def plan_due(warehouse: Warehouse, now: datetime) -> int:
    """Plan messages for transitions and digests that have none yet; gives how many. Repeating it adds nothing."""
    warehouse.create((ALERT_DELIVERIES, INCIDENTS, INCIDENT_EVENTS))
    con = connect(warehouse, INCIDENT_EVENTS, INCIDENTS, ALERT_DELIVERIES, contracts.PIPELINES)
    times = {"since": now - _REMEMBERED, "now": now}
    events = con.execute(_UNPLANNED, times).to_arrow_table().to_pylist(maps_as_pydicts="strict")
    planned = digests.due(warehouse, now)
    if events:
        told = {incident_id: set(channels) for incident_id, channels in con.execute(_TOLD).fetchall()}
        tags = {pipeline.pipeline_id: pipeline.tags for pipeline in pipelines(con)}
        planned += plan(events, told, tags, warehouse.settings)
    return _add(warehouse, planned)


def tell_job(warehouse: Warehouse, transition: str, run_id: str, at: datetime, error: str | None = None) -> int:
    """Plan the message about a run of the monitoring job: job_started, job_succeeded or job_failed. Once for a run."""
    warehouse.create((ALERT_DELIVERIES,))
    message = messages.of_job(transition, run_id, error)
    channels = _listeners(warehouse.settings, transition)
    return _add(warehouse, [delivery(transition, at, channel, message, subject=run_id) for channel in channels])


def _listeners(settings: Settings, transition: str) -> tuple[str, ...]:
    job = settings.notifications.monitoring_job
    if transition == "job_failed":
        return settings.notifications.fallback if job.on_failure is None else job.on_failure
    return job.on_start if transition == "job_started" else job.on_success


def _add(warehouse: Warehouse, planned: list[Row]) -> int:
    """Write the planned deliveries that are not there yet, and the earlier times that follow for others."""
    if not planned:
        return 0
    with warehouse.lock():
        ids = {row["delivery_id"] for row in _stored(warehouse, "delivery_id", planned)}
        new = {row["delivery_id"]: row for row in planned if row["delivery_id"] not in ids}
        sooner = hurried([*_stored(warehouse, "incident_id", planned), *new.values()], new.values())
        changed = {**new, **{row["delivery_id"]: row for row in sooner}}
        if sooner:
            _merge(warehouse, changed.values())
        elif changed:
            warehouse.append_rows(ALERT_DELIVERIES, _table(changed.values()))
    return len(new)


def _stored(warehouse: Warehouse, column: str, like: list[Row]) -> list[Row]:
    """Deliveries that have the same value in a column as one of these."""
    wanted = pa.table({column: pa.array([row[column] for row in like], pa.string())})
    return list(warehouse.stored(ALERT_DELIVERIES, None, wanted).to_pylist())


# ---- sending ----


def deliver(warehouse: Warehouse, now: datetime) -> Delivered:
    """Send what is due, in the order in which it happened. Whoever comes while another delivers leaves it to them.

    A channel that fails is left alone until the next call. Nothing is given up: a failed message is tried again after
    1, 2, 4 … at most 60 minutes. Not for callers that hold the lock of the warehouse: it is taken for each record.
    """
    warehouse.create((ALERT_DELIVERIES, INCIDENTS))
    with warehouse.turn("delivering") as is_ours:
        if not is_ours:
            return Delivered()
        con = connect(warehouse, ALERT_DELIVERIES, INCIDENTS)
        by_channel = defaultdict(list)
        for row in con.execute(_UNSENT, {"now": now}).to_arrow_table().to_pylist():
            by_channel[row["channel"]].append(row)
        times = {"since": now - timedelta(hours=1), "now": now}
        sent_lately = dict(con.execute(_SENT_LATELY, times).fetchall())
        sent = failed = 0
        for name, rows in by_channel.items():
            room = warehouse.settings.notifications.max_per_hour - sent_lately.get(name, 0)
            channel = Channel(name, warehouse.settings)
            for group in grouped(_ready(rows, now), room):
                if not _send(warehouse, channel, group, now):
                    failed += 1
                    break
                sent += len(group)
    return Delivered(sent, failed, sum(map(len, by_channel.values())) - sent - failed)


def _ready(rows: Iterable[Row], now: datetime) -> Iterator[Row]:
    """Deliveries whose turn it is: not those that wait for a retry, nor what happened later to the same incident."""
    held: set[str] = set()
    for row in rows:
        if row["incident_id"] is not None and row["incident_id"] in held:
            continue
        if row["next_try_at"] is None or row["next_try_at"] <= now:
            yield row
        elif row["incident_id"] is not None:
            held.add(row["incident_id"])


def grouped(rows: Iterable[Row], room: int) -> list[list[Row]]:
    """Messages to send: one for each delivery, or, where there is room for fewer, the last for all that are left."""
    left = list(rows)
    if len(left) <= room:
        return [[row] for row in left]
    if room <= 0:
        return []
    return [*([row] for row in left[: room - 1]), left[room - 1 :]]


def _send(warehouse: Warehouse, channel: Channel, group: list[Row], now: datetime) -> bool:
    """One message for these deliveries; whether the channel took it. A kill in between repeats this message only."""
    first, settings = group[0], warehouse.settings
    first["attempts"] += 1
    first["next_try_at"] = now + min(_FIRST_RETRY * 2 ** min(first["attempts"] - 1, 20), _LAST_RETRY)
    _write(warehouse, [first])
    title, text = _summary(group) if len(group) > 1 else (first["title"], first["body"])
    link = settings.notifications.link
    footer = [f"id {first['delivery_id']}", *([link] if link else [])]
    error = channel.send(title, text, _urgency(group), footer)
    if error is not None:
        first["error"] = error
        _write(warehouse, [first])
        return False
    for row in group:
        row["sent_at"], row["next_try_at"], row["error"] = now, None, None
    _write(warehouse, group)
    return True


def _summary(group: list[Row]) -> tuple[str, str]:
    titles = [f"- {row['title']}" for row in group[:_TITLES]]
    if len(group) > _TITLES:
        titles.append(f"- and {len(group) - _TITLES} more")
    text = "This channel has had its messages of the hour. These are the others, `alert_deliveries` has them whole:"
    return f"and {len(group)} more", "\n".join([text, *titles])


def _urgency(group: list[Row]) -> Urgency:
    urgencies = {_of_one(row) for row in group}
    return next(urgency for urgency in ("failure", "warning", "success", "info") if urgency in urgencies)


def _of_one(row: Row) -> Urgency:
    if row["transition"] in ("resolved", "job_succeeded"):
        return "success"
    if row["transition"] in ("opened", "escalated"):
        return "failure" if row["severity"] == "error" else "warning"
    return "failure" if row["transition"] == "job_failed" else "info"


def _write(warehouse: Warehouse, rows: Iterable[Row]) -> None:
    with warehouse.lock():
        _merge(warehouse, rows)


def _merge(warehouse: Warehouse, rows: Iterable[Row]) -> None:
    warehouse.merge(ALERT_DELIVERIES, _table(rows), ALERT_DELIVERIES.schema.empty_table())


def _table(rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), ALERT_DELIVERIES.schema)
