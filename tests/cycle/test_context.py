"""What a cycle learns from a workspace beside the logs: updates, jobs, money; told by the stand-in, worked out by hand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from databricks.sdk.clock import RealClock
from pyspark.errors import AnalysisException

from monitoring_platform.config import load
from monitoring_platform.cycle.context import gather
from monitoring_platform.health.checks import CHECKS, Finding, run
from monitoring_platform.marts.registry import BY_NAME, STOCK
from monitoring_platform.queries import get
from monitoring_platform.sources.workspace import timeline
from monitoring_platform.sources.workspace.client import Workspace as Client
from monitoring_platform.sources.workspace.errors import of_engine
from monitoring_platform.warehouse.looking import question
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import Site, by, is_as_rebuilt
from tests.workspace import Pipeline, Principal, Workspace, logs

NOW = datetime(2026, 1, 10, 12, tzinfo=timezone.utc)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
START = NOW - 2 * HOUR
_MARTS = ("flow_metrics", "pipeline_runs", "requests", "job_matches", "jobs_stats", "pipeline_costs", "missing_updates")


@pytest.fixture(autouse=True)
def few_marts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle of these tests refreshes few marts."""
    monkeypatch.setattr(Site, "marts", [BY_NAME[name] for name in _MARTS])


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "workspace") as made:
        yield made
        made.is_clean()


@pytest.fixture
def monitor(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Principal:
    made = workspace.principal("monitor@example.com")
    workspace.warehouse("w1", [made])
    monkeypatch.setenv("WORKSPACE_TOKEN", str(made.token))
    return made


@pytest.fixture
def site_of(workspace: Workspace, tmp_path: Path) -> Callable[..., Site]:
    """Makes a site over the workspace with more configuration."""

    def make(config: str = "", more: str = "sql_warehouse: w1, ") -> Site:
        file = tmp_path / "monitoring.yaml"
        file.write_text(
            "warehouse: {path: ./warehouse}\n"
            f"sources:\n  - {{type: workspace, name: prod, host: {workspace.host}, {more}token: '${{WORKSPACE_TOKEN}}'}}\n"
            f"{config}",
            encoding="utf-8",
        )
        return Site(tmp_path, open_warehouse(load(file)))

    return make


@pytest.fixture
def sales(workspace: Workspace, monitor: Principal) -> Pipeline:
    """A pipeline with one update, read by the API."""
    made = workspace.pipeline("sales", id="p", tags={"team": "data"}, events=logs.update("p", "sales", START, "u"))
    return made.grant(monitor, "CAN_VIEW")


def found(site: Site, name: str, now: datetime) -> Finding:
    return run(site.warehouse, next(check for check in CHECKS if check.name == name), now)


def grant_timeline(workspace: Workspace, monitor: Principal) -> None:
    workspace.grant_table(monitor, "system.lakeflow.pipeline_update_timeline")


def grant_billing(workspace: Workspace, monitor: Principal) -> None:
    for table in ("usage", "list_prices"):
        workspace.grant_table(monitor, f"system.billing.{table}")


# ---- cadence ----


def test_each_part_has_its_own_cadence(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-PEER-23: at 0, 1, … 6 hours settings are asked for every 2, system tables every 3, job runs every 6."""
    grant_timeline(workspace, monitor)
    every = "every: {settings_hours: 2, system_tables_hours: 3, job_runs_hours: 6}, "
    site = site_of("jobs: {enabled: true}\n", more=f"sql_warehouse: w1, {every}")
    asked: dict[str, list[int]] = {"settings": [], "timeline": [], "job runs": []}
    for hour in range(7):
        workspace.calls.clear()
        site.cycle(NOW + hour * HOUR)
        seen = {
            "settings": any(call.path.endswith("/pipelines/p") for call in workspace.calls),
            "timeline": any("pipeline_update_timeline" in repr(call.body) for call in workspace.calls),
            "job runs": any(call.path.endswith("/jobs/runs/list") for call in workspace.calls),
        }
        for part, is_asked in seen.items():
            asked[part] += [hour] if is_asked else []
    assert asked == {"settings": [0, 2, 4, 6], "timeline": [0, 3, 6], "job runs": [0, 6]}


# ---- updates ----


def test_slices_are_one_update() -> None:
    """R-PEER-10: a 3-slice update is one run; the result is on its last slice only."""

    def part(hour: int, result: str | None = None, **more: Any) -> dict[str, Any]:
        start = datetime(2026, 1, 1, hour, tzinfo=timezone.utc)
        return {
            "pipeline_id": "p",
            "update_id": "u",
            "request_id": "r",
            "update_type": "REFRESH",
            "trigger_type": "JOB_TASK",
            "trigger_details": '{"job_task": {"job_id": "7", "job_task_run_id": "71"}}',
            "result_state": result,
            "period_start_time": start,
            "period_end_time": start + HOUR,
            **more,
        }

    (update,) = timeline.folded([part(3, "COMPLETED"), part(1), part(2)])
    assert (update["created_at"].hour, update["ended_at"].hour, update["state"]) == (1, 4, "COMPLETED")
    assert (update["job_id"], update["task_run_id"], update["known_from"]) == ("7", "71", ["timeline"])
    (scheduled,) = timeline.folded([part(1, trigger_details='{"job_task": {"job_id": "SQL_SCHEDULE"}}')])
    assert scheduled.keys().isdisjoint({"job_id", "ended_at", "state"})  # not said


def test_an_update_that_no_log_has_is_listed(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-NEW-02: of an update known to the API and absent from the log the proof of completeness fails, after an hour."""
    sales.update("lost", START - HOUR, "COMPLETED", ended=START - 50 * MINUTE)
    sales.update("lost-later", START + HOUR, "COMPLETED", ended=START + 65 * MINUTE)
    site = site_of()
    site.cycle(NOW)
    assert by(site.rows("missing_updates"), "update_id", "reason", "state") == [
        ("lost", "before_log", "COMPLETED"),
        ("lost-later", "not_in_log", "COMPLETED"),
    ]
    assert found(site, "no_update_is_missing", NOW).passed  # the log may need a while
    finding = found(site, "no_update_is_missing", NOW + 2 * HOUR)
    assert [(row["update_id"], row["pipeline_name"], row["reason"]) for row in finding.offenders] == [
        ("lost-later", "sales", "not_in_log")
    ]
    sales.add(*logs.update("p", "sales", START + HOUR, "lost-later"))
    site.cycle(NOW + 24 * HOUR)
    assert [row["update_id"] for row in site.rows("missing_updates")] == ["lost"]
    assert found(site, "no_update_is_missing", NOW + 48 * HOUR).passed
    is_as_rebuilt(site, "missing_updates")


def test_a_log_that_nobody_may_read_hides_no_update(
    workspace: Workspace, monitor: Principal, site_of: Callable[..., Site]
) -> None:
    """R-NEW-02: the updates of a pipeline without a readable log are missing, with the remedy of the ledger."""
    made = workspace.pipeline("shut", id="s", events=logs.update("s", "shut", START, "u"))
    made.grant(monitor, "CAN_VIEW")
    site = site_of(more="sql_warehouse: w1, access: [table], ")
    site.cycle(NOW)
    assert by(site.rows("missing_updates"), "pipeline_id", "update_id", "reason") == [("s", "u", "log_not_read")]
    (row,) = found(site, "no_update_is_missing", NOW + 2 * HOUR).offenders
    assert row["log_state"] == "log_not_published" and "publish it" in row["remedy"]


def test_updates_between_two_listings_are_asked_for(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-NEW-02: the listing names 5 updates; of 9 in between, none is overlooked. Where nothing is new nothing is asked."""
    site = site_of(more="")
    site.cycle(NOW)
    for number in range(9):
        sales.update(f"x{number}", START + (10 + number) * MINUTE, "COMPLETED")
    site.cycle(NOW + MINUTE)
    assert len(site.rows("known_updates", pipeline_id="p")) == 10
    asked = len(workspace.called("/p/updates"))
    site.cycle(NOW + 2 * MINUTE)
    assert len(workspace.called("/p/updates")) == asked


def test_without_the_timeline_it_says_so(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """Nobody has to grant system tables: what is done without is a note, no failure."""
    site = site_of()
    site.cycle(NOW)
    row = site.row("context_reads", kind="updates")
    assert row["error"] is None and "without the timeline" in row["note"] and "system.lakeflow" in row["note"]
    assert site.row("known_updates")["known_from"] == ["listing"]
    grant_timeline(workspace, monitor)
    site.cycle(NOW + 2 * HOUR)
    assert site.row("context_reads", kind="updates")["note"] is None
    update = site.row("known_updates")
    assert (update["known_from"], update["state"]) == (["listing", "timeline"], "COMPLETED")
    assert update["ended_at"] == START + 5 * MINUTE


def test_a_workspace_that_fails_loses_nothing(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """E-25: an API failure is named by a check that fails the run, and empties nothing; later it goes on."""
    job = workspace.job(7, "nightly")
    job.run(70, START - MINUTE, NOW - HOUR, ["p"])
    site = site_of("jobs: {enabled: true}\n")
    site.cycle(NOW)
    before = site.rows("jobs_stats")
    assert len(before) == 1
    workspace.principals[monitor.name] = replace(monitor, token="dapi-another")
    site.cycle(NOW + HOUR)
    offenders = found(site, "sources_reachable", NOW).offenders
    assert {row["location"] for row in offenders} >= {"updates", "job_runs"}
    assert site.rows("jobs_stats") == before and len(site.rows("known_updates")) == 1
    workspace.principals[monitor.name] = monitor
    sales.add(*logs.update("p", "sales", NOW + HOUR, "v"))
    job.run(80, NOW + HOUR, NOW + 2 * HOUR, ["p"])
    site.cycle(NOW + 3 * HOUR)
    assert by(site.rows("jobs_stats"), "update_id", "job_run_id") == [("u", "70"), ("v", "80")]
    assert found(site, "sources_reachable", NOW).passed


# ---- jobs ----


def test_jobs_are_not_asked_for_by_default(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-JOB-02: without the flag no call is made; the tables exist, empty."""
    workspace.job(7, "nightly").run(70, START - MINUTE, NOW, ["p"])
    site = site_of()
    site.cycle(NOW)
    assert workspace.called("/jobs/") == []
    assert site.rows("jobs_stats") == [] == site.rows("job_runs")
    assert site.warehouse.exists("jobs_stats") and site.warehouse.exists("job_runs")


def test_the_eleven_columns() -> None:
    """R-JOB-01: names, order and types."""
    text, time = "string", "timestamp[us, tz=UTC]"
    assert [(c.name, str(c.type)) for c in BY_NAME["jobs_stats"].table.columns] == [
        ("pipeline_id", text), ("pipeline_name", text), ("update_id", text), ("job_id", text), ("job_run_id", text),
        ("job_name", text), ("job_run_start_time", time), ("job_run_end_time", time), ("job_run_status", text),
        ("pipeline_tags", text), ("job_tags", text),
    ]  # fmt: skip


def test_the_nearest_run_starts_an_update(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-JOB-03: of runs that name the pipeline the nearest within 5 minutes; an update without partner has no row.

    The update starts at START. Runs: 4 minutes before, 1 minute after (nearest), at once but of another pipeline.
    """
    sales.add(*logs.update("p", "sales", START + HOUR, "alone"))
    job = workspace.job(7, "nightly", team="jobs", prio="1")
    job.run(70, START - 4 * MINUTE, NOW - HOUR, ["p"])
    job.run(80, START + MINUTE, NOW - HOUR, ["q", "p"], result="FAILED")
    workspace.job(8, "other").run(90, START, NOW - HOUR, ["q"])
    workspace.job(9, "late").run(95, START + HOUR + 5 * MINUTE, NOW, ["p"])  # 5 minutes are too many
    site = site_of("jobs: {enabled: true}\n")
    site.cycle(NOW)
    row = site.row("jobs_stats")
    assert row == {
        "pipeline_id": "p",
        "pipeline_name": "sales",
        "update_id": "u",
        "job_id": "7",
        "job_run_id": "80",
        "job_name": "nightly",
        "job_run_start_time": START + MINUTE,
        "job_run_end_time": NOW - HOUR,
        "job_run_status": "FAILED",
        "pipeline_tags": '{"team":"data"}',
        "job_tags": '{"prio":"1","team":"jobs"}',
    }
    match = site.row("job_matches")
    assert (match["method"], match["distance_seconds"], match["task_key"]) == ("nearest", 60.0, "refresh_2")


def test_exact_beats_nearest_and_retries_follow(
    workspace: Workspace, monitor: Principal, site_of: Callable[..., Site]
) -> None:
    """R-JOB-03: the timeline names the run of the task, 20 minutes before; the retry belongs to it. A run that is known
    to have started one update is not taken for the starter of another one near by."""
    grant_timeline(workspace, monitor)
    first = logs.update("p", "sales", START, "first", outcome="FAILED")
    retry = logs.update("p", "sales", START + 30 * MINUTE, "retry")
    for event in first + retry:
        event["origin"]["request_id"] = "r"
    by_hand = logs.update("p", "sales", START - 19 * MINUTE, "other")
    pipeline = workspace.pipeline("sales", id="p", events=by_hand + first + retry).grant(monitor, "CAN_VIEW")
    pipeline.started_by("first", 7, 71)
    job = workspace.job(7, "nightly")
    job.run(70, START - 20 * MINUTE, NOW, ["p"])
    workspace.job(8, "near").run(80, START, NOW, ["p"])
    workspace.job(9, "near the retry").run(90, START + 30 * MINUTE, NOW, ["p"])
    site = site_of("jobs: {enabled: true}\n")
    site.cycle(NOW)
    assert by(site.rows("job_matches"), "update_id", "job_id", "method", "distance_seconds") == [
        ("first", "7", "exact", 1200.0),
        ("retry", "7", "request", 3000.0),
    ]
    is_as_rebuilt(site, "job_matches", "jobs_stats")


def test_both_ways_to_a_job_give_the_same(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-NEW-03, R-JOB-03: three nightly updates, matched by the nearest start; then the timeline may be read, and the
    exact key says the same of each: only the method is another."""
    sales.add(
        *logs.update("p", "sales", START - 24 * HOUR, "before"), *logs.update("p", "sales", START - HOUR, "failed")
    )
    job, other = workspace.job(7, "nightly", team="jobs"), workspace.job(8, "hourly")
    for made, run_id, update, start in (
        (job, 70, "before", START - 24 * HOUR),
        (other, 80, "failed", START - HOUR),
        (job, 90, "u", START),
    ):
        made.run(run_id, start - MINUTE, start + HOUR / 2, ["q", "p"], result="FAILED" if made is other else "SUCCESS")
        sales.started_by(update, made.job_id, run_id + 2)  # the second task of the run
    site = site_of("jobs: {enabled: true}\n")
    site.cycle(NOW)
    by_start = site.rows("jobs_stats")
    assert by(by_start, "update_id", "job_id", "job_run_id") == [
        ("before", "7", "70"),
        ("failed", "8", "80"),
        ("u", "7", "90"),
    ]
    assert {row["method"] for row in site.rows("job_matches")} == {"nearest"}
    grant_timeline(workspace, monitor)
    site.cycle(NOW + 2 * HOUR)
    assert {row["method"] for row in site.rows("job_matches")} == {"exact"}
    assert by(site.rows("jobs_stats"), *by_start[0]) == by(by_start, *by_start[0])
    is_as_rebuilt(site, "job_matches", "jobs_stats")


def test_history_stays_and_open_runs_end(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-JOB-03, E-25: a run that ran is UNKNOWN until its end is known; matches stay when runs leave the look-back."""
    job = workspace.job(7, "nightly")
    made = job.run(70, START, None, ["p"])
    site = site_of("jobs: {enabled: true, lookback_hours: 24}\n")
    site.cycle(NOW)
    assert site.row("jobs_stats")["job_run_status"] == "UNKNOWN"
    made.end, made.result = NOW + HOUR, "SUCCESS"
    site.cycle(NOW + 5 * HOUR)
    row = site.row("jobs_stats")
    assert (row["job_run_status"], row["job_run_end_time"]) == ("SUCCESS", NOW + HOUR)
    job.runs.clear()
    site.cycle(NOW + timedelta(days=9))
    assert site.row("jobs_stats") == row


def test_a_run_of_next_week_that_becomes_known_later(
    workspace: Workspace, monitor: Principal, site_of: Callable[..., Site]
) -> None:
    """R-JOB-03: an update of Sunday 23:58, a run of Monday 0:01 that is told after the update was taken in."""
    monday = datetime(2026, 1, 5, tzinfo=timezone.utc)
    events = logs.update("p", "sales", monday - 2 * MINUTE, "u")
    workspace.pipeline("sales", id="p", events=events).grant(monitor, "CAN_VIEW")
    workspace.job(6, "long ago").run(60, monday - 48 * HOUR, monday, ["p"])
    site = site_of("jobs: {enabled: true}\n")
    site.cycle(monday + HOUR)
    assert site.rows("jobs_stats") == []
    workspace.job(7, "weekly").run(70, monday + MINUTE, monday + HOUR, ["p"])
    site.cycle(monday + 2 * HOUR)
    assert site.row("jobs_stats")["job_name"] == "weekly"


# ---- money ----


def bill(workspace: Workspace, record_id: str, quantity: str, at: datetime = START, **more: Any) -> None:
    metadata = {f"dlt_{name}": more.pop(name, None) for name in ("pipeline_id", "update_id", "maintenance_id")}
    workspace.bill(
        record_id=record_id,
        usage_quantity=Decimal(quantity),
        usage_start_time=at,
        usage_end_time=at + HOUR,
        sku_name="DLT",
        billing_origin_product="DLT",
        usage_metadata=metadata,
        **more,
    )


def test_usage_and_prices_by_sql(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-COST-01, R-PEER-11: exact decimals, our workspaces only, tables of Databricks SQL included; late records and
    retractions of earlier days come with the next look, an hour later at the earliest."""
    grant_billing(workspace, monitor)
    workspace.price(
        sku_name="DLT",
        price_start_time=datetime(2025, 1, 1, tzinfo=timezone.utc),
        pricing={"default": Decimal("0.5"), "effective_list": {"default": Decimal("0.25")}},
    )
    bill(workspace, "1", "0.123456789012345678", pipeline_id="p", update_id="u", custom_tags=[("team", "a")])
    bill(workspace, "2", "2", pipeline_id="mv", update_id="x")  # a materialized view of Databricks SQL
    bill(workspace, "3", "100", pipeline_id="q", update_id="y", workspace_id="99")
    bill(workspace, "4", "100")  # no pipeline
    site = site_of("costs: {enabled: true}\n")
    site.cycle(NOW)
    assert by(site.rows("billing_usage"), "record_id", "usage_quantity", "custom_tags") == [
        ("1", Decimal("0.123456789012345678"), '{"team":"a"}'),
        ("2", Decimal(2), "{}"),
    ]
    assert by(site.rows("pipeline_costs"), "pipeline_id", "outcome", "cost") == [
        ("mv", None, Decimal("0.5")),
        ("p", "COMPLETED", Decimal("0.030864197253")),
    ]
    bill(workspace, "5", "4", pipeline_id="p", update_id="u")
    bill(workspace, "2-", "-2", pipeline_id="mv", update_id="x", record_type="RETRACTION")
    site.cycle(NOW + 30 * MINUTE)
    assert len(site.rows("billing_usage")) == 2
    workspace.usage[-1]["ingestion_date"] = date(2026, 1, 11)
    workspace.changed()
    site.cycle(NOW + 24 * HOUR)
    assert sum(row["cost"] for row in site.rows("pipeline_costs")) == Decimal("1.030864197253")
    is_as_rebuilt(site, "pipeline_costs")


def test_a_missing_grant_is_named_and_stops_nothing(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """One kind that fails is named with what to do; the others are there."""
    workspace.job(7, "nightly").run(70, START, NOW, ["p"])
    site = site_of("jobs: {enabled: true}\ncosts: {enabled: true}\n")
    report = gather(site.warehouse, NOW)
    assert "list_prices of prod" in report.failed and report.written["job_runs"] == 1
    site.cycle(NOW)
    offenders = found(site, "sources_reachable", NOW).offenders
    assert [(row["location"], row["source"]) for row in offenders] == [("list_prices", "prod"), ("usage", "prod")]
    assert all("system.billing" in row["error"] and row["remedy"] for row in offenders)
    assert len(site.rows("jobs_stats")) == 1
    grant_billing(workspace, monitor)
    site.cycle(NOW + MINUTE)
    assert found(site, "sources_reachable", NOW).passed


# ---- hard cases of money, jobs and owners ----


def price_at_one(workspace: Workspace, monitor: Principal) -> None:
    """Usage and prices may be read, and a unit costs 1."""
    grant_billing(workspace, monitor)
    start = datetime(2025, 1, 1, tzinfo=timezone.utc)
    pricing = {"default": Decimal(1), "effective_list": {"default": Decimal(1)}}
    workspace.price(sku_name="DLT", price_start_time=start, pricing=pricing)


def test_a_week_in_which_no_watched_pipeline_is_billed(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-PEER-11 usage of tables of Databricks SQL counts in that week too."""
    price_at_one(workspace, monitor)
    bill(workspace, "1", "1", pipeline_id="p", update_id="u")
    bill(workspace, "2", "2", pipeline_id="mv", update_id="x")
    site = site_of("costs: {enabled: true}\n")
    site.cycle(NOW)
    later = NOW + 480 * HOUR
    bill(workspace, "3", "4", at=later, pipeline_id="mv", update_id="y")
    for days in range(3):
        site.cycle(later + 24 * days * HOUR)
    assert by(site.rows("billing_usage"), "record_id") == [("1",), ("2",), ("3",)]


def test_an_older_log_that_comes_later(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-COST-01 usage from the time of its updates is read then."""
    price_at_one(workspace, monitor)
    bill(workspace, "1", "1", pipeline_id="p", update_id="u")
    old = NOW - 1440 * HOUR
    bill(workspace, "old", "8", at=old, pipeline_id="q", update_id="v")
    site = site_of("costs: {enabled: true}\n")
    site.cycle(NOW)
    assert by(site.rows("billing_usage"), "record_id") == [("1",)]
    workspace.pipeline("hr", id="q", events=logs.update("q", "hr", old, "v")).grant(monitor, "CAN_VIEW")
    for days in range(1, 4):
        site.cycle(NOW + 24 * days * HOUR)
    assert by(site.rows("billing_usage"), "record_id") == [("1",), ("old",)]


def test_a_job_that_we_may_not_see(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-JOB-03 the timeline names it: what it says is told, the rest is unknown."""
    grant_timeline(workspace, monitor)
    sales.started_by("u", 7, 71)
    hidden = workspace.job(7, "nightly")
    hidden.run(70, START - MINUTE, NOW, ["p"])
    hidden.viewers = set()
    workspace.job(8, "other").run(80, START - 24 * HOUR, NOW - 23 * HOUR, ["p"])
    site = site_of("jobs: {enabled: true}\n")
    site.cycle(NOW)
    (row,) = site.rows("jobs_stats")
    assert (row["update_id"], row["job_id"], row["job_run_id"], row["job_name"]) == ("u", "7", None, None)
    assert (row["job_run_status"], row["job_tags"]) == ("UNKNOWN", "{}")


def test_a_run_started_one_update_only(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-JOB-03 of two updates near the start of one run the nearer one is its."""
    sales.add(*logs.update("p", "sales", START + 2 * MINUTE, "second"))
    workspace.job(7, "nightly").run(70, START + 10 * MINUTE / 60, NOW, ["p"])
    site = site_of("jobs: {enabled: true}\n")
    site.cycle(NOW)
    assert by(site.rows("job_matches"), "update_id", "method", "job_run_id") == [("u", "nearest", "70")]


def test_faults_while_context_is_read(
    workspace: Workspace,
    monitor: Principal,
    sales: Pipeline,
    site_of: Callable[..., Site],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every third call fails in another way: nothing is lost and nothing doubled in the end."""
    monkeypatch.setattr(RealClock, "sleep", lambda self, seconds: time.sleep(seconds / 50))
    grant_timeline(workspace, monitor)
    price_at_one(workspace, monitor)
    job = workspace.job(7, "nightly")
    for number in range(20):
        bill(workspace, f"b{number:02}", "1", at=START, pipeline_id="p", update_id="u")
        job.run(100 + number, START - number * HOUR, NOW, ["p"])
    site = site_of("costs: {enabled: true}\njobs: {enabled: true}\n")
    workspace.faults.every(3)
    for turn in range(4):
        site.cycle(NOW + 2 * turn * HOUR)
    assert len(workspace.faults.made) > 10
    assert by(site.rows("billing_usage"), "record_id") == [(f"b{number:02}",) for number in range(20)]
    assert len(site.rows("job_runs")) == 20


def test_the_imports_of_two_owners(workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """R-PEER-02 each reads its own pipelines by event_log(): the same tables, and the ledger says by whom."""
    owners = {"A": workspace.principal("ana@example.com"), "B": workspace.principal("bea@example.com")}
    workspace.warehouse("w1", list(owners.values()))
    for name, owner in owners.items():
        monkeypatch.setenv(name, str(owner.token))
        id_ = f"p{name}"
        events = logs.update(id_, id_, START, f"u{name}")
        made = workspace.pipeline(id_, owner.name, id=id_, catalog="main", target="s", events=events)
        for other in owners.values():
            made.grant(other, "CAN_VIEW")
    entry = (
        "  - {{type: workspace, name: as_{0}, host: {1}, sql_warehouse: w1, access: [function], token: '${{{0}}}'}}\n"
    )
    file = tmp_path / "monitoring.yaml"
    file.write_text(
        "warehouse: {path: ./warehouse}\nsources:\n" + "".join(entry.format(name, workspace.host) for name in owners),
        encoding="utf-8",
    )
    site = Site(tmp_path, open_warehouse(load(file)))
    site.cycle(NOW)
    assert by(site.rows("pipelines"), "pipeline_id", "state", "source", "access_path") == [
        ("pA", "seen", "as_A", "function"),
        ("pB", "seen", "as_B", "function"),
    ]
    assert by(site.rows("pipeline_runs"), "update_id", "status") == [("uA", "COMPLETED"), ("uB", "COMPLETED")]


def test_costs_become_final(
    workspace: Workspace, monitor: Principal, sales: Pipeline, site_of: Callable[..., Site]
) -> None:
    """R-NEW-08, R-PEER-11: provisional while billing may still say more, and while nobody has asked since."""
    price_at_one(workspace, monitor)
    bill(workspace, "1", "1", pipeline_id="p", update_id="u")
    site = site_of("costs: {enabled: true}\n")
    site.cycle(NOW)
    final_at = site.row("pipeline_costs")["final_at"]
    assert NOW < final_at <= NOW + 168 * HOUR

    def is_provisional() -> list[bool]:
        found = question(site.warehouse, get("cost_of_runs").sql, tuple(STOCK.values())).to_arrow_table().to_pylist()
        return [row["is_provisional"] for row in found if row["update_id"] == "u"]

    assert is_provisional() == [True]
    sales.add(*logs.update("p", "sales", final_at + HOUR, "later"))
    workspace.revoke(monitor, "SELECT", "system.billing.usage")
    site.cycle(final_at + 2 * HOUR)
    assert is_provisional() == [True]
    assert site.row("context_reads", kind="usage")["complete_to"] == NOW
    grant_billing(workspace, monitor)
    site.cycle(final_at + 3 * HOUR)
    assert is_provisional() == [False]
    assert site.row("context_reads", kind="usage")["complete_to"] == final_at + 3 * HOUR


@pytest.mark.parametrize("text", ["[SESSION_CLOSED] The session was closed", "[INTERNAL_ERROR] x", "ExecutorLost"])
def test_trouble_of_the_engine_passes(text: str) -> None:
    """It shuts no way to a log; SQL that is refused does."""
    client = Client("prod")
    assert of_engine(client, RuntimeError(text)).transient
    assert not of_engine(client, AnalysisException("[UNRESOLVED_COLUMN] x")).transient
    assert of_engine(client, AnalysisException("[TABLE_OR_VIEW_NOT_FOUND] x")).state == "log_not_published"
