"""The summary of the day, the reports of the week and the month: when, once, and what is in them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from monitoring_platform.health.notify.delivering import plan_due
from monitoring_platform.health.notify.digests import monthly
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


def test_the_month(desk: Desk) -> None:
    """R-DASH-03, R-RET-04: one whole month with the month before; a report of a past month is asked for by its time."""
    october, november = datetime(2025, 10, 31, 22, tzinfo=timezone.utc), datetime(2025, 11, 15, tzinfo=timezone.utc)
    december = datetime(2025, 12, 1, 0, 30, tzinfo=timezone.utc)
    ended = [
        ("a", "r1", "COMPLETED", 0, november),
        ("a", "r2", "FAILED", 1, november),
        ("b", "r3", "COMPLETED", 1, november),
        ("b", "r4", "FAILED", 1, december),
        ("a", "r5", "COMPLETED", 0, october),
    ]
    columns = ("pipeline_id", "request_id", "outcome", "failed_attempts", "end_ts")
    desk.put("requests", *(dict(zip(columns, row)) for row in ended))
    runs = [("u1", november, 5400.0, 1_500_000), ("u2", november, 1800.0, None), ("u3", october, 3600.0, 1_000)]
    columns = ("update_id", "end_ts", "duration_seconds", "rows_written")
    desk.put("pipeline_runs", *({"pipeline_id": "a", **dict(zip(columns, row))} for row in runs))
    days = [
        (date(2025, 10, 31), 98, 2),
        (date(2025, 11, 1), 99, 1),
        (date(2025, 11, 30), 90, 10),
        (date(2025, 12, 1), 0, 9),
    ]
    columns = ("day", "passed_records", "failed_records")
    keys = {"pipeline_id": "a", "update_id": "u", "dataset": "orders", "expectation": "has_id"}
    desk.put("expectation_days", *({**keys, **dict(zip(columns, row))} for row in days))
    costs = [
        (date(2025, 10, 31), "2.5"),
        (date(2025, 11, 1), "10.25"),
        (date(2025, 11, 30), "1"),
        (date(2025, 12, 1), "7"),
    ]
    desk.put(
        "pipeline_costs",
        *(
            {"cost_id": str(day), "pipeline_id": "a", "usage_date": day, "cost": Decimal(cost), "currency": "USD"}
            for day, cost in costs
        ),
    )
    told = monthly(desk.warehouse, december)
    assert told.title == "Month 2025-11: 33.33 % of requests failed"
    assert told.body.splitlines() == [
        "Requests: 3 ended (the month before 1), of 2 pipelines, 1 succeeded after a retry",
        "Failed: 1 (33.33 %), the month before 0 (0.00 %)",
        "Run time: 2.00 h, the month before 1.00 h",
        "Rows written: 1,500,000, the month before 1,000",
        "Quality: 94.50 % of records passed, the month before 98.00 %",
        "Cost: 11.25 USD, the month before 2.50",
        "Objectives: none judged",
        "Failed most:",
        "- a: 1 of 2 requests",
    ]
    nothing = monthly(desk.warehouse, datetime(2025, 9, 1, tzinfo=timezone.utc))
    assert nothing.title == "Month 2025-08: nothing ended"
    assert "Quality: unknown of records passed, the month before unknown" in nothing.body.splitlines()


def test_a_month_is_sent_on_its_first_day(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """On the first of the month where the people are: in Berlin that is 07:00 UTC in winter and 06:00 in summer."""
    monkeypatch.setenv("OPS", "json://127.0.0.1:1/")
    monthly_one = "  monthly: {at: '08:00', time_zone: Europe/Berlin, channels: [ops]}\n"
    desk = site_with(make_site, "  channels: {ops: '${OPS}'}\n  fallback: [ops]\n" + monthly_one)
    for moment in ("02-28T07:00", "03-01T06:59", "03-01T07:00", "03-01T20:00", "03-31T08:00", "04-01T06:00"):
        desk.tick(datetime.fromisoformat(f"2026-{moment}+00:00"))
    assert [(row["transition"], row["due_at"].isoformat()[:16], row["title"]) for row in desk.rows()] == [
        ("monthly", "2026-03-01T07:00", "Month 2026-02: nothing ended"),
        ("monthly", "2026-04-01T06:00", "Month 2026-03: nothing ended"),
    ]
