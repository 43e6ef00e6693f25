"""What is the consequence of trouble upstream is part of it, and no alarm of its own."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from monitoring_platform.config import Settings
from monitoring_platform.health.incidents import State, Step, step
from monitoring_platform.health.rules import Evaluation, Found, Pipeline

T0 = datetime(2026, 11, 2, tzinfo=timezone.utc)
WATCHED = [Pipeline("up", "up", "ana", {}), Pipeline("down", "down", "bo", {})]
UPSTREAM = {"down": {"up"}}


def at(hours: float) -> datetime:
    return T0 + timedelta(hours=hours)


class Watch:
    """Evaluations one after the other."""

    def __init__(self) -> None:
        self.state = State()
        self.incidents: dict[str, dict[str, Any]] = {}

    def __call__(self, hours: float, failed: float | None = None, empty: float | None = None) -> Step:
        """`failed`, `empty`: when the newest failed request of `up`, the newest empty run of `down` ended."""
        found = {
            "request_failed": [] if failed is None else [_found("request_failed", "up", failed)],
            "rows_zero": [] if empty is None else [_found("rows_zero", "down", empty)],
        }
        evaluations = [Evaluation(rule, rows) for rule, rows in found.items()]
        settings = Settings.model_construct()
        made = step(self.state, evaluations, settings, WATCHED, at(hours), UPSTREAM)
        self.incidents |= {row["incident_id"]: row for row in made.incidents}
        recent = [
            row
            for row in self.incidents.values()
            if row["resolved_at"] is None or at(hours) - row["resolved_at"] <= timedelta(hours=24)
        ]
        self.state = State(made.findings, recent)
        return made


def _found(rule: str, pipeline: str, hours: float) -> Found:
    return Found(rule, pipeline, "", None, at(hours), rule, "error", {})


def _said(made: Step) -> list[tuple[str, list[str]]]:
    return [(row["transition"], row["pipeline_ids"]) for row in made.events]


def test_downstream_stays_folded_while_upstream_fails_again_and_again() -> None:
    """R-NEW-09: the newest failure of the cause is later than the newest empty run, its first one is earlier."""
    watch = Watch()
    assert _said(watch(2, failed=1)) == [("opened", ["up"])]
    assert _said(watch(4, failed=1, empty=3)) == []
    assert _said(watch(6, failed=5, empty=3)) == []
    assert [row["state"] for row in watch.state.findings] == ["open", "folded"]


def test_downstream_that_has_not_run_since_the_repair_is_no_alarm() -> None:
    """R-NEW-09: it is one only if its next run is empty too, or if a day passes without one."""
    watch = Watch()
    watch(2, failed=1)
    watch(4, failed=1, empty=3)
    assert _said(watch(6, empty=3)) == [("resolved", ["up"])]
    assert _said(watch(8, empty=3)) == []
    assert _said(watch(10, empty=9)) == [("opened", ["down"])]

    watch = Watch()
    watch(2, failed=1)
    watch(4, failed=1, empty=3)
    watch(6, empty=3)
    assert _said(watch(30, empty=3)) == []
    assert _said(watch(31, empty=3)) == []
    assert _said(watch(32, empty=3)) == [("opened", ["down"])]


def test_what_began_before_the_trouble_upstream_is_an_alarm_of_its_own() -> None:
    """R-NEW-09: an effect does not come before its cause."""
    watch = Watch()
    assert _said(watch(2, empty=1)) == [("opened", ["down"])]
    assert _said(watch(4, failed=3, empty=1)) == [("opened", ["up"])]
    assert [row["state"] for row in watch.state.findings] == ["open", "open"]


def test_a_burning_budget_beside_its_cause_is_no_alarm_of_its_own() -> None:
    """R-ALERT-05: one incident of one pipeline; alone, of another pipeline, or where it is worse it is told."""
    budget = [Found("budget_burning", pipeline, "", None, at(1), "", "warning", {}) for pipeline in ("up", "down")]
    failed = [_found("request_failed", "up", 1)]
    settings = Settings.model_construct()
    evaluations = [Evaluation("budget_burning", budget), Evaluation("request_failed", failed)]
    made = step(State(), evaluations, settings, WATCHED, at(2), {})
    assert sorted(_said(made)) == [("opened", ["down"]), ("opened", ["up"])]
    assert {(row["rule"], row["pipeline_id"]): row["state"] for row in made.findings} == {
        ("budget_burning", "up"): "folded",
        ("budget_burning", "down"): "open",
        ("request_failed", "up"): "open",
    }
    slow = [Found("run_slow", "up", "", None, at(1), "", "info", {})]
    evaluations = [Evaluation("budget_burning", budget[:1]), Evaluation("run_slow", slow)]
    assert {row["state"] for row in step(State(), evaluations, settings, WATCHED, at(2), {}).findings} == {"open"}
