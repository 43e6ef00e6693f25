"""The stock queries: each runs on the demo fleet, the trickier ones answer what was worked out by hand."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from monitoring_platform.cli import app
from monitoring_platform.cycle.ingest import ingest
from monitoring_platform.cycle.union import unite
from monitoring_platform.health.watch import watch
from monitoring_platform.marts.refresh import MARTS, Refresher
from monitoring_platform.marts.registry import STOCK
from monitoring_platform.queries import Query, UnknownQuery, get, index, stock
from monitoring_platform.warehouse.looking import question
from monitoring_platform.warehouse.store import Warehouse
from tests.conftest import FLEET_END, NOW, Site, event, flow, made_fleet, state

ROOT = Path(__file__).parents[2]
ALL = stock()
#: The demo fleet has no pipeline that these are about, no workspace that would say it, and here no job that is noted.
WITHOUT_ANSWER = frozenset(
    {
        "low_utilisation",
        "jobs_behind_failures",
        "updates_that_no_log_has",
        "versions_of_jobs",
        "cycles_of_the_monitoring",
    }
)
HOUR, DAY = 3600, 86400


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Warehouse]:
    """A small fleet with every plant, after one cycle, and the truth about it."""
    truth, warehouse = made_fleet(tmp_path_factory.mktemp("demo"), pipelines=30)
    watch(warehouse, FLEET_END)
    return truth, warehouse


@pytest.fixture(scope="module")
def demo(fleet: tuple[dict[str, Any], Warehouse]) -> Warehouse:
    """Its tables."""
    return fleet[1]


@pytest.fixture(scope="module")
def planted(fleet: tuple[dict[str, Any], Warehouse]) -> dict[str, dict[str, Any]]:
    """Its planted problems by kind."""
    return {plant["kind"]: plant for plant in fleet[0]["planted"]}


def ask(warehouse: Warehouse, name: str) -> list[dict[str, Any]]:
    """The answer to a stock query, as `query` gets it."""
    rows: list[dict[str, Any]] = question(warehouse, get(name).sql, [*STOCK.values()]).to_arrow_table().to_pylist()
    return rows


def fill(site: Site, *queries: str, now: datetime = NOW) -> None:
    """One cycle that computes what these queries read, and no more."""
    ingest(site.warehouse, now)
    unite(site.warehouse)
    wanted = {mart.name for mart in MARTS for name in queries if re.search(rf"\b{mart.name}\b", get(name).sql)}
    for mart in reversed(MARTS):
        if mart.name in wanted:
            wanted.update(mart.inputs)
    refresher = Refresher(site.warehouse)
    list(refresher.refresh_all([mart for mart in MARTS if mart.name in wanted]))
    refresher.save()


def only(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    """These columns of the rows."""
    return [tuple(row[column] for column in columns) for row in rows]


# Every query


@pytest.mark.parametrize("name", ALL)
def test_each_query_answers_on_the_demo_fleet(demo: Warehouse, name: str) -> None:
    """R-DASH-02, R-DASH-05, R-PEER-13: each parses, runs and answers, from typed columns."""
    rows = ask(demo, name)
    assert bool(rows) == (name not in WITHOUT_ANSWER)


@pytest.mark.parametrize("query", ALL.values(), ids=ALL)
def test_each_query_says_what_it_is(query: Query) -> None:
    """Title, what it answers and requirements; no clock but the newest event; an order that repeats."""
    assert query.title and query.answers
    assert all(re.fullmatch(r"R-[A-Z]+-\d\d", item) for item in query.requirements)
    assert not re.search(r"current_timestamp|current_date|now\(|today\(", query.sql)
    assert "ORDER BY" in query.sql or query.name == "v_pipeline_health"


def test_the_index_is_current() -> None:
    """`make docs` writes it."""
    assert (ROOT / "docs" / "queries.md").read_text(encoding="utf-8") == index()


def test_every_query_of_the_requirements_is_there() -> None:
    """R-DASH-05: for each item that names a query, or asks for an answer in one."""
    wanted = {
        "R-UNI": (1, 12), "R-RUN": (4, 5, 6, 9), "R-FLOW": (3, 5, 7, 8, 9, 10), "R-QUAL": (2, 3, 4, 5, 6, 9),
        "R-ERR": (1, 2, 3, 5), "R-DUR": (1, 3, 4, 6, 7), "R-ROW": (3, 6), "R-LIN": (1, 2, 3, 5), "R-AUD": (1, 2),
        "R-CLU": (1,), "R-PEER": (4, 6, 10, 11, 13, 17, 18, 21), "R-DASH": (4,), "R-COST": (1, 2, 3), "R-JOB": (1, 3),
        "R-NEW": (1, 2, 6, 8), "R-SLO": (1, 2, 3, 4, 6), "R-OWN": (13, 14, 15, 16, 17),
    }  # fmt: skip
    there = {item for query in ALL.values() for item in query.requirements}
    assert {f"{area}-{number:02d}" for area, numbers in wanted.items() for number in numbers} - there == set()


def test_unknown_names() -> None:
    with pytest.raises(UnknownQuery, match="did you mean 'morning'"):
        get("mornings")
    with pytest.raises(UnknownQuery, match="there are: backlog, "):
        get("xyz")


def test_command_lists_shows_and_answers(site: Site) -> None:
    """The list without a name, the SQL, JSON and CSV, and a name that is not there."""
    site.write("a.jsonl", state("1", 0, "RUNNING"), state("2", 45, "COMPLETED"))
    site.cycle()

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["query", *arguments, "--config", str(site.folder / "monitoring.yaml")])

    assert "The four morning questions" in run().stdout
    assert [entry["name"] for entry in json.loads(run("--json").stdout)] != []
    assert run("morning", "--show").stdout == get("morning").sql
    (row,) = json.loads(run("last_10_runs", "--json").stdout)
    assert (row["duration_seconds"], row["duration_minutes"], row["running_for"]) == (45.0, 0.75, None)
    assert run("v_pipeline_health", "--csv").stdout.splitlines()[0] == "metric_name,metric_value,checked_at"
    unknown = run("mornin")
    assert unknown.exit_code == 2
    assert "did you mean 'morning'" in unknown.output


# What the demo fleet was planted with


def test_slow_and_rising_examples_on_the_demo_fleet(demo: Warehouse, planted: Any) -> None:
    """R-RUN-09: both examples of the seed, a creeping failure rate and the flow behind a slow update."""
    decaying, slow = planted["decaying_rule"], planted["slow"]
    assert ask(demo, "rising_failure_rate")[0]["pipeline_id"] == decaying["pipeline_id"]
    found = {row["update_id"]: row["flow_name"] for row in ask(demo, "slower_by_which_flow")}
    assert found[slow["details"]["update_id"]] == slow["details"]["flow"]


def test_newest_errors_are_newest_first(demo: Warehouse) -> None:
    """R-ERR-01: 20 rows, no warnings."""
    times = [row["event_ts"] for row in ask(demo, "newest_errors")]
    assert len(times) == 20
    assert times == sorted(times, reverse=True)


def test_night_errors_on_the_demo_fleet(demo: Warehouse, planted: Any) -> None:
    """R-ERR-02: one flow, one hour, one error group."""
    first, plant = ask(demo, "error_pattern")[0], planted["night_errors"]
    assert (first["pipeline_id"], first["hour"], first["flow_name"], first["failures"]) == (
        plant["pipeline_id"],
        plant["details"]["hour"],
        plant["details"]["flow"],
        len(plant["details"]["update_ids"]),
    )


def test_events_by_id_and_by_table_are_the_same(demo: Warehouse) -> None:
    """R-UNI-12: newest first."""
    by_id = ask(demo, "newest_events_by_id")
    assert by_id == ask(demo, "newest_events_by_table")
    times = [row["event_ts"] for row in by_id]
    assert times == sorted(times, reverse=True)


# Worked out by hand


def created(id: str, seconds: float, cause: str = "JOB_TASK", **origin: Any) -> dict[str, Any]:
    """A create_update event."""
    return event(id, seconds, "create_update", {"cause": cause}, **origin)


def run(update: str, start: float, seconds: float, end: str = "COMPLETED", **more: Any) -> list[dict[str, Any]]:
    """An update from create_update to its end."""
    cause = more.pop("cause", "JOB_TASK")
    return [
        created(f"{update}-0", start, cause, update_id=update, **more),
        state(f"{update}-1", start + seconds, end, update_id=update, **more),
    ]


def test_daily_durations(site: Site) -> None:
    """R-DUR-03: 45 s and 60 s are 52.5 s = 0.9 min, at most 1.0; the retry of 10 minutes is counted apart, open runs have
    no duration."""
    site.write("a.jsonl", *run("a", 0, 45), *run("b", 100, 60, "FAILED"))
    site.write("a.jsonl", *run("c", 170, 600, cause="RETRY_ON_FAILURE"))
    site.write("a.jsonl", created("d", DAY + 5, update_id="d"))
    fill(site, "daily_durations")
    columns = "run_date", "num_runs", "avg_duration_min", "max_duration_min", "retries"
    assert only(ask(site.warehouse, "daily_durations"), *columns) == [
        (date(2026, 1, 2), 1, None, None, 0),
        (date(2026, 1, 1), 2, 0.9, 1.0, 1),
    ]


def test_health_of_today(site: Site) -> None:
    """R-DUR-06, R-ERR-03: a run across midnight counts wholly, one failure with two ERROR rows is one."""
    error = {"exceptions": [{"class_name": "E", "message": "[BROKEN] boom"}]}
    site.write("a.jsonl", *run("yesterday", 0, HOUR), *run("midnight", DAY - 600, 20 * 60))
    site.write("a.jsonl", *run("failed", DAY + HOUR, 10 * 60, "FAILED"))
    site.write(
        "a.jsonl",
        event("e1", DAY + HOUR + 590, level="ERROR", error=error, flow_name="f", update_id="failed"),
        event("e2", DAY + HOUR + 595, level="ERROR", error=error, update_id="failed"),
    )
    fill(site, "v_pipeline_health", "failures_per_day", "root_error_of_failed_requests")
    rows = ask(site.warehouse, "v_pipeline_health")
    assert only(rows, "metric_name", "metric_value") == [("error_count", 1.0), ("avg_duration_min", 15.0)]
    assert {row["checked_at"] for row in rows} == {datetime(2026, 1, 2, 1, 10, tzinfo=timezone.utc)}
    (failure,) = ask(site.warehouse, "failures_per_day")
    assert (failure["day"], failure["failures"], failure["error_events"]) == (date(2026, 1, 2), 1, 2)
    (root,) = ask(site.warehouse, "root_error_of_failed_requests")
    assert (root["flow_name"], root["error_class"]) == ("f", "BROKEN")


def test_success_by_request_and_by_attempt(site: Site) -> None:
    """R-NEW-01: FAILED, retry FAILED, retry COMPLETED is one request that succeeded, and one of three attempts."""
    site.write("a.jsonl", *run("a", 0, 10, "FAILED"), *run("b", 20, 10, "FAILED", cause="RETRY_ON_FAILURE"))
    site.write("a.jsonl", *run("c", 40, 10, cause="RETRY_ON_FAILURE"))
    fill(site, "success_rates", "most_retried")
    columns = "requests", "request_success_pct", "attempts", "attempt_success_pct"
    assert only(ask(site.warehouse, "success_rates"), *columns) == [(1, 100.0, 3, 33.33)]
    assert only(ask(site.warehouse, "most_retried"), "retries", "most_attempts", "minutes_on_failed_attempts") == [
        (2, 3, 0.3)
    ]


def test_morning(site: Site) -> None:
    """R-RUN-04: who ran in the last 24 hours and who did not, duration of all attempts, rows moved and dropped."""
    body = {"status": "COMPLETED", "metrics": {"num_output_rows": 40}, "data_quality": {"dropped_records": 2}}
    site.write("a.jsonl", *run("old", 0, 60, pipeline_id="q", pipeline_name="quiet"))
    site.write("a.jsonl", *run("a", 2 * DAY, 60, "FAILED"), *run("b", 2 * DAY + 70, 30, cause="RETRY_ON_FAILURE"))
    site.write("a.jsonl", flow("f", 2 * DAY + 90, "f", body, update_id="b"))
    fill(site, "morning", now=datetime(2026, 1, 4, tzinfo=timezone.utc))
    columns = "pipeline_name", "ran", "runs", "latest_status", "duration_seconds", "rows_moved", "rows_dropped"
    assert only(ask(site.warehouse, "morning"), *columns) == [
        ("quiet", False, 0, None, None, None, None),
        ("pipe", True, 2, "COMPLETED", 90.0, 40, 2),
    ]


def test_latest_update_shows_a_running_retry_and_the_failure_before(site: Site) -> None:
    """R-RUN-05."""
    site.write("a.jsonl", *run("a", 0, 60, "FAILED"))
    site.write("a.jsonl", created("b", 70, "RETRY_ON_FAILURE", update_id="b"), state("r", 71, "RUNNING", update_id="b"))
    fill(site, "latest_update")
    columns = "latest_update_id", "latest_status", "finished_update_id", "finished_status"
    assert only(ask(site.warehouse, "latest_update"), *columns) == [("b", "RUNNING", "a", "FAILED")]


def test_who_started_a_run(site: Site) -> None:
    """R-AUD-02: nearest START at most 15 minutes before, each for one run; an action that names its update comes first."""

    def act(id: str, seconds: float, user: str, action: str = "START", **origin: Any) -> dict[str, Any]:
        body = {"action": action, "user_name": user}
        return event(id, seconds, "user_action", body, **{"update_id": None, **origin})

    site.write("a.jsonl", act("1", 100, "ana"), *run("first", 160, 60, cause="USER_ACTION"))
    site.write("a.jsonl", *run("nobody_left", 400, 60, cause="USER_ACTION"))
    site.write("a.jsonl", act("2", 10_000, "ben"), act("3", 10_700, "cleo"), act("4", 10_750, "dan", "STOP"))
    site.write("a.jsonl", *run("nearest", 10_800, 60, cause="USER_ACTION"))
    site.write("a.jsonl", act("5", 20_000, "eve"), *run("too_late", 20_901, 60, cause="USER_ACTION"))
    site.write("a.jsonl", act("6", 30_000, "fay"), *run("by_a_job", 30_010, 60))
    site.write("a.jsonl", act("7", 40_000, "gus"), *run("named", 40_010, 60, cause="USER_ACTION"))
    site.write("a.jsonl", act("8", 40_020, "hal", update_id="named"))
    fill(site, "run_history")
    found = {row["update_id"]: row["user_name"] for row in ask(site.warehouse, "run_history")}
    assert found == {
        "first": "ana",
        "nobody_left": None,
        "nearest": "cleo",
        "too_late": None,
        "by_a_job": None,
        "named": "hal",
    }


def flow_run(
    update: str, name: str, start: float, seconds: float, rows: int | None = None, end: str = "COMPLETED", **more: Any
) -> list[dict[str, Any]]:
    """What one flow reports in one update."""
    metrics = {"num_output_rows": rows} if rows is not None else None
    return [
        flow(f"{update}-{name}-0", start, name, {"status": "RUNNING"}, update_id=update, **more),
        flow(
            f"{update}-{name}-1", start + seconds, name, {"status": end, "metrics": metrics}, update_id=update, **more
        ),
    ]


def test_bottlenecks(site: Site) -> None:
    """R-FLOW-08, E-13: four runs of 10 to 40 s; they end 7210, 7210 and 14410 s after each other; unknown rows are no
    zeros; what failed is left out."""
    for number, (start, seconds, rows) in enumerate(
        [(0, 10, 100), (2 * HOUR, 20, 200), (4 * HOUR, 30, None), (8 * HOUR, 40, 300)]
    ):
        site.write("a.jsonl", *run(f"u{number}", start, 60), *flow_run(f"u{number}", "f", start, seconds, rows))
    site.write("a.jsonl", *run("x", 9 * HOUR, 60, "FAILED"), *flow_run("x", "g", 9 * HOUR, 50, 7, "FAILED"))
    fill(site, "bottlenecks_7_days")
    columns = "flow_name", "total_runs", "avg_rows", "avg_interval_sec", "avg_duration"
    assert only(ask(site.warehouse, "bottlenecks_7_days"), *columns) == [("f", 4, 200.0, 9610.0, 25.0)]


def test_the_flow_that_made_an_update_slow(site: Site) -> None:
    """R-RUN-09, R-DUR-07, R-FLOW-03: from 4 to 11 minutes because of `b`, although `a` writes more; full refreshes are
    neither judged nor usual."""
    for number in range(5):
        start, grown = number * HOUR, 420 * (number == 4)
        update = f"u{number}"
        site.write("a.jsonl", *run(update, start, 240 + grown), *flow_run(update, "a", start + 10, 100, 900))
        site.write("a.jsonl", *flow_run(update, "b", start + 120, 100 + grown, 5))
    full = event("full", 6 * HOUR, "create_update", {"cause": "API_CALL", "full_refresh": "true"}, update_id="full")
    site.write("a.jsonl", full, state("done", 9 * HOUR, "COMPLETED", update_id="full"))
    fill(site, "slower_by_which_flow")
    columns = "update_id", "usual_minutes", "minutes", "flow_name", "flow_usual_seconds", "flow_seconds"
    assert only(ask(site.warehouse, "slower_by_which_flow"), *columns) == [("u4", 4.0, 11.0, "b", 100.0, 520.0)]


def test_slow_flows_of_an_update_and_listing(site: Site) -> None:
    """R-FLOW-03, R-FLOW-05: longest first, and that it spent 80 s of 100 on listing files."""
    site.write("a.jsonl", *run("u", 0, 200), *flow_run("u", "short", 1, 9, 500), *flow_run("u", "long", 1, 100, 3))
    listing = {"type": "AUTO_LOADER_LISTING", "status": "COMPLETED", "duration_ms": 80_000}
    site.write("a.jsonl", event("l", 90, "operation_progress", listing, flow_name="long"))
    fill(site, "slowest_flows_of_an_update", "waiting_flows")
    columns = "flow_name", "seconds", "rows_written", "listing_seconds"
    assert only(ask(site.warehouse, "slowest_flows_of_an_update"), *columns) == [
        ("long", 100.0, 3, 80.0),
        ("short", 9.0, 500, None),
    ]
    assert only(ask(site.warehouse, "waiting_flows"), "flow_name", "operation_seconds") == [("long", 80.0)]


def judged(update: str, seconds: float, rate: float, **more: Any) -> list[dict[str, Any]]:
    """An update with one rule over 100,000 records, of which `rate` % pass."""
    passed = round(1000 * rate)
    rules = [{"name": "ok", "dataset": "d", "passed_records": passed, "failed_records": 100_000 - passed}]
    body = {"status": "COMPLETED", "data_quality": {"expectations": rules}}
    return [*run(update, seconds, 60, **more), flow(f"{update}-f", seconds + 9, "f", body, update_id=update, **more)]


def test_weekly_quality(site: Site) -> None:
    """R-QUAL-04, R-QUAL-06, R-RUN-09, E-17: a gap is null and no change; a decline is seen at its second step; noise is
    not."""
    rates = {
        "decline": [99.9, 99.5, 95],
        "begins": [None, 99.9, 99.5],
        "gap": [99.9, None, 95],
        "noise": [99.90, 99.88, 99.85],
    }
    for name, weeks in rates.items():
        for number, rate in enumerate(weeks):
            if rate is not None:
                rows = judged(f"{name}{number}", (4 + 7 * number) * DAY, rate, pipeline_id=name, pipeline_name=name)
                site.write("a.jsonl", *rows)
    fill(
        site,
        "weekly_quality_report",
        "decaying_rules",
        "rising_failure_rate",
        now=datetime(2026, 1, 25, tzinfo=timezone.utc),
    )
    report = ask(site.warehouse, "weekly_quality_report")
    assert [row["week_start"] for row in report] == sorted((row["week_start"] for row in report), reverse=True)
    found = {(row["pipeline_name"], row["week_start"].day): row for row in report}
    assert {key: (row["pass_rate_pct"], row["prev_week_rate"]) for key, row in found.items() if key[0] != "noise"} == {
        ("decline", 5): (99.9, None),
        ("decline", 12): (99.5, 99.9),
        ("decline", 19): (95.0, 99.5),
        ("begins", 12): (99.9, None),
        ("begins", 19): (99.5, 99.9),
        ("gap", 5): (99.9, None),
        ("gap", 19): (95.0, None),
    }
    first = found["decline", 5]
    assert (first["flow_name"], first["rule_name"], first["total_passed"], first["total_failed"]) == (
        "f",
        "ok",
        99_900,
        100,
    )
    assert only(ask(site.warehouse, "decaying_rules"), "pipeline_name", "change_points") == [
        ("decline", -4.5),
        ("begins", -0.4),
    ]
    columns = "pipeline_name", "failed_pct_2_weeks_before", "failed_pct_week_before", "failed_pct"
    assert only(ask(site.warehouse, "rising_failure_rate"), *columns) == [("decline", 0.1, 0.5, 5.0)]


def test_quality_of_today_and_by_day(site: Site) -> None:
    """R-QUAL-03, R-QUAL-05: two runs of today are added; the same numbers are in expectation_results."""
    site.write("a.jsonl", *judged("a", 0, 50), *judged("b", DAY, 99), *judged("c", DAY + HOUR, 98))
    fill(site, "v_pipeline_quality", "quality_failures_per_day", "pass_rates")
    columns = "flow_name", "rule_name", "total_passed", "total_failed", "pass_rate_pct"
    assert only(ask(site.warehouse, "v_pipeline_quality"), *columns) == [("f", "ok", 197_000, 3_000, 98.5)]
    today = [r for r in site.rows("expectation_results") if r["last_event_ts"].date() == date(2026, 1, 2)]
    assert sum(r["passed_records"] for r in today) == 197_000
    assert only(ask(site.warehouse, "quality_failures_per_day"), "day", "passed", "failed", "failed_pct") == [
        (date(2026, 1, 2), 197_000, 3_000, 1.5),
        (date(2026, 1, 1), 50_000, 50_000, 50.0),
    ]


def test_error_pattern_and_search(site: Site) -> None:
    """R-ERR-02, R-ERR-05: the same flow at 3 o'clock on three days, found by words months later, with the run that was
    good again."""
    error = {"exceptions": [{"class_name": "E", "message": "[SCHEMA_MISMATCH] Schema mismatch in batch 17"}]}
    for day in (1, 4, 9):
        update, start = f"night{day}", day * DAY + 3 * HOUR
        failed = flow(
            f"{update}-f", start + 20, "silver", {"status": "FAILED"}, update_id=update, level="ERROR", error=error
        )
        site.write("a.jsonl", *run(update, start, 30, "FAILED"), failed)
        site.write("a.jsonl", *run(f"day{day}", start + HOUR, 60))
    site.write("a.jsonl", *run("other", 2 * DAY, 30, "FAILED"))
    fill(site, "error_pattern", "search_errors", now=datetime(2026, 1, 11, tzinfo=timezone.utc))
    first, second = ask(site.warehouse, "error_pattern")
    assert (first["hour"], first["flow_name"], first["failures"], first["days"]) == (3, "silver", 3, 3)
    assert second["failures"] == 1
    found = ask(site.warehouse, "search_errors")
    assert only(found, "update_id", "status") == [(f"night{day}", "FAILED") for day in (9, 4, 1)]
    assert found[-1]["solved_at"] == datetime(2026, 1, 2, 4, 1, tzinfo=timezone.utc)


def test_rows_per_table_and_day(site: Site) -> None:
    """R-ROW-03: rows of RUNNING reports, by the day of their batch; a sink is no table."""

    def rows(id: str, seconds: float, name: str, number: int, status: str, batch: int) -> dict[str, Any]:
        return flow(id, seconds, name, {"status": status, "metrics": {"num_output_rows": number}}, batch_id=batch)

    site.write(
        "a.jsonl",
        event("d", 0, "flow_definition", {"output_dataset": "main.s.orders"}, flow_name="f"),
        event("s", 0, "flow_definition", {"output_sink": "kafka"}, flow_name="g"),
        rows("1", DAY - 100, "f", 30, "RUNNING", 1),
        rows("2", DAY - 50, "f", 40, "RUNNING", 1),
        rows("3", DAY + 50, "f", 5, "RUNNING", 2),
        flow("4", DAY + 60, "f", {"status": "COMPLETED"}),
        rows("5", DAY, "g", 99, "RUNNING", 1),
    )
    fill(site, "rows_per_table_and_day", "sinks")
    assert only(ask(site.warehouse, "rows_per_table_and_day"), "date", "table_name", "total_rows") == [
        (date(2026, 1, 2), "main.s.orders", 5),
        (date(2026, 1, 1), "main.s.orders", 40),
    ]
    assert only(ask(site.warehouse, "sinks"), "flow_name", "sink") == [("g", "kafka")]


def test_downstream_of_a_failed_flow(site: Site) -> None:
    """R-LIN-01: over pipelines, by full names however they are written, through a circle, to a sink; the newest
    definitions count, and flows that failed once and are well again do not."""

    def defined(pipeline: str, name: str, reads: list[str], at: int = 0, **writes: str) -> list[dict[str, Any]]:
        origin = {"pipeline_id": pipeline, "pipeline_name": pipeline, "update_id": f"{pipeline}{at}"}
        return [
            event(
                f"{pipeline}{at}", at, "create_update", {"config": {"catalog": "main", "target": "silver"}}, **origin
            ),
            event(
                f"{name}-d{at}",
                at + 1,
                "flow_definition",
                {"input_datasets": reads, **writes},
                flow_name=name,
                **origin,
            ),
        ]

    def ended(pipeline: str, name: str, status: str, at: int = 0) -> dict[str, Any]:
        origin = {"pipeline_id": pipeline, "pipeline_name": pipeline, "update_id": f"{pipeline}{at}"}
        return flow(f"{name}-e{at}", at + 9, name, {"status": status}, **origin)

    site.write("a.jsonl", *defined("bronze", "load", [], output_dataset="main.bronze.orders"))
    site.write("a.jsonl", ended("bronze", "load", "FAILED"))
    site.write(
        "b.jsonl", *defined("silver", "clean", ["`main`.bronze.orders", "main.gold.feedback"], output_dataset="clean")
    )
    site.write("b.jsonl", ended("silver", "clean", "COMPLETED"))
    site.write("c.jsonl", *defined("gold", "feed", ["main.silver.clean"], output_dataset="main.gold.feedback"))
    site.write("c.jsonl", *defined("gold", "send", ["silver.clean"], output_sink="kafka"))
    site.write("d.jsonl", *defined("moved", "old", ["main.bronze.orders"], output_dataset="main.gold.old"))
    site.write("d.jsonl", *defined("moved", "old", ["main.bronze.other"], HOUR, output_dataset="main.gold.old"))
    site.write("e.jsonl", *defined("well", "again", [], output_dataset="main.bronze.other"))
    site.write(
        "e.jsonl",
        ended("well", "again", "FAILED"),
        *defined("well", "again", [], HOUR, output_dataset="main.bronze.other"),
    )
    site.write("e.jsonl", ended("well", "again", "COMPLETED", HOUR))
    fill(site, "downstream_of_failed_flows", "lineage_edges")
    rows = ask(site.warehouse, "downstream_of_failed_flows")
    assert sorted(only(rows, "failed_flow", "stale_flow", "stale_pipeline", "in_another_pipeline")) == [
        ("load", "clean", "silver", True),
        ("load", "feed", "gold", True),
        ("load", "send", "gold", True),
    ]
    assert {row["stale_flow"]: row["stale_table"] for row in rows} == {
        "clean": "main.silver.clean",
        "feed": "main.gold.feedback",
        "send": None,
    }
    edges = only(ask(site.warehouse, "lineage_edges"), "flow_name", "reads", "writes", "from_another_pipeline")
    assert ("feed", "main.silver.clean", "main.gold.feedback", True) in edges
    assert ("send", "main.silver.clean", "kafka", True) in edges


def test_stalled_flows(site: Site) -> None:
    """R-NEW-05: a backlog and no batch for an hour is stalled; without a backlog it is idle, without a word unknown."""
    for name, backlog, last in (("stalled", 900, 0), ("idle", 0, 0), ("silent", None, 0), ("busy", 900, 2 * HOUR)):
        metrics = {"num_output_rows": 5, "backlog_bytes": backlog}
        body = {"status": "RUNNING", "metrics": metrics}
        site.write("a.jsonl", state(f"{name}-s", 0, "RUNNING", pipeline_id=name, update_id=name))
        site.write("a.jsonl", flow(f"{name}-f", last + 9, name, body, batch_id=1, pipeline_id=name, update_id=name))
    fill(site, "stalled_flows")
    assert only(ask(site.warehouse, "stalled_flows"), "flow_name", "minutes_without_a_batch", "last_backlog_bytes") == [
        ("stalled", 120.0, 900)
    ]


def test_low_utilisation(site: Site) -> None:
    """R-CLU-01, R-COST-03: 10 % for a minute and 50 % for 20 seconds are 20 %; serverless has no readings."""
    for id, share, length, pipeline in (("1", 0.1, 60_000, "p"), ("2", 0.5, 20_000, "p"), ("3", 0.9, 60_000, "q")):
        metrics = {"avg_task_slot_utilization": share, "summary_duration_ms": length, "num_executors": 4}
        site.write("a.jsonl", event(id, 0, "cluster_resources", {"task_slot_metrics": metrics}, pipeline_id=pipeline))
    site.write("a.jsonl", *run("s", 0, 9, pipeline_id="serverless"))
    fill(site, "low_utilisation")
    columns = "pipeline_id", "utilisation_pct", "avg_executors", "readings"
    assert only(ask(site.warehouse, "low_utilisation"), *columns) == [("p", 20.0, 4.0, 2)]


def test_growing_durations(site: Site) -> None:
    """R-DUR-04: +6 % in a week is growth, +3 % is not, and a gap says nothing."""
    seconds = {"fast": [100, 106], "slow": [100, 103], "gap": [100, None, 200]}
    for name, weeks in seconds.items():
        for number, length in enumerate(weeks):
            if length:
                start = (4 + 7 * number) * DAY
                site.write("a.jsonl", *run(f"{name}{number}", start, length, pipeline_id=name, pipeline_name=name))
    fill(site, "growing_durations", now=datetime(2026, 1, 20, tzinfo=timezone.utc))
    found = {
        (r["pipeline_name"], r["week_start"].day): (r["growth_pct"], r["is_growing"])
        for r in ask(site.warehouse, "growing_durations")
    }
    assert (found["fast", 12], found["slow", 12], found["gap", 19]) == ((6.0, True), (3.0, False), (None, False))
