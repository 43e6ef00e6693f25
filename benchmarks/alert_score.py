"""What alarms are worth: how many faults they announce, how many are about a fault, how many messages they are.

Alarms are told transitions of incidents with severity warning or error. A fault is found when one that opens or
escalates names a rule that may announce it and one of its pipelines, from its beginning until a day after its end.
An incident is right when its alarm is about some fault in that way, whether or not another one announced it before.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any, NamedTuple

import duckdb

from benchmarks.alert_fleet import NAIVE_FAILED, NAIVE_SLOW, NAIVE_ZERO, Fault

GRACE = timedelta(days=1)
Row = dict[str, Any]


class Alarm(NamedTuple):
    """A message that something is wrong. `key`: alarms with the same one are about one incident."""

    key: str
    rule: str
    at: datetime
    pipeline_ids: tuple[str, ...]
    title: str


class Score(NamedTuple):
    """What a set of alarms is worth."""

    found: dict[Fault, Alarm]
    missed: list[Fault]
    false: list[Alarm]
    incidents: int
    notifications: int

    def as_json(self) -> Row:
        faults, right = len(self.found) + len(self.missed), self.incidents - len(self.false)
        return {
            "recall": round(len(self.found) / faults, 4) if faults else None,
            "precision": round(right / self.incidents, 4) if self.incidents else None,
            "faults": faults,
            "found": len(self.found),
            "incidents": self.incidents,
            "false": len(self.false),
            "notifications": self.notifications,
            "false_by_rule": dict(Counter(alarm.rule for alarm in self.false)),
        }


def alarms_of(incidents: Iterable[Row], events: Iterable[Row], severities: Sequence[str]) -> list[Alarm]:
    """The told beginnings and escalations with one of these severities."""
    rules = {row["incident_id"]: row["rule"] for row in incidents}
    return [
        Alarm(row["incident_id"], rules[row["incident_id"]], row["at"], tuple(row["pipeline_ids"]), row["title"])
        for row in events
        if row["is_told"] and row["transition"] in ("opened", "escalated") and row["severity"] in severities
    ]


def score(faults: Sequence[Fault], alarms: Sequence[Alarm], notifications: int) -> Score:
    """Hold alarms against the faults."""
    found: dict[Fault, Alarm] = {}
    right: set[str] = set()
    for alarm in sorted(alarms, key=lambda alarm: alarm.at):
        for fault in faults:
            if announces(alarm, fault):
                right.add(alarm.key)
                found.setdefault(fault, alarm)
    first: dict[str, Alarm] = {}
    for alarm in alarms:
        first.setdefault(alarm.key, alarm)
    false = [alarm for key, alarm in first.items() if key not in right]
    missed = [fault for fault in faults if fault not in found]
    return Score(found, missed, false, len(first), notifications)


def announces(alarm: Alarm, fault: Fault) -> bool:
    """Whether an alarm is about a fault."""
    in_time = fault.began_at <= alarm.at <= fault.ended_at + GRACE
    return in_time and alarm.rule in fault.rules and not set(alarm.pipeline_ids).isdisjoint(fault.pipeline_ids)


def by_kind(result: Score) -> list[Row]:
    """Each kind of fault: how many there were, how many were found, and the median time from knowable to told."""
    kinds: defaultdict[str, list[Fault]] = defaultdict(list)
    for fault in (*result.found, *result.missed):
        kinds[fault.kind].append(fault)
    return [
        {
            "kind": kind,
            "planted": len(faults),
            "found": sum(fault in result.found for fault in faults),
            "median_hours_to_alarm": _hours(result, faults),
        }
        for kind, faults in sorted(kinds.items())
    ]


def _hours(result: Score, faults: list[Fault]) -> float | None:
    late = [
        (result.found[fault].at - fault.known_at).total_seconds() / 3600 for fault in faults if fault in result.found
    ]
    return round(median(max(0.0, hours) for hours in late), 1) if late else None


def repeated(events: Iterable[Row]) -> int:
    """Told transitions that say the same of the same incident once more: there must be none.

    An incident opens once, unless it was resolved meanwhile, and each escalation is worse or wider than what was told.
    """
    last: dict[str, tuple[str, str, frozenset[str]]] = {}
    count = 0
    for row in sorted(events, key=lambda row: row["at"]):
        if row["is_told"]:
            told = row["transition"], row["severity"], frozenset(row["pipeline_ids"])
            count += last.get(row["incident_id"]) == told
            last[row["incident_id"]] = told
    return count


_NAIVE = f"""
WITH usual AS (
  SELECT pipeline_id, 2 * median(duration_seconds) AS limit_seconds
  FROM pipeline_runs WHERE run_kind = 'normal' GROUP BY ALL
)
SELECT update_id || ' {NAIVE_FAILED}' AS key, '{NAIVE_FAILED}' AS rule, end_ts AS at, pipeline_id, pipeline_name
FROM pipeline_runs WHERE run_kind = 'normal' AND status = 'FAILED'
UNION ALL
SELECT update_id || ' {NAIVE_SLOW}', '{NAIVE_SLOW}', end_ts, pipeline_id, pipeline_name
FROM pipeline_runs JOIN usual USING (pipeline_id) WHERE run_kind = 'normal' AND duration_seconds > limit_seconds
UNION ALL
SELECT update_id || ' {NAIVE_ZERO}', '{NAIVE_ZERO}', end_ts, pipeline_id, pipeline_name
FROM pipeline_runs WHERE run_kind = 'normal' AND status = 'COMPLETED' AND rows_written = 0
"""


def naive_alarms(con: duckdb.DuckDBPyConnection, since: datetime) -> list[Alarm]:
    """One message for each failed update, each run over twice the median of all time, each run without rows."""
    rows = con.execute(
        f"SELECT * FROM ({_NAIVE}) n WHERE n.at >= $since ORDER BY n.at, n.key", {"since": since}
    ).fetchall()
    return [Alarm(key, rule, at, (pipeline_id,), str(name)) for key, rule, at, pipeline_id, name in rows]
