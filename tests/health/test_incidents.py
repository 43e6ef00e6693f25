"""From findings to incidents: the pure step, by hand-made evaluations."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring_platform.config import Maintenance, Rule, Settings, Snooze, Warehouse
from monitoring_platform.health.incidents import State, Step, step
from monitoring_platform.health.rules import Evaluation, Found, Pipeline

T0 = datetime(2026, 3, 2, 6, tzinfo=timezone.utc)  # a Monday
HOUR = timedelta(hours=1)
FLEET = [
    Pipeline("a", "orders", "sales", {"tier": "gold"}),
    Pipeline("b", "invoices", "finance", {}),
    Pipeline("c", "reports", "finance", {}),
]


def found(rule: str = "request_failed", pipeline: str = "a", **other: Any) -> Found:
    values = {"subject": "", "cause": None, "since": T0 - HOUR, "title": "failed", "severity": "error", "evidence": {}}
    return Found(rule, pipeline, **{**values, **other})


class Clock:
    """Evaluations one after the other; remembers what a cycle would store."""

    def __init__(self, upstream: dict[str, set[str]] | None = None, **sections: Any) -> None:
        self.settings = Settings(warehouse=Warehouse(path="w"), sources=(), **sections)
        self.upstream = upstream or {}
        self.findings: list[dict[str, Any]] = []
        self.incidents: dict[str, dict[str, Any]] = {}
        self.events: list[tuple[str, bool, list[str]]] = []

    def at(
        self,
        hours: float,
        *what: Found,
        failed: dict[str, str] | None = None,
        not_processed: frozenset[str] = frozenset(),
        rules: tuple[str, ...] = ("request_failed", "run_slow", "rows_zero"),
    ) -> Step:
        now = T0 + hours * HOUR
        evaluations = [
            Evaluation(name, [one for one in what if one.rule == name], (failed or {}).get(name)) for name in rules
        ]
        reopen = timedelta(hours=self.settings.notifications.reopen_hours)
        recent = [
            row for row in self.incidents.values() if row["resolved_at"] is None or now - row["resolved_at"] <= reopen
        ]
        made = step(State(self.findings, recent), evaluations, self.settings, FLEET, now, self.upstream, not_processed)
        self.findings = made.findings
        self.incidents |= {row["incident_id"]: row for row in made.incidents}
        self.events += [(event["transition"], event["is_told"], event["pipeline_ids"]) for event in made.events]
        return made

    @property
    def one(self) -> dict[str, Any]:
        (incident,) = self.incidents.values()
        return incident


def test_an_incident_from_its_beginning_to_its_end() -> None:
    """R-NEW-09 opened once, seen again, resolved by itself; times are those of the evaluations."""
    clock = Clock()
    clock.at(0, found(evidence={"first_error": "no such column"}))
    clock.at(1, found())
    clock.at(2)
    assert (clock.one["opened_at"], clock.one["last_seen_at"]) == (T0, T0 + HOUR)
    assert (clock.one["resolved_at"], clock.one["started_at"], clock.one["count"]) == (T0 + 2 * HOUR, T0 - HOUR, 2)
    assert (clock.one["owner"], clock.one["pipeline_ids"], clock.one["pipeline_names"]) == ("sales", ["a"], ["orders"])
    assert clock.events == [("opened", True, ["a"]), ("resolved", True, ["a"])]
    clock.at(3)
    assert len(clock.events) == 2


def test_evidence_says_what_was_found() -> None:
    clock = Clock()
    clock.at(0, found(subject="flow", evidence={"first_error": "x", "minutes": 7.5}))
    (seen,) = orjson.loads(clock.one["evidence"])["found"]
    assert (seen["pipeline_name"], seen["subject"], seen["minutes"], seen["first_error"]) == (
        "orders",
        "flow",
        7.5,
        "x",
    )


def test_one_cause_is_one_incident() -> None:
    """R-NEW-09 one error code over several pipelines; R-PEER-15 a second victim is still announced, once."""
    clock = Clock()
    clock.at(0, found(cause="E1"))
    clock.at(1, found(cause="E1"), found(pipeline="b", cause="E1"))
    clock.at(2, found(cause="E1"), found(pipeline="b", cause="E1"))
    clock.at(3, found(pipeline="b", cause="E1"))
    clock.at(4)
    assert clock.one["pipeline_ids"] == ["a", "b"]
    assert [event[0] for event in clock.events] == ["opened", "escalated", "resolved"]
    assert clock.one["escalated_at"] == T0 + HOUR


def test_another_cause_is_another_incident() -> None:
    clock = Clock()
    clock.at(0, found(cause="E1"), found(pipeline="b", cause="E2"), found(rule="run_slow", cause="E1"))
    assert sorted((row["rule"], row["pipeline_ids"]) for row in clock.incidents.values()) == [
        ("request_failed", ["a"]),
        ("request_failed", ["b"]),
        ("run_slow", ["a"]),
    ]


def test_what_could_not_be_judged_resolves_nothing() -> None:
    """A rule that could not be evaluated, a pipeline whose log could not be read, too many that could not."""
    clock = Clock()
    clock.at(0, found())
    made = clock.at(1, failed={"request_failed": "no such table"})
    assert clock.one["resolved_at"] is None
    assert [row["rule"] for row in made.findings] == ["request_failed"]
    assert next(row for row in made.results if row["rule"] == "request_failed")["error"] == "no such table"
    clock.at(2, not_processed=frozenset("a"))
    assert clock.one["resolved_at"] is None
    clock.at(3, not_processed=frozenset("bc"))  # 2 of 3 pipelines
    assert clock.one["resolved_at"] is None
    clock.at(4)
    assert clock.one["resolved_at"] == T0 + 4 * HOUR


def test_flapping_is_one_incident() -> None:
    """Trouble that returns within 24 hours keeps its incident, silently; that it keeps coming back is told."""
    clock = Clock()
    for turn in range(4):
        clock.at(2 * turn, found())
        clock.at(2 * turn + 1)
    assert clock.one["reopened"] == 3
    assert [event[:2] for event in clock.events] == [
        *(("opened", True), ("resolved", True)),
        *(("opened", False), ("resolved", False)),
        *(("opened", False), ("resolved", False)),
        *(("opened", True), ("resolved", True)),
    ]


def test_the_same_trouble_days_later_is_another_incident() -> None:
    clock = Clock()
    clock.at(0, found())
    clock.at(1)
    clock.at(25, found())
    assert len(clock.incidents) == 1
    clock.at(26)
    clock.at(51, found())
    assert len(clock.incidents) == 2
    assert len({row["fingerprint"] for row in clock.incidents.values()}) == 1


def test_grace() -> None:
    """It has to be found in 2 evaluations in a row, and for 90 minutes."""
    clock = Clock(rules={"request_failed": Rule(for_cycles=2, for_minutes=90)})
    assert clock.at(0, found()).findings[0]["state"] == "pending"
    assert clock.at(1, found()).findings[0]["state"] == "pending"
    assert clock.at(1.5, found()).findings[0]["state"] == "open"
    assert clock.one["opened_at"] == T0 + 1.5 * HOUR
    other = Clock(rules={"request_failed": Rule(for_cycles=2)})
    other.at(0, found())
    other.at(1)
    other.at(2, found())
    assert other.incidents == {}


def test_snooze() -> None:
    """R-NEW-09 a key can be snoozed: nothing opens until then, an open one is not announced again."""
    snooze = Snooze(rules=("request_*",), pipelines=("orders",), until=T0 + 2 * HOUR)
    clock = Clock(snoozes=(snooze,))
    clock.at(0, found(), found(pipeline="b"))
    assert clock.one["pipeline_ids"] == ["b"]
    clock.at(2, found(), found(pipeline="b"))
    assert [event[0] for event in clock.events] == ["opened", "opened"]


def test_maintenance() -> None:
    """What begins in a maintenance window of the pipeline is expected, also after its end."""
    window = Maintenance(start=T0 - 2 * HOUR, end=T0, tags={"tier": "gold"})
    clock = Clock(maintenance=(window,))
    assert [row["state"] for row in clock.at(1, found(), found(pipeline="b")).findings] == ["maintenance", "open"]
    assert [row["state"] for row in clock.at(2, found(since=T0 + HOUR)).findings] == ["open"]


def test_downstream_is_folded_into_its_cause() -> None:
    """c reads b reads a: what follows from a's failure is part of it, and says so."""
    clock = Clock(upstream={"b": {"a"}, "c": {"b"}})
    late = [
        found("rows_zero", "b", since=T0, severity="warning"),
        found("rows_zero", "c", since=T0, severity="warning"),
    ]
    made = clock.at(1, found(), *late)
    assert [(row["pipeline_id"], row["state"]) for row in made.findings] == [
        ("a", "open"),
        ("b", "folded"),
        ("c", "folded"),
    ]
    assert {row["incident_id"] for row in made.findings} == {clock.one["incident_id"]}
    assert clock.one["pipeline_ids"] == ["a"]
    assert orjson.loads(clock.one["evidence"])["downstream"] == ["invoices", "reports"]


def test_what_began_before_is_no_consequence() -> None:
    clock = Clock(upstream={"b": {"a"}})
    clock.at(1, found(since=T0), found("rows_zero", "b", since=T0 - HOUR, severity="warning"))
    assert len(clock.incidents) == 2


def test_pipelines_that_read_each_other() -> None:
    """A circle of lineage: the first to fail is the cause."""
    clock = Clock(upstream={"a": {"b"}, "b": {"a"}})
    clock.at(1, found(since=T0), found(pipeline="b", since=T0 - HOUR))
    assert clock.one["pipeline_ids"] == ["b"]


def test_a_warning_becomes_an_error() -> None:
    """By its own severity, or by its age."""
    clock = Clock()
    clock.at(0, found("run_slow", severity="info"))
    clock.at(1, found("run_slow", severity="warning"))
    clock.at(2, found("run_slow", severity="info"))
    assert (clock.one["severity"], [event[0] for event in clock.events]) == ("warning", ["opened", "escalated"])
    aged = Clock(rules={"run_slow": Rule(escalate_after_minutes=60)})
    for hours in range(4):
        aged.at(hours, found("run_slow", severity="warning"))
    assert (aged.one["severity"], [event[0] for event in aged.events]) == ("error", ["opened", "escalated"])


def test_the_owner_of_a_rule() -> None:
    """R-ALERT-05 other people answer for another kind of trouble."""
    clock = Clock(rules={"run_slow": Rule(owner="platform")})
    clock.at(0, found(), found("run_slow"))
    assert {row["rule"]: row["owner"] for row in clock.incidents.values()} == {
        "request_failed": "sales",
        "run_slow": "platform",
    }


@given(
    st.permutations([found(cause="E"), found(pipeline="b", cause="E"), found("rows_zero", "c"), found("run_slow", "b")])
)
def test_order_does_not_matter(order: list[Found]) -> None:
    straight, shuffled = Clock(upstream={"c": {"a"}}), Clock(upstream={"c": {"a"}})
    one = straight.at(0, *sorted(order, key=repr))
    other = shuffled.at(0, *order)
    assert (one.findings, one.incidents, one.events) == (other.findings, other.incidents, other.events)


@pytest.mark.parametrize("hours", [0, 3])
def test_a_step_that_is_redone_says_the_same(hours: float) -> None:
    """A kill after the events and before the incidents: the next evaluation of the same time makes the same ones."""
    clock, again = Clock(), Clock()
    first, second = clock.at(hours, found()), again.at(hours, found())
    assert (first.events, first.incidents) == (second.events, second.incidents)
