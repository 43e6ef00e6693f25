"""Who is told, when, in which words. Pure: no warehouse but where rows of several plans meet."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import orjson
import pytest

from monitoring_platform.config import Settings
from monitoring_platform.health.notify import messages
from monitoring_platform.health.notify.delivering import grouped, plan_due
from monitoring_platform.health.notify.planning import plan
from tests.conftest import Site
from tests.health.notify.desk import T0, at, site_with
from tests.health.notify.receivers import Web

CHANNELS = "  channels: {chat: '${A}', mail: '${A}', pager: '${A}'}\n  fallback: [mail]\n"
ROUTES = """  routes:
    - {severities: [error], channels: [pager, chat]}
    - {owners: ['finance*'], channels: [chat]}
    - {tags: {tier: gold}, rules: [pass_rate_low], channels: [mail]}
"""


@pytest.fixture
def settings(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    monkeypatch.setenv("A", "json://127.0.0.1:1/")
    made = iter("abcdefgh")
    return lambda notifications, rest="": (
        site_with(make_site, CHANNELS + notifications, rest, name=next(made)).warehouse.settings
    )


def event(transition: str = "opened", when: datetime = T0, **changed: Any) -> dict[str, Any]:
    """A transition as `plan` takes it."""
    pipelines = changed.pop("pipelines", ["orders"])
    found = {"pipeline_id": "id-orders", "pipeline_name": pipelines[0], **changed.pop("found", {})}
    return {
        "incident_id": "i1",
        "at": when,
        "transition": transition,
        "severity": "warning",
        "pipeline_ids": [f"id-{name}" for name in pipelines],
        "names": {f"id-{name}": name for name in pipelines},
        "title": "82.4 min, usually 30.1 min",
        "rule": "run_slow",
        "owner": None,
        "started_at": T0 - timedelta(minutes=48),
        "opened_at": T0,
        "severity_before": None,
        "pipeline_ids_before": None,
        "evidence": orjson.dumps({"found": [found], "found_in_all": 1, **changed.pop("evidence", {})}).decode(),
        **changed,
    }


@pytest.mark.parametrize(
    ("changed", "channels"),
    [
        ({"severity": "error"}, ["pager", "chat"]),
        ({"severity": "error", "owner": "finance-eu"}, ["pager", "chat"]),  # each channel once
        ({"owner": "finance-eu"}, ["chat"]),
        ({"rule": "pass_rate_low"}, ["mail"]),  # by its tag
        ({}, ["mail"]),  # no route: the fallback
        ({"severity": "info"}, []),  # in the digest
        ({"severity": "info", "owner": "finance-eu"}, []),
    ],
)
def test_routes(settings: Callable[..., Settings], changed: dict[str, Any], channels: list[str]) -> None:
    """R-PEER-15: all routes that fit, each channel once, else the fallback; information only where asked for."""
    rows = plan([event(**changed)], {}, {"id-orders": {"tier": "gold"}}, settings(ROUTES))
    assert [row["channel"] for row in rows] == channels


def test_separate_people_for_late_and_for_bad(settings: Callable[..., Settings]) -> None:
    """R-ALERT-05: one run with a missed deadline and a failed expectation is two incidents with routes of their own."""
    routes = (
        "  routes:\n    - {rules: [deadline_*], channels: [pager]}\n    - {rules: [pass_rate_*], channels: [chat]}\n"
    )
    late, bad = event(rule="deadline_missed"), event(rule="pass_rate_low", incident_id="i2")
    rows = plan([late, bad], {}, {}, settings(routes))
    assert [(row["incident_id"], row["channel"]) for row in rows] == [("i1", "pager"), ("i2", "chat")]


def test_information_where_a_route_names_it(settings: Callable[..., Settings]) -> None:
    rows = plan([event(severity="info")], {}, {}, settings("  routes: [{severities: [info], channels: [chat]}]\n"))
    assert [row["channel"] for row in rows] == ["chat"]


def test_the_end_is_told_to_those_who_know(settings: Callable[..., Settings]) -> None:
    """Whatever routes would say now: those who heard that it began or got worse, and nobody else."""
    events = [
        event(owner="finance"),
        event("escalated", at(5), severity="error"),
        event("resolved", at(9), severity="error"),
        event("resolved", at(9), incident_id="i2", severity="error"),
        event("resolved", at(9), incident_id="i3"),
    ]
    rows = plan(events, {"i2": {"mail", "no longer configured"}}, {}, settings(ROUTES))
    assert [(row["incident_id"], row["transition"], row["channel"]) for row in rows] == [
        ("i1", "opened", "chat"),
        ("i1", "escalated", "pager"),
        ("i1", "escalated", "chat"),
        ("i1", "resolved", "chat"),
        ("i1", "resolved", "pager"),
        ("i2", "resolved", "mail"),
    ]


def test_planning_twice_gives_the_same(settings: Callable[..., Settings]) -> None:
    found = settings(ROUTES)
    twice = [plan([event(severity="error")], {}, {}, found) for _ in range(2)]
    assert twice[0] == twice[1]
    assert len({row["delivery_id"] for row in twice[0]}) == 2


QUIET = "  quiet_hours: {from: '22:00', to: '07:00', time_zone: Europe/Berlin}\n"


@pytest.mark.parametrize(
    ("severity", "when", "due"),
    [
        ("warning", "2026-03-28T21:30:00Z", "2026-03-29T05:00:00Z"),  # clocks go forward in that night
        ("warning", "2026-10-24T20:30:00Z", "2026-10-25T06:00:00Z"),  # and back in that one
        ("warning", "2026-10-25T01:30:00Z", "2026-10-25T06:00:00Z"),  # 02:30 for the second time
        ("warning", "2026-03-28T20:59:00Z", "2026-03-28T20:59:00Z"),
        ("error", "2026-03-28T21:30:00Z", "2026-03-28T21:30:00Z"),
    ],
)
def test_quiet_hours(settings: Callable[..., Settings], severity: str, when: str, due: str) -> None:
    moment = datetime.fromisoformat(when.replace("Z", "+00:00"))
    (row,) = plan([event(when=moment, severity=severity)], {}, {}, settings(QUIET))
    assert row["due_at"].astimezone(timezone.utc).isoformat().replace("+00:00", "Z") == due


def test_what_got_worse_at_night_is_told_from_its_beginning(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning waits for the morning, unless it becomes an error: then both are told, in their order."""
    with Web() as web:
        monkeypatch.setenv("OPS", f"json://127.0.0.1:{web.port}/")
        desk = site_with(
            make_site,
            "  channels: {ops: '${OPS}'}\n  fallback: [ops]\n  quiet_hours: {from: '11:00', to: '18:00'}\n",
        )
        for incident in ("i1", "i2"):
            desk.happened("opened", T0, incident, severity="warning")
        desk.tick(at(1))
        assert not web.taken
        desk.happened("escalated", at(30), "i1")
        desk.tick(at(31))
        assert [title.split(" ")[0] for title in web.titles] == ["WARNING", "WORSE,"]
        desk.tick(at(361))
        assert len(web.taken) == 3
        assert all(row["sent_at"] >= row["due_at"] for row in desk.rows())


def test_old_transitions_are_not_told(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what happened before the last 7 days nothing is planned; nor of what is not to be told."""
    monkeypatch.setenv("OPS", "json://127.0.0.1:1/")
    desk = site_with(make_site, "  channels: {ops: '${OPS}'}\n  fallback: [ops]\n")
    desk.happened("opened", T0 - timedelta(days=8), "old")
    desk.happened("opened", T0 - timedelta(days=6), "new")
    desk.happened("opened", T0, "flap", is_told=False)
    assert [plan_due(desk.warehouse, at(minute)) for minute in (1, 2)] == [1, 0]
    assert [row["incident_id"] for row in desk.rows()] == ["new"]


def test_grouped() -> None:
    rows = [{"n": number} for number in range(43)]
    assert [len(group) for group in grouped(rows, 4)] == [1, 1, 1, 40]
    assert [len(group) for group in grouped(rows[:4], 4)] == [1, 1, 1, 1]
    assert [len(group) for group in grouped(rows, 1)] == [43]
    assert grouped(rows, 0) == []


def test_the_words_of_a_beginning() -> None:
    """R-ALERT-06: what, since when in both zones, how bad against the usual, run, error, what to do."""
    found = {
        "since": "2026-03-10T11:12:00Z",
        "update_id": "u-7",
        "minutes": 82.4,
        "usual_minutes": 30.1,
        "times_usual": 2.7,
        "still_running": True,
        "basis": "10 runs on Tuesdays",
    }
    told = messages.of_incident(event(found=found, evidence={"downstream": ["a", "b", "c", "d"]}), "Europe/Berlin")
    assert told.title == "WARNING orders: 82.4 min, usually 30.1 min"
    assert told.body.splitlines() == [
        "Since 2026-03-10 11:12 UTC (12:12 Europe/Berlin), for 48 min so far",
        "minutes 82.4, usual minutes 30.1, times usual 2.7, still running yes (10 runs on Tuesdays)",
        "Run u-7",
        "Downstream: a, b, c and 1 more",
        "To do: `monitoring-platform query slower_by_which_flow` says which flow takes longer",
    ]


def test_times_and_remedies_of_the_evidence() -> None:
    """Times are told as people read them; where a rule knows what to do, its words are taken."""
    found = {
        "due_at": "2026-03-10T05:00:00Z",
        "expected_at": "2026-03-10T05:40:12.5Z",
        "remedy": "GRANT it",
        "remedy_sql": "x",
    }
    told = messages.of_incident(event(found=found), "Europe/Berlin")
    assert told.body.splitlines()[1:] == [
        "due at 2026-03-10 05:00 UTC (06:00 Europe/Berlin), expected at 2026-03-10 05:40 UTC (06:40 Europe/Berlin)",
        "To do: GRANT it",
    ]


def test_the_words_of_more_pipelines_and_of_getting_worse() -> None:
    names = [f"p{number}" for number in range(10)]
    worse = event(
        "escalated",
        pipelines=names,
        severity="error",
        severity_before="warning",
        pipeline_ids_before=[f"id-{name}" for name in names[:8]],
        evidence={"found_in_all": 10},
    )
    told = messages.of_incident(worse, "UTC")
    assert told.title == "WORSE, ERROR p0, p1, p2 and 7 more: 82.4 min, usually 30.1 min"
    assert told.body.splitlines() == [
        "Now also: p8, p9",
        "Was: warning",
        "Since 2026-03-10 11:12 UTC, for 48 min so far",
        "First: p0",
        "and 4 more",
        "To do: `monitoring-platform query slower_by_which_flow` says which flow takes longer",
    ]


def test_failed_checks_are_listed() -> None:
    """R-ALERT-06: all that fail, each with its rate; of many the first few."""
    found = [
        {
            "pipeline_id": "id-orders",
            "pipeline_name": "orders",
            "subject": f"sales.rule{n}",
            "title": f"rule{n} passes 9{n}.00 %",
        }
        for n in range(8)
    ]
    failed = event(rule="pass_rate_low", title="rule0 passes 90.00 %", evidence={"found": found, "found_in_all": 8})
    told = messages.of_incident(failed, "UTC")
    assert told.body.splitlines()[1:-1] == [
        "At: sales.rule0",
        *(f"Also: sales.rule{n}: rule{n} passes 9{n}.00 %" for n in range(1, 6)),
        "and 2 more",
    ]


def test_the_words_of_an_end() -> None:
    told = messages.of_incident(event("resolved", T0 + timedelta(days=1)), "UTC")
    assert told.title == "RESOLVED orders: 82.4 min, usually 30.1 min"
    assert told.body == "Lasted 1 d 0 h, from 2026-03-10 11:12 UTC to 2026-03-11 12:00 UTC."


def test_every_ready_made_rule_says_what_to_do() -> None:
    from monitoring_platform.config import READY_RULES
    from monitoring_platform.queries import stock

    assert messages._ANSWERS.keys() == READY_RULES.keys()
    for answer in messages._ANSWERS.values():
        for name in (part.split("`")[0] for part in answer.split("`query ")[1:]):
            assert name in stock()


def test_the_documented_configuration(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of docs/notifications.md is one that loads."""
    text = (Path(__file__).parents[3] / "docs" / "notifications.md").read_text(encoding="utf-8")
    for name in ("SLACK_URL", "FINANCE_MAIL", "PAGERDUTY_URL", "HEARTBEAT_URL"):
        monkeypatch.setenv(name, "https://example.com/")
    settings = make_site(config=text.split("```yaml\n")[1].split("```")[0]).warehouse.settings
    assert list(settings.notifications.channels) == ["data-team", "finance", "on-call"]
    (row,) = plan([event(owner="finance-eu")], {}, {}, settings)
    assert row["channel"] == "finance"
