"""The command line as a user runs it: exit codes, messages, machine-readable output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from monitoring_platform.health.watch import watch
from tests.conftest import NOW, Site, event, flow, state

CLI = Path(sys.executable).with_name("monitoring-platform")


def run(site: Site, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command with the site's configuration."""
    return subprocess.run(
        [CLI, *arguments, "--config", "monitoring.yaml"], cwd=site.folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def filled(site: Site) -> Site:
    """One pipeline that failed, one that is fine, after one cycle."""
    site.write(
        "a.jsonl", state("1", 0, "RUNNING"), state("2", 60, "FAILED"), state("x", 0, "COMPLETED", pipeline_id="q")
    )
    site.cycle()
    watch(site.warehouse, NOW)
    return site


def test_run_status_and_files(site: Site) -> None:
    """R-ING-07, R-OPS-05, R-PEER-18: the run names what it did; the instance lives beside the warehouse; a second run reads nothing."""
    site.write("a.jsonl", state("1", 0, "RUNNING"), state("2", 60, "FAILED"))
    first = run(site, "run", "--now", "2026-01-02T00:00:00Z", "--json")
    assert first.returncode == 0, first.stderr
    result = json.loads(first.stdout)
    assert result["steps"]["all_pipelines_event_log"]["events_new"] == 2
    failing = next(f for f in result["rules"] if f["check"] == "request_failed")
    assert (failing["total"], failing["offenders"][0]["pipeline_id"]) == (1, "p")
    assert (site.folder / "warehouse.dagster" / "dagster.yaml").exists()

    (site.logs / "broken.json").write_bytes(b"")
    (site.logs / "broken.json").unlink()
    (site.logs / "b.jsonl").symlink_to("nowhere.jsonl")
    second = run(site, "run", "--now", "2026-01-02T00:00:00Z")
    assert second.returncode == 0
    assert "0 events new" in second.stdout
    newest, oldest = json.loads(run(site, "query", "cycles_of_the_monitoring", "--json").stdout)
    assert [(row["status"], row["events_new"], row["launched_by"]) for row in (newest, oldest)] == [
        ("COMPLETED", 0, "command line"),
        ("COMPLETED", 2, "command line"),
    ]
    assert (oldest["lag_p50_seconds"], oldest["lag_max_seconds"]) == (86_370.0, 86_400.0)
    assert (newest["lag_p50_seconds"], newest["seconds_since_the_last"] > 0) == (None, True)


def test_one_unreadable_log_of_three(make_site: Any) -> None:
    """R-ING-07: the others are in all downstream tables, exit code 1, the message names the log and the reason."""
    site = make_site("three", "sources:\n  - {type: files, path: ./logs}\n  - {type: delta, path: ./delta/*}\n")
    site.write("a.jsonl", state("1", 0, "COMPLETED"))
    site.write("b.jsonl", state("1", 0, "COMPLETED", pipeline_id="q"))
    log = site.folder / "delta" / "broken" / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("no commit")
    result = run(site, "run")
    assert result.returncode == 1
    assert "broken" in result.stdout.replace("\n", "")
    assert {row["pipeline_id"] for row in site.rows("events_summary")} == {"p", "q"}
    assert [row["state"] for row in site.rows("pipelines") if row["pipeline_id"] not in "pq"] == ["unreadable"]
    cycle = site.row("platform_runs")
    assert (cycle["status"], cycle["logs_read"], cycle["logs_failed"]) == ("FAILED", 2, 1)
    assert "sources_reachable: 1" in cycle["error"]


def test_wrong_configuration_and_wrong_call(site: Site) -> None:
    """Exit 2, nothing written, the message names file, line, key and the nearest valid key."""
    (site.folder / "monitoring.yaml").write_text("warehouse: {path: ./warehouse}\nsouces: []\n")
    result = run(site, "run")
    assert result.returncode == 2
    assert "monitoring.yaml:2" in result.stderr
    assert "sources" in result.stderr
    assert not (site.folder / "warehouse").exists()
    (site.folder / "monitoring.yaml").write_text("warehouse: {path: ./warehouse}\nsources: []\n")
    assert run(site, "run", "--now", "yesterday").returncode == 2
    assert run(site, "sql", "SELECT nothing FROM nowhere").returncode == 2


def test_no_sources_is_not_a_crash(site: Site) -> None:
    """R-ING-09: a clear message and empty, queryable tables."""
    result = run(site, "run")
    assert result.returncode == 0, result.stderr
    assert "matches nothing" in result.stdout
    counted = run(site, "sql", "SELECT count(*) AS n FROM pipeline_runs", "--json")
    assert json.loads(counted.stdout) == [{"n": 0}]


def test_sql(filled: Site) -> None:
    """JSON and CSV; a cell that would start a formula is neutralised; nothing outside the tables can be read."""
    found = run(filled, "sql", "SELECT pipeline_id, status FROM pipeline_runs ORDER BY 1", "--json")
    assert json.loads(found.stdout) == [
        {"pipeline_id": "p", "status": "FAILED"},
        {"pipeline_id": "q", "status": "COMPLETED"},
    ]
    cells = run(filled, "sql", "SELECT '=1+1' AS a, -5 AS b", "--csv")
    assert cells.stdout.splitlines() == ["a,b", "'=1+1,-5"]
    assert run(filled, "sql", "SELECT * FROM read_text('monitoring.yaml')").returncode == 2


def test_status(filled: Site) -> None:
    """R-RUN-04: who needs attention, each pipeline's latest run; text and JSON."""
    text = run(filled, "status", "--all")
    assert text.returncode == 0, text.stderr
    assert "Request failed" in text.stdout
    found = json.loads(run(filled, "status", "--json").stdout)
    assert {p["pipeline_id"]: p["latest_status"] for p in found["pipelines"]} == {"p": "FAILED", "q": "COMPLETED"}
    assert [(f["check"], f["severity"], f["total"]) for f in found["attention"]] == [("request_failed", "ERROR", 1)]


def test_validate_writes_nothing_and_lists_each_log(site: Site) -> None:
    """R-CFG-11, R-ING-14: each (pipeline, log) pair; a pipeline added to a scanned place is listed next time."""
    site.write("a.jsonl", event("1", 0))
    found = json.loads(run(site, "validate", "--json").stdout)
    assert [(row["pipelines"], row["result"]) for row in found] == [(["p"], "new events")]
    site.write("b.jsonl", event("1", 0, pipeline_id="q"))
    assert [row["pipelines"] for row in json.loads(run(site, "validate", "--json").stdout)] == [["p"], ["q"]]
    assert not (site.folder / "warehouse").exists()
    assert run(site, "validate").returncode == 0


def test_rebuild_of_unknown_mart(filled: Site) -> None:
    """An unknown name lists the known ones."""
    result = run(filled, "rebuild", "pipeline_run")
    assert result.returncode == 2
    assert "pipeline_runs" in result.stderr


def test_hostile_names_reach_no_markup(site: Site) -> None:
    """Text from a log is data: brackets that look like markup are printed as they are."""
    site.write("a.jsonl", flow("1", 0, "f", {"status": "RUNNING"}, pipeline_name="[red]x[/red]"))
    site.cycle()
    assert "[red]x[/red]" in run(site, "status", "--all").stdout


def test_views_of_ones_own_run_with_the_cycle(make_site: Any) -> None:
    """R-CFG-10: they are there after the run and answer `sql`; one that fails is named, exit 1, the others are done."""
    views = (
        "views:\n"
        "  - {name: fine, sql: SELECT status AS s FROM pipeline_runs}\n"
        "  - {name: broken, sql: SELECT no_such_column FROM pipeline_runs}\n"
    )
    site = make_site("own", views)
    site.write("a.jsonl", state("1", 0, "COMPLETED"))
    result = run(site, "run")
    assert result.returncode == 1
    assert "1 of 2 views" in result.stdout
    assert "broken" in result.stdout
    assert json.loads(run(site, "sql", "SELECT * FROM fine", "--json").stdout) == [{"s": "COMPLETED"}]
    wrong = make_site("cycle", "views:\n  - {name: a, sql: SELECT * FROM b}\n  - {name: b, sql: SELECT * FROM a}\n")
    result = run(wrong, "validate")
    assert result.returncode == 2
    assert "depend on each other in a cycle" in result.stderr


def test_a_stalled_flow_is_flagged(site: Site) -> None:
    """R-NEW-05: an open update of three days with a backlog and no batch for hours is stalled; without news of one, unknown."""
    origin = {"pipeline_id": "c", "pipeline_name": "endless"}
    site.write(
        "a.jsonl",
        event("1", 0, "create_update", {"cause": "USER_ACTION", "config": {"continuous": True}}, **origin),
        state("2", 1, "RUNNING", **origin),
        *(
            flow(f"b{day}", day * 86_400 + 600, "busy", {"metrics": {"num_output_rows": 5, "backlog_bytes": 99}},
                 batch_id=day, **origin)
            for day in range(3)
        ),
        flow("u", 2 * 86_400 + 600, "silent", {"status": "RUNNING"}, **origin),
    )  # fmt: skip

    def stalled(now: str) -> list[str]:
        found = json.loads(run(site, "run", "--now", now, "--json").stdout)["rules"]
        return [row["subject"] for one in found if one["check"] == "flow_stalled" for row in one["offenders"]]

    assert stalled("2026-01-03T01:05:00Z") == []
    assert stalled("2026-01-03T12:00:00Z") == ["busy"]
    assert [row["rows_written"] for row in sorted(site.rows("daily_trends"), key=lambda r: r["day"])] == [5, 5, 5]
    assert site.row("flow_liveness", flow_name="silent")["state"] == "unknown"


def test_report_of_a_past_month(filled: Site) -> None:
    """R-DASH-03, R-RET-04: each report by command, for the time that is asked for; two pipelines ended on 1 January 2026."""
    told = json.loads(run(filled, "report", "monthly", "--now", "2026-02-10T00:00:00Z", "--json").stdout)
    assert told["title"] == "Month 2026-01: 50.00 % of requests failed"
    assert told["body"].splitlines()[1] == "Failed: 1 (50.00 %), the month before 0 (unknown)"
    assert run(filled, "report", "daily", "--now", "2026-01-01T12:00:00Z").stdout.startswith("Today: ")
    assert run(filled, "report", "weekly", "--now", "2026-01-05T12:00:00Z").stdout.startswith("Week of 2025-12-29: ")
    assert run(filled, "report", "yearly").returncode == 2
