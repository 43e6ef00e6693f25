"""The demo fleet: the marts against the truth, planted problems against the checks, the documented queries."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from monitoring_platform.config import load
from monitoring_platform.cycle.ingest import ingest
from monitoring_platform.cycle.union import unite
from monitoring_platform.demo import generate
from monitoring_platform.demo.verdict import differences
from monitoring_platform.health.checks import CHECKS, Finding, run
from monitoring_platform.marts.refresh import MARTS, refresh
from monitoring_platform.marts.registry import TABLES
from monitoring_platform.warehouse.contracts import STANDING
from monitoring_platform.warehouse.looking import connect
from monitoring_platform.warehouse.store import Warehouse

END = datetime(2026, 3, 10, 6, tzinfo=timezone.utc)
QUERIES = Path(__file__).parents[2] / "docs" / "queries.md"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Warehouse]:
    """A small fleet with every plant, after one cycle."""
    folder = tmp_path_factory.mktemp("demo")
    truth = generate(folder, pipelines=30, days=10, seed=3, end=END)
    warehouse = Warehouse(load(folder / "monitoring.yaml"))
    ingest(warehouse, END)
    unite(warehouse)
    for mart in MARTS:
        refresh(warehouse, mart)
    return truth, warehouse


@pytest.fixture(scope="module")
def findings(demo: tuple[dict[str, Any], Warehouse]) -> dict[str, Finding]:
    """All checks on it."""
    return {check.name: run(demo[1], check) for check in CHECKS}


def _planted(truth: dict[str, Any], *kinds: str) -> set[str]:
    return {entry["pipeline_id"] for entry in truth["planted"] if entry["kind"] in kinds}


def test_marts_equal_the_truth(demo: tuple[dict[str, Any], Warehouse]) -> None:
    """R-NEW-10: every run, flow, request, rule and event count."""
    wrong = {name: rows[:3] for name, rows in differences(*demo).items() if rows}
    assert wrong == {}


def test_planted_failures_are_found_and_nothing_else(demo: Any, findings: dict[str, Finding]) -> None:
    """R-RUN-05: still failing, and a retry that is running after a failure."""
    found = {row["pipeline_id"] for row in findings["latest_requests_succeeded"].offenders}
    assert found == _planted(demo[0], "still_failing", "retry_running")


def test_planted_quality_problems_are_found(demo: Any, findings: dict[str, Finding]) -> None:
    """R-QUAL-02: below 99 % in the latest update."""
    found = {row["pipeline_id"] for row in findings["expectation_pass_rates"].offenders}
    assert found == _planted(demo[0], "low_pass_rate", "decaying_rule")


def test_planted_zero_rows_are_found(demo: Any, findings: dict[str, Finding]) -> None:
    """R-ROW-04: explicit zeros where rows are usual; not reported is not zero."""
    assert {row["pipeline_id"] for row in findings["rows_where_usual"].offenders} == _planted(demo[0], "zero_rows")


def test_coverage(demo: Any, findings: dict[str, Finding]) -> None:
    """R-NEW-02's ground: stale and never-ran pipelines, the unreadable log, each with a remedy."""
    truth, warehouse = demo
    rows = warehouse.arrow(next(t for t in STANDING if t.name == "pipelines")).to_pylist()
    by_state: dict[str, set[str]] = {}
    for row in rows:
        by_state.setdefault(row["state"], set()).add(row["pipeline_id"])
    assert by_state["stale"] == _planted(truth, "stale")
    assert by_state["never_ran"] == _planted(truth, "never_ran")
    assert len(by_state["unreadable"]) == 1
    assert findings["sources_reachable"].total == 1
    assert all(row["remedy"] for row in rows if row["state"] not in ("seen", "excluded"))
    assert sum(len(ids) for ids in by_state.values()) == len(rows)


def test_monitoring_itself_is_well(findings: dict[str, Finding]) -> None:
    """No duplicates, nothing missing downstream."""
    assert findings["no_duplicate_events"].total == 0
    assert findings["nothing_missing_downstream"].total == 0


def test_no_planted_secret_is_stored(demo: Any) -> None:
    """R-PERM-05: in no file of the warehouse."""
    truth, warehouse = demo
    assert truth["secrets"]
    stored = b"".join(path.read_bytes() for path in warehouse.root.rglob("*.json"))
    con = connect(warehouse, *STANDING, *TABLES)
    for table in (*STANDING, *TABLES):
        stored += repr(con.execute(f'SELECT * FROM "{table.name}"').fetchall()).encode()
    assert [secret for secret in truth["secrets"] if secret.encode() in stored] == []


def _queries() -> dict[str, str]:
    text = QUERIES.read_text(encoding="utf-8")
    return dict(re.findall(r"^## (.+?)\n.*?```sql\n(.+?)```", text, re.S | re.M))


@pytest.mark.parametrize("title", _queries())
def test_documented_queries(demo: Any, title: str) -> None:
    """R-ERR-01, R-DUR-01, R-FLOW-03, R-FLOW-07, R-ROW-03, R-QUAL-04, R-UNI-01, R-UNI-12: each runs and answers."""
    con = connect(demo[1], *STANDING, *TABLES)
    rows = con.execute(_queries()[title]).fetchall()
    if "by a table it produces" not in title:
        assert rows


def test_newest_errors_are_newest_first(demo: Any) -> None:
    """R-ERR-01: 20 rows, no warnings, newest first."""
    con = connect(demo[1], *TABLES)
    rows = con.execute(_queries()["Newest 20 errors of the fleet"]).fetchall()
    assert len(rows) == 20
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True)
