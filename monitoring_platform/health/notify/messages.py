"""What people read: title and text of a message, as plain text that can be read in five seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from monitoring_platform.event_log.redact import redact_text
from monitoring_platform.health.notify.texts import line, plain, some

Row = Mapping[str, Any]

_NUMBERS = 6  # told of one finding
_OTHERS = 6  # findings told in all
_ERROR = 300  # letters told of an error
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)")  # as evidence has them, always UTC
_ANSWERS: dict[str, str] = {
    "request_failed": "look at the error; `query root_error_of_failed_requests` has all of them",
    "failure_rate_high": "`query rising_failure_rate`, then `query error_pattern`",
    "deadline_missed": "tell those who wait for the data; `query bottlenecks_7_days` says what takes the time",
    "deadline_at_risk": "look at the run now; `query slowest_flows_of_an_update` says what takes the time",
    "not_fresh": "look why it no longer runs or succeeds: `query run_history`",
    "duration_over_target": "`query slower_by_which_flow` says what takes the time",
    "budget_burning": "fix what fails most before changing anything else: `query error_pattern`",
    "run_slow": "`query slower_by_which_flow` says which flow takes longer",
    "duration_growing": "`query growing_durations`, then `query slower_by_which_flow`",
    "rows_zero": "look whether the source has delivered",
    "rows_changed": "look whether the source has delivered all, or twice",
    "pass_rate_low": "look at the records that fail; `expectation_results` has the history",
    "pass_rate_falling": "look what changed in the source; `query decaying_rules`",
    "rows_dropped": "look at the records that are dropped: `query dropped_records`",
    "backlog_high": "`query backlog`; look at the cluster and the source",
    "backlog_growing": "`query growing_backlogs`; look at the cluster and the source",
    "flow_stalled": "look at the cluster and the source: `query stalled_flows`",
    "recomputed_in_full": "`query recompute_watch_now` has the reason",
    "expectation_lost": "ask the owner whether it was meant: `query rules_gone_or_changed`",
    "cost_high": "`query cost_increase` says when and how much",
    "pipeline_not_seen": "`query not_seen` says why and what to do",
    "pipeline_silent": "look whether its trigger or job still runs it",
    "update_missing": "`query updates_that_no_log_has` says why",
    "stream_lagging": "look at the cluster and the source: `query backlog`",
}
#: Evidence that has a line of its own, or says nothing to people.
_APART = frozenset(
    """
    pipeline_id pipeline_name subject since title request_id update_id first_error error_class basis remedy remedy_sql
    """.split()  # noqa: SIM905
)


class Message(NamedTuple):
    """First line and the rest, plain text without invisible characters; not yet made harmless for a service."""

    title: str
    body: str


def of_incident(event: Row, time_zone: str) -> Message:
    """What is told of a transition.

    `event`: a row of `incident_events` with `rule`, `started_at`, `opened_at` and `names` (of pipelines, by id) of its
    incident, and `severity_before` and `pipeline_ids_before` of the event before; null = there is none.
    """
    names = [event["names"].get(key) or key for key in event["pipeline_ids"]]
    about = f"{some(names)}: {line(event['title'], 160)}"
    severity = str(event["severity"]).upper()
    if event["transition"] == "resolved":
        began = event["started_at"] or event["opened_at"]
        lasted = f"Lasted {duration(event['at'] - began)}, from {moment(began, time_zone)}"
        return _message(f"RESOLVED {about}", [f"{lasted} to {moment(event['at'], time_zone)}."])
    evidence = orjson.loads(event["evidence"])
    found = evidence.get("found") or [{}]
    lines = [*_since(event, found, time_zone)]
    title = f"{severity} {about}"
    if event["transition"] == "escalated":
        title, lines = f"WORSE, {title}", [*_worse(event), *lines]
    return _message(
        title, [*lines, *_found(found, evidence, names, time_zone), *_rest(evidence), _to_do(event["rule"], found[0])]
    )


def of_job(transition: str, run_id: str, error: str | None = None) -> Message:
    """What is told of a run of the monitoring job itself."""
    titles = {"job_started": "started", "job_succeeded": "succeeded", "job_failed": "failed"}
    lines = [f"Run {run_id}"]
    if transition == "job_failed":
        lines += [f"Error: {line(redact_text(error) or 'unknown', 2 * _ERROR)}"]
        lines += ["To do: look at the run in Dagster; `monitoring-platform doctor` tries what a run needs"]
    urgent = "ERROR " if transition == "job_failed" else ""
    return _message(f"{urgent}monitoring job {titles[transition]}", lines)


def _message(title: str, lines: list[str]) -> Message:
    return Message(line(title, 250), plain("\n".join(lines)))


def _since(event: Row, found: list[Row], time_zone: str) -> list[str]:
    times = [_instant(row["since"]) for row in found if row.get("since")]
    began = min(times) if times else event["started_at"] or event["at"]
    ago = f", for {duration(event['at'] - began)} so far" if event["at"] - began >= timedelta(minutes=1) else ""
    return [f"Since {moment(began, time_zone)}{ago}"]


def _worse(event: Row) -> list[str]:
    lines = []
    new = [key for key in event["pipeline_ids"] if key not in (event["pipeline_ids_before"] or ())]
    if new:
        lines.append(f"Now also: {some([event['names'].get(key) or key for key in new], 10)}")
    if event["severity_before"] not in (None, event["severity"]):
        lines.append(f"Was: {event['severity_before']}")
    return lines


def _found(found: list[Row], evidence: Row, names: list[str], time_zone: str) -> list[str]:
    """The first finding in numbers, with its run and error; of the others what is wrong."""
    first, lines = found[0], []
    if len(names) > 1 and first.get("pipeline_name"):
        lines.append(f"First: {line(first['pipeline_name'], 80)}")
    if first.get("subject"):
        lines.append(f"At: {line(first['subject'])}")
    numbers = [
        f"{key.replace('_', ' ')} {_figure(value, time_zone)}" for key, value in first.items() if key not in _APART
    ]
    if numbers:
        compared = f" ({line(str(first['basis']))})" if first.get("basis") else ""
        lines.append(line(", ".join(numbers[:_NUMBERS]), 300) + compared)
    if first.get("update_id"):
        lines.append(f"Run {line(str(first['update_id']), 80)}")
    if first.get("first_error"):
        lines.append(f"First error: {line(str(first['first_error']), _ERROR)}")
    lines += [f"Also: {_where(row, len(names) > 1)}{line(str(row.get('title')), 120)}" for row in found[1:_OTHERS]]
    if (more := evidence.get("found_in_all", len(found)) - _OTHERS) > 0:
        lines.append(f"and {more} more")
    return lines


def _where(row: Row, is_in_many: bool) -> str:
    parts = [row.get("pipeline_name") or row.get("pipeline_id") if is_in_many else None, row.get("subject")]
    return "".join(f"{line(part, 80)}: " for part in parts if part)


def _rest(evidence: Row) -> list[str]:
    return [f"Downstream: {some(evidence['downstream'])}"] if evidence.get("downstream") else []


def _to_do(rule: str, first: Row) -> str:
    if first.get("remedy"):
        return f"To do: {line(str(first['remedy']), _ERROR)}"
    answer = _ANSWERS.get(rule, f"see the rule {line(rule)} in the configuration")
    return f"To do: {answer.replace('`query ', '`monitoring-platform query ')}"


def _figure(value: Any, time_zone: str) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, str) and _TIME.fullmatch(value):
        return moment(_instant(value), time_zone)
    return f"{value:,.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else line(str(value), 120)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text[:19] + "+00:00")


def moment(at: datetime, time_zone: str) -> str:
    """An instant in UTC, and in local time where that differs."""
    zone, utc = ZoneInfo(time_zone), at.astimezone(ZoneInfo("UTC"))
    local = at.astimezone(zone)
    told = f"{utc:%Y-%m-%d %H:%M} UTC"
    if local.utcoffset():
        told += f" ({local:%H:%M} {time_zone})" if local.date() == utc.date() else f" ({local:%a %H:%M} {time_zone})"
    return told


def duration(length: timedelta) -> str:
    """A length of time in its two largest units."""
    minutes = max(int(length.total_seconds()), 0) // 60
    days, hours, rest = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {rest} min" if hours else f"{rest} min"
