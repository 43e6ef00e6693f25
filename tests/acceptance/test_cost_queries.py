"""The stock queries about money and jobs, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from monitoring_platform.cycle.context import keep
from monitoring_platform.marts.registry import BY_NAME, STOCK
from monitoring_platform.queries import get
from monitoring_platform.warehouse.contracts import CONTEXT_TABLES, JOB_RUNS, KNOWN_UPDATES
from monitoring_platform.warehouse.looking import question
from tests.acceptance.test_queries import only
from tests.conftest import Site, event, flow, state
from tests.marts.test_costs import CONFIG, export, price, used

HOUR = 3600


@pytest.fixture(autouse=True)
def few_marts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle of these tests refreshes few marts."""
    names = ("flow_metrics", "pipeline_runs", "flow_hours", "failures", "requests", "daily_trends")
    context = ("job_matches", "pipeline_costs", "missing_updates")
    monkeypatch.setattr(Site, "marts", [BY_NAME[name] for name in (*names, *context)])


@pytest.fixture
def billed(make_site: Callable[..., Site]) -> Site:
    """A request of 2026-01-01, 0:00: 2 DBU for an attempt that failed, 3 for its retry, which wrote 1.5 million rows;
    0.5 for maintenance. One DBU is 0.30 USD."""
    site = make_site(config=CONFIG)
    (site.folder / "billing").mkdir()
    rows = {"status": "COMPLETED", "metrics": {"num_output_rows": 1_500_000}}
    site.write(
        "a.jsonl",
        event("1", 0, "create_update", {"cause": "JOB_TASK"}, update_id="u", request_id="r"),
        state("2", 10, "FAILED", update_id="u", request_id="r", level="ERROR", message="[A.B] broken"),
        state("3", 60, "RUNNING", update_id="v", request_id="r"),
        flow("4", 70, "f", rows, update_id="v", request_id="r"),
        state("5", 90, "COMPLETED", update_id="v", request_id="r"),
        state("6", HOUR, "COMPLETED", pipeline_id="q", pipeline_name="other", update_id="w"),
    )
    export(
        site,
        "usage.csv",
        used("1", "2"),
        used("2", "3", dlt_update_id="v"),
        used("3", "0.5", dlt_update_id="", dlt_maintenance_id="m"),
        used("4", "1", dlt_pipeline_id="q", dlt_update_id="w"),
        used("5", "7", dlt_pipeline_id="q", dlt_update_id="w", sku_name="NEW"),
    )
    export(site, "prices.csv", price("0.30"))
    return site


def ask(site: Site, name: str) -> list[dict[str, Any]]:
    found = question(site.warehouse, get(name).sql, tuple(STOCK.values())).to_arrow_table().to_pylist()
    return list(found)


def test_cost_beside_rows(billed: Site) -> None:
    """R-COST-02: 5.5 DBU are 1.65 USD; for 1.5 million rows that is 1.10 a million. Unknown where a part has no price."""
    billed.cycle()
    columns = ("pipeline_id", "cost", "rows_written", "cost_per_million_rows", "is_partly_unpriced", "is_provisional")
    assert only(ask(billed, "cost_and_rows"), *columns) == [
        ("p", Decimal("1.65"), 1_500_000, 1.1, False, True),
        ("q", None, None, None, True, True),
    ]


def test_no_rows_no_ratio(billed: Site) -> None:
    """R-COST-02: NULL for 0 rows."""
    billed.write(
        "a.jsonl",
        flow(
            "7", HOUR, "f", {"status": "COMPLETED", "metrics": {"num_output_rows": 0}}, pipeline_id="q", update_id="w"
        ),
    )
    export(billed, "prices-2.csv", price("1", sku_name="NEW"))
    billed.cycle()
    row = next(row for row in ask(billed, "cost_and_rows") if row["pipeline_id"] == "q")
    assert (row["cost"], row["rows_written"], row["cost_per_million_rows"]) == (Decimal("7.3"), 0, None)


def test_runs_requests_and_failed_attempts(billed: Site) -> None:
    """R-NEW-08: per update, per request, per million rows, of failed attempts: 0.60 of 1.65 are 36.4 %."""
    billed.cycle()
    assert only(
        ask(billed, "cost_of_runs"), "update_id", "status", "cost", "cost_per_million_rows", "unpriced_reason"
    ) == [
        ("v", "COMPLETED", Decimal("0.9"), 0.6, None),
        ("u", "FAILED", Decimal("0.6"), None, None),
        ("w", "COMPLETED", None, None, "no price"),
    ]
    first = ask(billed, "cost_of_requests")[0]
    assert (first["attempts"], first["cost"], first["cost_of_failed_attempts"]) == (2, Decimal("1.5"), Decimal("0.6"))
    assert first["cost_per_million_rows"] == 1.0
    assert only(
        ask(billed, "cost_of_failures"), "pipeline_id", "cost_of_failed_attempts", "failed_attempts", "failed_pct"
    ) == [("p", Decimal("0.6"), 1, 36.4)]


def test_outcomes_add_up(billed: Site) -> None:
    """R-NEW-08, R-COST-01: completed + failed + other updates + maintenance + other = cost = 6.5 DBU at 0.30."""
    billed.cycle()
    rows = ask(billed, "monthly_costs")
    parts = ("completed", "failed", "other_updates", "maintenance", "other")
    assert all(row["cost"] == sum(row[part] or 0 for part in parts) for row in rows)
    assert sum(row["cost"] for row in rows) == Decimal("1.95")
    partly = [(row["pipeline_id"], row["is_partly_unpriced"], row["cost_per_million_rows"] is None) for row in rows]
    assert sorted(partly) == [("p", False, False), ("q", True, True)]
    assert only(ask(billed, "dearest_pipelines"), "pipeline_id", "cost", "share_pct", "maintenance", "products") == [
        ("p", Decimal("1.65"), 84.6, Decimal("0.15"), "DLT"),
        ("q", Decimal("0.3"), 15.4, None, "DLT"),
    ]
    assert only(ask(billed, "unpriced_usage"), "sku_name", "unpriced_reason", "usage_quantity") == [
        ("NEW", "no price", Decimal(7))
    ]


def test_the_largest_increase(billed: Site) -> None:
    """R-PEER-17: 1.65 USD in one week, then 3.00 in the next: 1.35 more, 81.8 %. Days that are not final do not count."""

    def on(day: str, number: str, quantity: str) -> dict[str, Any]:
        return used(
            number, quantity, usage_date=day, usage_start_time=f"{day}T01:00:00Z", usage_end_time=f"{day}T02:00:00Z"
        )

    export(billed, "usage-2.csv", on("2026-01-08", "8", "10"), on("2026-01-13", "9", "1000"))
    billed.write("a.jsonl", {**state("9", 0, "RUNNING", update_id="now"), "timestamp": "2026-01-13T12:00:00Z"})
    billed.cycle(datetime(2026, 1, 13, 12, tzinfo=timezone.utc))
    (row,) = ask(billed, "cost_increase")
    assert (row["cost"], row["cost_before"], row["increase"], row["increase_pct"]) == (
        Decimal(3),
        Decimal("1.65"),
        Decimal("1.35"),
        81.8,
    )


def test_jobs_and_missing_updates(billed: Site) -> None:
    """R-JOB-03, R-NEW-02: the job behind the failed update with its root error; the update that no log has, and why."""
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    billed.warehouse.create(CONTEXT_TABLES)
    run = {"job_run_id": "70", "task_run_id": "71", "pipeline_id": "p", "started_at": start, "run_start_time": start}
    named = {"job_id": "7", "job_name": "nightly", "job_tags": "{}", "pipeline_tags": "{}", "result_state": "FAILED"}
    keep(billed.warehouse, JOB_RUNS, pa.Table.from_pylist([{**run, **named}], JOB_RUNS.schema))
    lost = {
        "pipeline_id": "p",
        "update_id": "lost",
        "created_at": start + timedelta(hours=2),
        "known_from": ["listing"],
    }
    keep(
        billed.warehouse, KNOWN_UPDATES, pa.Table.from_pylist([{**lost, "first_known_at": start}], KNOWN_UPDATES.schema)
    )
    billed.cycle()
    (job,) = ask(billed, "jobs_behind_failures")
    assert (job["job_name"], job["failed_updates"], job["known_by"], job["last_error"]) == (
        "nightly",
        1,
        "nearest",
        "[A.B] broken",
    )
    (missing,) = ask(billed, "updates_that_no_log_has")
    assert (missing["update_id"], missing["reason"], missing["log_state"]) == ("lost", "not_in_log", "seen")
