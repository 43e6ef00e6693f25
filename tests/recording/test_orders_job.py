"""The example job, with every row that it writes worked out by hand, and what a cycle makes of it."""

from __future__ import annotations

import importlib.util
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from deltalake import DeltaTable

from monitoring_platform.config import Engine, load
from monitoring_platform.health.watch import watch
from monitoring_platform.marts.registry import STOCK
from monitoring_platform.queries import get
from monitoring_platform.recording import ChecksFailed, Report
from monitoring_platform.warehouse.looking import question
from monitoring_platform.warehouse.opening import open_warehouse
from monitoring_platform.warehouse.session import session
from tests.conftest import Site, by

START = datetime(2026, 1, 1, 6, tzinfo=timezone.utc)
TICK = timedelta(seconds=6)


class Ticking:
    """A clock that goes on by 6 seconds each time that it is asked."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        self.now += TICK
        return self.now


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "orders_job.py"
    spec = importlib.util.spec_from_file_location("orders_job", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ran(example: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run that succeeds, then one that fails, then a cycle."""
    folder = tmp_path_factory.mktemp("orders")
    spark, alerts = session(Engine()), list[Report]()
    good = example.orders_job(spark, folder, example.ORDERS, alerts.append, Ticking(START))
    later = START + timedelta(hours=1)
    with pytest.raises(ChecksFailed) as failure:
        example.orders_job(spark, folder, [*example.ORDERS, example.ORDERS[-1]], alerts.append, Ticking(later))
    config = folder / "monitoring.yaml"
    config.write_text("warehouse: {path: ./warehouse}\nsources:\n  - {type: jobs, path: ./records}\n")
    site = Site(folder, open_warehouse(load(config)))
    now = START + timedelta(hours=2)
    site.cycle(now)
    made = watch(site.warehouse, now)
    return {"folder": folder, "good": good, "failure": failure.value, "alerts": alerts, "site": site, "made": made}


def rows(ran: dict[str, Any], table: str) -> list[dict[str, Any]]:
    return list(DeltaTable(str(ran["folder"] / table)).to_pyarrow_table().to_pylist())


def test_what_the_job_writes(ran: dict[str, Any]) -> None:
    """R-OWN-10, R-OWN-12, E-36, E-43: passed and quarantined rows are all rows, a null amount too; a blocked write."""
    run_id = ran["good"].run_id
    assert len(rows(ran, "bronze_orders")) == 10 + 11
    silver = rows(ran, "silver_orders")
    assert by(silver, "order_id", "customer", "amount", "status", "run_id") == sorted(
        [
            (1, "anna", 20.0, "paid", run_id),
            (2, "anna", 30.0, "paid", run_id),
            (3, "ben", 15.5, "paid", run_id),
            (7, "cleo", 12.0, "open", run_id),
            (8, "dora", 50.0, "paid", run_id),
            (9, "dora", 8.0, "sent", run_id),
            (10, "anna", 5.0, "paid", run_id),
        ],
        key=repr,
    )
    assert by(
        rows(ran, "silver_orders_quarantine"), "order_id", "amount", "quality_flag", "failed_checks", "run_id"
    ) == [
        (4, 9.0, "fail", "customer_not_null", run_id),
        (5, -4.0, "fail", "amount_in_range", run_id),
        (6, None, "fail", "amount_in_range", run_id),
    ]
    assert by(rows(ran, "gold_totals"), "customer", "total") == [
        ("anna", 55.0),
        ("ben", 15.5),
        ("cleo", 12.0),
        ("dora", 58.0),
    ]


def test_its_metrics_and_checks(ran: dict[str, Any]) -> None:
    """R-OWN-02 to 04, 13: one row for each run, one for each check, with one run_id."""
    good, bad = sorted(rows(ran, "records/pipeline_metrics"), key=lambda row: row["started_at"])
    assert good == {
        "run_id": ran["good"].run_id,
        "pipeline_name": "gold_orders",
        "pipeline_version": "1.0",
        "started_at": START + TICK,
        "completed_at": good["completed_at"],
        "duration_minutes": round((good["completed_at"] - good["started_at"]).total_seconds() / 60, 2),
        "rows_processed": 10,
        "rows_quarantined": 3,
        "slo_target_minutes": 10,
        "slo_met": True,
        "status": "success",
        "error_message": None,
    }
    assert (bad["status"], bad["slo_met"], bad["rows_processed"], bad["rows_quarantined"]) == (
        "failed",
        False,
        11,
        None,
    )
    assert bad["error_message"] == "ChecksFailed: [CHECKS_FAILED] order_id_unique"
    assert ran["failure"].names == ("order_id_unique",)
    columns = (
        "check_name",
        "column_name",
        "check_type",
        "rows_checked",
        "rows_failed",
        "failure_pct",
        "threshold_pct",
        "passed",
    )
    checks = rows(ran, "records/pipeline_quality_checks")
    assert by([row for row in checks if row["run_id"] == good["run_id"]], *columns) == sorted(
        [
            ("row_count", "*", "volume_check", 10, 0, 0.0, 0.0, True),
            ("order_id_unique", "order_id", "unique_check", 10, 0, 0.0, 0.0, True),
            ("customer_not_null", "customer", "null_check", 10, 1, 10.0, 0.0, False),
            ("amount_in_range", "amount", "range_check", 10, 1, 10.0, 20.0, True),
            ("status_in_set", "status", "set_check", 10, 1, 10.0, 10.0, True),
            ("total_in_range", "total", "range_check", 4, 0, 0.0, 0.0, True),
        ],
        key=repr,
    )
    blocked = [row for row in checks if row["run_id"] == bad["run_id"] and row["check_name"] == "order_id_unique"]
    assert [(row["rows_checked"], row["rows_failed"], row["passed"]) for row in blocked] == [(11, 1, False)]
    assert blocked[0]["failure_pct"] == round(100 / 11, 4)


def test_its_steps_and_alerts(ran: dict[str, Any]) -> None:
    """R-OWN-11, R-OWN-12: rows in and out of each step; the alert names the checks that failed."""
    events = [row for row in rows(ran, "records/pipeline_run_events") if row["run_id"] == ran["good"].run_id]
    assert by(
        [row for row in events if row["rows_in"] is not None], "step", "rows_in", "rows_out", "rows_quarantined"
    ) == [
        ("bronze_orders", 10, 10, None),
        ("gold_totals", 4, 4, None),
        ("silver_orders", 10, 7, 3),
    ]
    told = {check["name"]: check for row in events for check in row["checks"] or ()}
    assert told["amount_in_range"] == {
        "name": "amount_in_range",
        "severity": "warning",
        "action": "warn",
        "rows_unknown": 1,
        "note": "1 rows could not be judged: no value",
    }
    first, second = ran["alerts"]
    assert (first.status, first.failed_checks) == ("success", ("customer_not_null",))
    assert (second.status, second.failed_checks[0]) == ("failed", "order_id_unique")


def test_what_a_cycle_sees(ran: dict[str, Any]) -> None:
    """OWN, SLO-01 and incidents for jobs: beside the pipelines', with the real error."""
    site: Site = ran["site"]
    good, bad = sorted(site.rows("pipeline_runs"), key=lambda row: row["start_ts"])
    assert (good["pipeline_type"], good["status"], good["rows_written"], good["rows_dropped"]) == (
        "JOB",
        "COMPLETED",
        21,
        3,
    )
    assert (bad["status"], bad["rows_written"]) == ("FAILED", 11)
    results = site.rows("expectation_results", update_id=good["update_id"])
    assert by(results, "expectation", "passed_records", "failed_records") == [
        ("amount_in_range", 8, 1),
        ("customer_not_null", 9, 1),
        ("order_id_unique", 10, 0),
        ("row_count", 1, 0),
        ("status_in_set", 9, 1),
        ("total_in_range", 4, 0),
    ]
    (error,) = {row["error_class"] for row in site.rows("pipeline_errors")}
    assert error == "CHECKS_FAILED"
    (incident,) = [row for row in site.rows("incidents") if row["rule"] == "request_failed"]
    assert incident["pipeline_ids"] == ["job:gold_orders"]
    assert "CHECKS_FAILED" in incident["title"] and "order_id_unique" in incident["evidence"]
    met = {row["update_id"]: row["met"] for row in site.rows("slo_results") if row["objective"] == "duration"}
    assert met == {good["update_id"]: True, bad["update_id"]: False}


def ask(ran: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        question(ran["site"].warehouse, get(name).sql, [*STOCK.values()]).to_arrow_table().to_pylist()
    )
    return rows


def test_the_questions_of_the_article(ran: dict[str, Any]) -> None:
    """R-OWN-13 to 17, R-SLO-03, 04, E-44: the stock queries answer for jobs as for pipelines."""
    picture = ask(ran, "full_picture_of_runs")
    assert [(r["check_name"], r["failure_pct"], r["passed"]) for r in picture if r["status"] == "COMPLETED"] == [
        ("customer_not_null", 10.0, False),
        ("row_count", 0.0, True),
        ("total_in_range", 0.0, True),
        ("amount_in_range", 10.0, True),  # of 20 that may fail
        ("order_id_unique", 0.0, True),
        ("status_in_set", 10.0, True),
    ]
    assert [r["slo_met"] for r in picture if r["status"] == "FAILED"] == [False] * 5
    (version,) = ask(ran, "versions_of_jobs")
    assert (version["version"], version["runs"], version["failed_runs"], version["avg_rows_written"]) == (
        "1.0",
        2,
        1,
        16.0,
    )
    assert version["quarantined_pct"] == round(100 * 3 / (3 + 21 + 11), 2)
    assert [(r["layer"], r["jobs"], r["runs"], r["failed_runs"], r["rows_written"]) for r in ask(ran, "layers")] == [
        ("gold", 1, 2, 1, 32)
    ]
    (trend,) = ask(ran, "quarantine_trend")
    assert (trend["rows_dropped"], trend["rows_written"]) == (3, 32)
    (summary,) = ask(ran, "slo_summary_7_days")
    assert (summary["total_runs"], summary["slo_met_count"], summary["slo_breach_count"]) == (2, 1, 1)
    breaches = ask(ran, "slo_breaches_and_failed_rules")
    assert breaches and ran["good"].run_id not in {row["update_id"] for row in breaches}
