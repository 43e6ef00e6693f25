"""The summary of the day and the report of the week: when, once, and what is in them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone

import pytest

from monitoring_platform.health.notify.delivering import plan_due
from tests.conftest import Site
from tests.health.notify.desk import T0, Desk, at, site_with

BOTH = """  channels: {ops: '${OPS}', boss: '${OPS}'}
  fallback: [ops]
  daily: {at: '08:00', time_zone: Europe/Berlin, channels: [ops]}
  weekly: {at: '09:00', weekdays: [mon], channels: [ops, boss]}
"""


@pytest.fixture
def desk(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setenv("OPS", "json://127.0.0.1:1/")
    return site_with(make_site, BOTH)


def test_once_for_a_local_day(desk: Desk) -> None:
    """At 08:00 in Berlin, before and after the clocks change; the weekly one on Mondays, to each of its channels."""
    for moment in ("28T06:59", "28T07:00", "28T12:00", "29T05:59", "29T06:00", "30T10:00"):
        desk.tick(datetime.fromisoformat(f"2026-03-{moment}+00:00"))
    assert [(row["transition"], row["channel"], row["due_at"].isoformat()[:16]) for row in desk.rows()] == [
        ("daily", "ops", "2026-03-27T07:00"),  # less than a day late
        ("daily", "ops", "2026-03-28T07:00"),
        ("daily", "ops", "2026-03-29T06:00"),
        ("daily", "ops", "2026-03-30T06:00"),
        ("weekly", "boss", "2026-03-30T09:00"),
        ("weekly", "ops", "2026-03-30T09:00"),
    ]


def test_the_day(desk: Desk) -> None:
    """S1's daily summary: what is open, what changed, what is not seen, how requests went."""
    desk.happened("opened", at(-3000), "old")
    desk.happened("resolved", at(-2000), "old")
    desk.happened("opened", at(-600), "i1", severity="warning", title="0 rows, usually 100")
    desk.happened("opened", at(-1500), "i2", ("orders", "stock"))
    desk.happened("opened", at(-500), "i3")
    desk.happened("resolved", at(-400), "i3")
    desk.put(
        "pipelines",
        {"pipeline_id": "a", "pipeline_name": "lost", "state": "unreadable"},
        {"pipeline_id": "b", "pipeline_name": "fine", "state": "seen"},
    )
    ended = [
        ("r1", "COMPLETED", 0, -310),
        ("r2", "COMPLETED", 2, -320),
        ("r3", "FAILED", 1, -330),
        ("r4", "FAILED", 1, -2000),
        ("r5", "FAILED", 1, -10),
    ]
    desk.put(
        "requests",
        *(
            {
                "pipeline_id": "a",
                "request_id": key,
                "outcome": outcome,
                "failed_attempts": failed,
                "end_ts": at(minutes),
            }
            for key, outcome, failed, minutes in ended
        ),
    )
    plan_due(desk.warehouse, T0)
    (row,) = desk.rows(transition="daily")
    assert row["transition_at"] == datetime(2026, 3, 10, 7, tzinfo=timezone.utc)
    assert row["title"] == "Today: 2 open, 1 of them errors, 1 not seen"
    assert row["body"].splitlines() == [
        "24 hours up to 2026-03-10 07:00 UTC",
        "Incidents: 3 opened, 1 resolved, 2 open",
        "- error: orders, stock: failed: AnalysisException (for 20 h 0 min)",
        "- warning: orders: 0 rows, usually 100 (for 5 h 0 min)",
        "Requests: 3 ended, of 1 pipelines, 1 failed, 1 succeeded after a retry",
        "Not seen: 1",
        "- lost: unreadable",
    ]


def test_the_week(desk: Desk) -> None:
    """S1's weekly quality report with the week before, and S4's objectives of 7 days."""
    monday = datetime(2026, 3, 16, 9, tzinfo=timezone.utc)
    rates = [(date(2026, 3, 2), 1000, 0, 100.0, None), (date(2026, 3, 9), 970, 30, 97.0, 100.0)]
    desk.put(
        "weekly_quality",
        *(
            {
                "pipeline_id": "a",
                "week_start": week,
                "dataset": "orders",
                "expectation": "has_id",
                "passed_records": passed,
                "failed_records": failed,
                "pass_rate_pct": rate,
                "previous_week_pass_rate_pct": before,
                "change_points": None if before is None else rate - before,
            }
            for week, passed, failed, rate, before in rates
        ),
    )
    desk.put("pipelines", {"pipeline_id": "a", "pipeline_name": "sales", "state": "seen"})
    desk.put(
        "slo_results",
        *(
            {
                "pipeline_id": "a",
                "pipeline_name": "sales",
                "objective": "duration",
                "occurrence_id": str(number),
                "at": monday - timedelta(days=number),
                "met": met,
            }
            for number, met in enumerate([True, False, True, True, None, True, True, False])
        ),
    )
    plan_due(desk.warehouse, monday)
    row = desk.rows(transition="weekly")[0]
    assert row["title"] == "Week of 2026-03-09: 97.00 % of records passed"
    assert row["body"].splitlines() == [
        "Quality: 1 expectations, 97.00 % passed, the week before 100.00 %",
        "- sales orders.has_id: 97.00 %, the week before 100.00 %, 30 failed",
        "Objectives in the last 7 days:",
        "- duration: met 5 of 6 (83.33 %)",
        "Missed most:",
        "- sales, duration: 1 of 6",
    ]


def test_a_week_without_anything(desk: Desk) -> None:
    """Unknown is not zero."""
    plan_due(desk.warehouse, datetime(2026, 3, 16, 9, tzinfo=timezone.utc))
    row = desk.rows(transition="weekly")[0]
    assert row["title"] == "Week of 2026-03-09: nothing judged"
    assert row["body"].splitlines() == ["Quality: 0 expectations", "Objectives in the last 7 days: none judged"]
