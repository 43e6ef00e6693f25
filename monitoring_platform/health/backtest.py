"""Rehearsal on history: the rules evaluated at past times, each on the tables as they were known then.

It is the live evaluation with another clock: the same rules, the same step from findings to incidents. What reads
tables that are kept only as they are now (coverage, updates that no log has) is left out and named.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from monitoring_platform.config import READY_RULES, Settings
from monitoring_platform.health import rules, slo
from monitoring_platform.health.history import LOOKBACK, History
from monitoring_platform.health.incidents import State, lately
from monitoring_platform.health.watch import UPSTREAM, judge
from monitoring_platform.marts.tables.health import INCIDENTS, SLO_RESULTS
from monitoring_platform.warehouse.duck import hold
from monitoring_platform.warehouse.store import Warehouse

Row = dict[str, Any]


@dataclass
class Rehearsal:
    """What would have happened: rows as of `incidents` and `incident_events`, and what could not be rehearsed."""

    incidents: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # rules that could not be evaluated, with the reason

    def told(self, rule: str | None = None) -> list[Row]:
        """The transitions that people would have been told, of one rule or of all."""
        named = {row["incident_id"] for row in self.incidents if rule in (None, row["rule"])}
        return [row for row in self.events if row["is_told"] and row["incident_id"] in named]

    def counts(self) -> list[Row]:
        """For each rule: incidents, pipelines concerned, and messages, most incidents first."""
        found = Counter(row["rule"] for row in self.incidents)
        return [
            {
                "rule": rule,
                "incidents": count,
                "pipelines": len({key for row in self.incidents if row["rule"] == rule for key in row["pipeline_ids"]}),
                "messages": sum(row["severity"] != "info" for row in self.told(rule)),
            }
            for rule, count in found.most_common()
        ]


def missing(here: Rehearsal, there: Rehearsal) -> list[Row]:
    """Incidents of one rehearsal that the other has none of: none with the same fingerprint at the same time."""
    spans: dict[str, list[Row]] = defaultdict(list)
    for row in there.incidents:
        spans[row["fingerprint"]].append(row)
    return [row for row in here.incidents if not any(_overlap(row, other) for other in spans[row["fingerprint"]])]


def _overlap(one: Row, other: Row) -> bool:
    return (one["resolved_at"] is None or other["opened_at"] <= one["resolved_at"]) and (
        other["resolved_at"] is None or one["opened_at"] <= other["resolved_at"]
    )


def times(since: datetime, until: datetime, every: timedelta) -> Iterator[datetime]:
    """The evaluations: `until`, and back from it in equal steps to `since`; oldest first."""
    count = int((until - since) / every)
    return (until - every * place for place in range(count, -1, -1))


def rehearse(
    warehouse: Warehouse,
    since: datetime,
    until: datetime,
    every: timedelta,
    settings: Settings | None = None,
    only: str | None = None,
    progress: Callable[[datetime], None] = lambda _: None,
) -> Rehearsal:
    """Evaluate the rules at each time. Nothing is written, nothing sent.

    `settings`: others than those of the warehouse, to compare; `only`: the one rule to evaluate.
    """
    chosen = settings or warehouse.settings
    left_out = [name for name in READY_RULES if rules.kind(name).now_only]
    names = [name for name in rules.names(chosen) if name not in left_out] if only is None else [only]
    made = Rehearsal(left_out=left_out)
    history = History(warehouse, [*rules.queries(chosen, names), *slo.queries(), UPSTREAM, "pipelines"], until, since)
    hold(history.con, SLO_RESULTS.name, SLO_RESULTS.schema.empty_table())  # all is judged as the settings say
    state = State()
    past: list[Row] = []
    all_incidents: dict[str, Row] = {}
    for now in times(since, until, every):
        con = history.at(now)
        hold(con, INCIDENTS.name, pa.Table.from_pylist(past, INCIDENTS.schema))
        step = judge(con, chosen, state, now, frozenset(), names)
        made.failed |= {row["rule"]: row["error"] for row in step.results if row["error"]}
        made.events += step.events
        all_incidents |= {row["incident_id"]: row for row in step.incidents}
        past = [row for row in all_incidents.values() if not row["resolved_at"] or row["resolved_at"] >= now - LOOKBACK]
        state = State(step.findings, lately(past, chosen, now))
        progress(now)
    made.incidents = sorted(all_incidents.values(), key=lambda row: (row["opened_at"], row["incident_id"]))
    return made
