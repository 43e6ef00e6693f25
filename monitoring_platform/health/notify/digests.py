"""The summary of the day, the quality report of the week and the report of the month, as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

from monitoring_platform.config import MonthlyDigest
from monitoring_platform.health.calendars import local_instant
from monitoring_platform.health.notify.messages import Message, duration, moment
from monitoring_platform.health.notify.planning import delivery
from monitoring_platform.health.notify.texts import line, plain, some
from monitoring_platform.marts.registry import STOCK
from monitoring_platform.marts.tables.health import ALERT_DELIVERIES
from monitoring_platform.warehouse.looking import connect
from monitoring_platform.warehouse.store import Warehouse

Row = dict[str, Any]

_SHOWN = 15  # entries of a list

_OPEN = """
SELECT severity, title, pipeline_names, opened_at FROM incidents WHERE opened_at <= $now
  AND (resolved_at IS NULL OR resolved_at > $now)
ORDER BY severity = 'error' DESC, severity = 'warning' DESC, opened_at
"""
_CHANGES = """
SELECT count(DISTINCT incident_id) FILTER (transition = 'opened') AS opened,
       count(DISTINCT incident_id) FILTER (transition = 'resolved') AS resolved
FROM incident_events WHERE "at" > $since AND "at" <= $now
"""
_NOT_SEEN = """
SELECT coalesce(pipeline_name, pipeline_id) AS name, state FROM pipelines
WHERE state NOT IN ('seen', 'excluded', 'retired', 'deleted') ORDER BY state, name
"""
_REQUESTS = """
SELECT count(*) AS ended, count(*) FILTER (outcome = 'FAILED') AS failed, count(DISTINCT pipeline_id) AS pipelines,
       count(*) FILTER (outcome = 'COMPLETED' AND failed_attempts > 0) AS healed
FROM requests WHERE end_ts >= $since AND end_ts < $now
"""
_QUALITY = """
SELECT coalesce(p.pipeline_name, w.pipeline_id) AS pipeline, w.dataset, w.expectation, w.pass_rate_pct,
       w.previous_week_pass_rate_pct AS before_pct, w.change_points, w.failed_records
FROM weekly_quality w LEFT JOIN pipelines p USING (pipeline_id)
WHERE w.week_start = $week AND (w.failed_records > 0 OR w.change_points < 0)
ORDER BY w.change_points NULLS LAST, w.pass_rate_pct NULLS LAST, pipeline, w.dataset, w.expectation
"""
_RULES = """
SELECT count(*) AS rules, 100 * sum(passed_records) / nullif(sum(passed_records + failed_records), 0) AS rate
FROM weekly_quality WHERE week_start = $week
"""
_SLOS = """
SELECT objective, count(*) FILTER (met IS NOT NULL) AS judged, count(*) FILTER (met) AS met,
       count(*) FILTER (NOT met) AS missed
FROM slo_results WHERE "at" > $since AND "at" <= $now GROUP BY objective HAVING judged > 0 ORDER BY objective
"""
_MISSES = """
SELECT coalesce(max(pipeline_name), pipeline_id) AS pipeline, objective, count(*) FILTER (NOT met) AS missed,
       count(*) FILTER (met IS NOT NULL) AS judged
FROM slo_results WHERE "at" > $since AND "at" <= $now GROUP BY pipeline_id, objective HAVING missed > 0
ORDER BY missed DESC, pipeline, objective
"""
_RUNS = """
SELECT sum(duration_seconds) / 3600 AS hours, CAST(sum(rows_written) AS BIGINT) AS written FROM pipeline_runs
WHERE end_ts >= $since AND end_ts < $now
"""
_PASSED = """
SELECT 100 * sum(passed_records) / nullif(sum(passed_records + failed_records), 0) AS rate
FROM expectation_days WHERE "day" >= CAST($since AS DATE) AND "day" < CAST($now AS DATE)
"""
_COSTS = """
SELECT currency, sum(cost) FILTER (usage_date >= CAST($middle AS DATE)) AS cost,
       sum(cost) FILTER (usage_date < CAST($middle AS DATE)) AS cost_before
FROM pipeline_costs WHERE usage_date >= CAST($since AS DATE) AND usage_date < CAST($now AS DATE) AND cost IS NOT NULL
GROUP BY currency ORDER BY currency
"""
_FAILED_MOST = """
SELECT coalesce(max(pipeline_name), pipeline_id) AS pipeline, count(*) AS ended,
       count(*) FILTER (outcome = 'FAILED') AS failed
FROM requests WHERE end_ts >= $since AND end_ts < $now
GROUP BY pipeline_id HAVING failed > 0 ORDER BY failed DESC, pipeline
"""


def due(warehouse: Warehouse, now: datetime) -> list[Row]:
    """Deliveries of digests whose time has come within the last day and that were not planned yet."""
    notifications, zone = warehouse.settings.notifications, warehouse.settings.time_zone
    rows: list[Row] = []
    for kind, written in REPORTS.items():
        digest: MonthlyDigest | None = getattr(notifications, kind)
        if digest is None:
            continue
        for day, at in _times(digest, zone, now):
            planned = [delivery(kind, at, name, Message("", ""), subject=str(day)) for name in digest.channels]
            if new := _unplanned(warehouse, planned):
                rows += [{**row, **written(warehouse, at)._asdict()} for row in new]
    return rows


def _unplanned(warehouse: Warehouse, planned: list[Row]) -> list[Row]:
    wanted = pa.table({"delivery_id": pa.array([row["delivery_id"] for row in planned], pa.string())})
    there = set(warehouse.stored(ALERT_DELIVERIES, ["delivery_id"], wanted)["delivery_id"].to_pylist())
    return [row for row in planned if row["delivery_id"] not in there]


def _times(digest: MonthlyDigest, zone: str, now: datetime) -> Iterator[tuple[date, datetime]]:
    """The newest time at which the digest was due, if that is less than a day ago, with its local day."""
    zone = digest.time_zone or zone
    today = now.astimezone(ZoneInfo(zone)).date()
    for day in (today, today - timedelta(days=1)):
        at = local_instant(day, digest.at, zone)
        if digest.falls_on(day) and now - timedelta(days=1) < at <= now:
            yield day, at
            return


def daily(warehouse: Warehouse, at: datetime) -> Message:
    """What is open, what changed in the 24 hours before, what is not seen, how many requests failed."""
    ask = _Asking(warehouse, "incidents", "incident_events", "pipelines", "requests")
    times = {"since": at - timedelta(days=1), "now": at}
    still = ask(_OPEN, now=at)
    (changes,), (requests,), unseen = ask(_CHANGES, **times), ask(_REQUESTS, **times), ask(_NOT_SEEN)
    worst = sum(row["severity"] == "error" for row in still)
    title = f"Today: {len(still)} open, {worst} of them errors, {len(unseen)} not seen"
    lines = [
        f"24 hours up to {moment(at, warehouse.settings.time_zone)}",
        f"Incidents: {changes['opened']} opened, {changes['resolved']} resolved, {len(still)} open",
        *_listed(
            f"- {row['severity']}: {some(row['pipeline_names'])}: {line(row['title'], 120)}"
            f" (for {duration(at - row['opened_at'])})"
            for row in still
        ),
        f"Requests: {requests['ended']} ended, of {requests['pipelines']} pipelines, {requests['failed']} failed, "
        f"{requests['healed']} succeeded after a retry",
        f"Not seen: {len(unseen) or 'none'}",
        *_listed(f"- {line(row['name'], 80)}: {row['state']}" for row in unseen),
    ]
    return Message(title, plain("\n".join(lines)))


def weekly(warehouse: Warehouse, at: datetime) -> Message:
    """Quality in the last whole week (Monday to Sunday, UTC) with the week before; objectives in the last 7 days."""
    ask = _Asking(warehouse, "weekly_quality", "slo_results", "pipelines")
    today = at.astimezone(ZoneInfo("UTC")).date()
    week = today - timedelta(days=today.weekday() + 7)
    (now,), (before,) = ask(_RULES, week=week), ask(_RULES, week=week - timedelta(days=7))
    quality, times = ask(_QUALITY, week=week), {"since": at - timedelta(days=7), "now": at}
    objectives, misses = ask(_SLOS, **times), ask(_MISSES, **times)
    passed = f", {_rate(now['rate'])} passed, the week before {_rate(before['rate'])}" if now["rules"] else ""
    lines = [
        f"Quality: {now['rules']} expectations{passed}",
        *_listed(
            f"- {line(row['pipeline'], 80)} {line(row['dataset'], 80)}.{line(row['expectation'], 80)}: "
            f"{_rate(row['pass_rate_pct'])}, the week before {_rate(row['before_pct'])}, "
            f"{row['failed_records'] or 0:,} failed"
            for row in quality
        ),
        "Objectives in the last 7 days:" if objectives else "Objectives in the last 7 days: none judged",
        *_met(objectives),
        *(["Missed most:"] if misses else []),
        *_listed(
            f"- {line(row['pipeline'], 80)}, {row['objective']}: {row['missed']} of {row['judged']}" for row in misses
        ),
    ]
    rate = "nothing judged" if now["rate"] is None else f"{_rate(now['rate'])} of records passed"
    return Message(f"Week of {week}: {rate}", plain("\n".join(lines)))


def monthly(warehouse: Warehouse, at: datetime) -> Message:
    """Requests, hours, rows, quality, cost and objectives of the last whole month (UTC), with the month before."""
    ask = _Asking(warehouse, "requests", "pipeline_runs", "expectation_days", "pipeline_costs", "slo_results")
    end = at.astimezone(timezone.utc).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    begin = _month_before(end)
    month, earlier = {"since": begin, "now": end}, {"since": _month_before(begin), "now": begin}
    (requests,), (requests_before,) = ask(_REQUESTS, **month), ask(_REQUESTS, **earlier)
    (runs,), (runs_before,) = ask(_RUNS, **month), ask(_RUNS, **earlier)
    (quality,), (quality_before,) = ask(_PASSED, **month), ask(_PASSED, **earlier)
    failed, failed_before = (
        _rate(100 * row["failed"] / row["ended"] if row["ended"] else None) for row in (requests, requests_before)
    )
    objectives, most = ask(_SLOS, **month), ask(_FAILED_MOST, **month)
    lines = [
        f"Requests: {requests['ended']} ended (the month before {requests_before['ended']}), of "
        f"{requests['pipelines']} pipelines, {requests['healed']} succeeded after a retry",
        f"Failed: {requests['failed']} ({failed}), the month before {requests_before['failed']} ({failed_before})",
        f"Run time: {_amount(runs['hours'], ' h')}, the month before {_amount(runs_before['hours'], ' h')}",
        f"Rows written: {_amount(runs['written'])}, the month before {_amount(runs_before['written'])}",
        f"Quality: {_rate(quality['rate'])} of records passed, the month before {_rate(quality_before['rate'])}",
        *(
            f"Cost: {_amount(row['cost'])} {row['currency']}, the month before {_amount(row['cost_before'])}"
            for row in ask(_COSTS, since=earlier["since"], middle=begin, now=end)
        ),
        "Objectives:" if objectives else "Objectives: none judged",
        *_met(objectives),
        *(["Failed most:"] if most else []),
        *_listed(f"- {line(row['pipeline'], 80)}: {row['failed']} of {row['ended']} requests" for row in most),
    ]
    title = f"{failed} of requests failed" if requests["ended"] else "nothing ended"
    return Message(f"Month {begin:%Y-%m}: {title}", plain("\n".join(lines)))


REPORTS = {"daily": daily, "weekly": weekly, "monthly": monthly}


class _Asking:
    """Questions to some tables; those that do not exist yet are empty."""

    def __init__(self, warehouse: Warehouse, *names: str) -> None:
        self._con = connect(warehouse, *(STOCK[name] for name in names))

    def __call__(self, sql: str, **given: Any) -> list[Row]:
        return list(self._con.execute(sql, given or None).to_arrow_table().to_pylist())


def _listed(entries: Iterator[str]) -> list[str]:
    told = list(entries)
    more = [f"- and {len(told) - _SHOWN} more"] if len(told) > _SHOWN else []
    return [*told[:_SHOWN], *more]


def _met(objectives: list[Row]) -> list[str]:
    return [
        f"- {row['objective']}: met {row['met']} of {row['judged']} ({_rate(100 * row['met'] / row['judged'])})"
        for row in objectives
    ]


def _month_before(first: datetime) -> datetime:
    return (first - timedelta(days=1)).replace(day=1)


def _amount(value: Any, unit: str = "") -> str:
    """A number as people read it: two digits after the point where it has any."""
    if value is None:
        return "unknown"
    return (f"{value:,}" if isinstance(value, int) else f"{value:,.2f}") + unit


def _rate(percent: float | None) -> str:
    return "unknown" if percent is None else f"{percent:.2f} %"
