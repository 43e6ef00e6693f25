"""The demo fleet: the marts against the truth, planted problems against checks and rules."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from monitoring_platform.config import READY_RULES
from monitoring_platform.demo.verdict import compare, differences
from monitoring_platform.health.checks import CHECKS, Finding, run
from monitoring_platform.health.watch import watch
from monitoring_platform.marts.registry import TABLES
from monitoring_platform.warehouse.contracts import STANDING
from monitoring_platform.warehouse.looking import connect
from monitoring_platform.warehouse.store import Warehouse
from tests.conftest import FLEET_END as END
from tests.conftest import made_fleet


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Warehouse]:
    """A small fleet with every plant, after one cycle."""
    return made_fleet(tmp_path_factory.mktemp("demo"), pipelines=40)


@pytest.fixture(scope="module")
def findings(demo: tuple[dict[str, Any], Warehouse]) -> dict[str, Finding]:
    """All checks on it."""
    return {check.name: run(demo[1], check, END) for check in CHECKS}


@pytest.fixture(scope="module")
def found(demo: tuple[dict[str, Any], Warehouse]) -> dict[str, set[str]]:
    """Pipelines that each rule finds."""
    rows = watch(demo[1], END).findings
    return {rule: {row["pipeline_id"] for row in rows if row["rule"] == rule} for rule in READY_RULES}


def _planted(truth: dict[str, Any], *kinds: str) -> set[str]:
    return {entry["pipeline_id"] for entry in truth["planted"] if entry["kind"] in kinds}


def test_marts_equal_the_truth(demo: tuple[dict[str, Any], Warehouse]) -> None:
    """R-NEW-10: every run, flow, request, rule and event count."""
    wrong = {name: rows[:3] for name, rows in differences(*demo).items() if rows}
    assert wrong == {}


def test_what_was_planted_is_compared(demo: tuple[dict[str, Any], Warehouse]) -> None:
    """R-NEW-05, R-NEW-07, R-LIN-02, R-LIN-03, R-LIN-05: no table is right because both sides are empty."""
    counted = compare(*demo)
    assert [name for name, (_, total) in counted.items() if not total] == []
    assert counted["full recomputes"] == (1, 1)
    assert counted["schema changes"] == (3, 3)
    assert counted["life of expectations"] == (4, 4)
    assert counted["backlogs in trouble"] == (2, 2)


def test_a_lie_is_found_out(demo: tuple[dict[str, Any], Warehouse]) -> None:
    """A plant less in the truth makes what was found surplus; a plant more makes it missing."""
    truth, warehouse = demo
    watched = next(plant for plant in truth["planted"] if plant["kind"] == "full_recompute")
    silent = {**truth, "planted": [plant for plant in truth["planted"] if plant is not watched]}
    assert len(differences(silent, warehouse)["full recomputes"]) == 1
    invented = {**watched, "details": {**watched["details"], "flow": "nowhere"}}
    assert len(differences({**truth, "planted": [*truth["planted"], invented]}, warehouse)["full recomputes"]) == 1


def test_a_first_build_raises_no_alarm(demo: Any) -> None:
    """R-NEW-07: every view was built in full once, one is watched, and its change of flow_id is a second witness."""
    truth, warehouse = demo
    con = connect(warehouse, *TABLES)
    built = con.execute(
        "SELECT count(DISTINCT (pipeline_id, flow_name)) FROM refresh_decisions WHERE reasons = 'CHANGE_SET_MISSING'"
    ).fetchone()
    assert built
    assert built[0] > 10
    rows = con.execute("SELECT pipeline_id, flow_id_changed, extra_minutes FROM recompute_watch").fetchall()
    assert [(pipeline, changed) for pipeline, changed, _ in rows] == [(*_planted(truth, "full_recompute"), True)]
    assert rows[0][2] > 4


def test_stalled_pipeline_is_the_one_that_is_silent(demo: Any) -> None:
    """R-NEW-05: an hour since the last batch while something waits."""
    rows = connect(demo[1], *TABLES).execute(
        "SELECT pipeline_id FROM flow_liveness WHERE continuous AND state = 'working' AND last_batch_ts < $limit",
        {"limit": END - timedelta(hours=1)},
    )
    assert {row[0] for row in rows.fetchall()} == _planted(demo[0], "stalled")


@pytest.mark.parametrize(
    ("problem", "plants"),
    [
        ("recomputes in full", ["full_recompute"]),
        ("backlog growing", ["growing_backlog"]),
        ("backlog stuck", ["stuck_backlog"]),
        ("expectation vanished", ["rule_vanished"]),
        ("expectation never evaluated", ["rule_never_evaluated"]),
        ("latest request failed", ["still_failing"]),
        ("retrying after a failure", ["retry_running"]),
        ("log stale", ["stale"]),
    ],
)
def test_open_problems_are_the_planted_ones(demo: Any, problem: str, plants: list[str]) -> None:
    """R-NEW-07, R-NEW-05: one look at pipeline_health says whose trouble it is."""
    rows = connect(demo[1], *TABLES).execute(
        "SELECT pipeline_id FROM pipeline_health WHERE list_contains(open_problems, $problem)", {"problem": problem}
    )
    assert {row[0] for row in rows.fetchall()} == _planted(demo[0], *plants)


def test_slow_flow_waits_for_a_listing(demo: Any) -> None:
    """R-DUR-07: the flow that took longest against its usual time is named, and what it waited for."""
    details = next(plant["details"] for plant in demo[0]["planted"] if plant["kind"] == "slow")
    rows = connect(demo[1], *TABLES).execute(
        """
        SELECT flow_name, listing_seconds FROM flow_durations
        WHERE update_id = $update_id ORDER BY times_usual DESC LIMIT 1
        """,
        {"update_id": details["update_id"]},
    )
    assert rows.fetchall() == [(details["flow"], details["listing_seconds"])]


def test_one_error_in_several_pipelines_is_one_group(demo: Any) -> None:
    """Ids, numbers and paths differ from pipeline to pipeline."""
    con = connect(demo[1], *TABLES)
    rows = con.execute(
        "SELECT pipeline_ids, failures FROM error_groups WHERE error_class = 'DELTA_FILE_NOT_FOUND_DETAILED'"
    )
    ((pipelines, failures),) = rows.fetchall()
    assert (set(pipelines), failures) == (_planted(demo[0], "shared_error"), 3)


def test_night_errors_have_one_flow_one_hour_one_group(demo: Any) -> None:
    """R-ERR-02."""
    rows = connect(demo[1], *TABLES).execute(
        """
        SELECT flow_name, hour, count(DISTINCT fingerprint), sum(failures) FROM failure_hours
        WHERE pipeline_id = $pipeline_id GROUP BY ALL
        """,
        {"pipeline_id": next(iter(_planted(demo[0], "night_errors")))},
    )
    details = next(plant["details"] for plant in demo[0]["planted"] if plant["kind"] == "night_errors")
    assert rows.fetchall() == [(details["flow"], details["hour"], 1, len(details["update_ids"]))]


_DOWNSTREAM = """
    WITH RECURSIVE edges AS (
      SELECT l.* FROM flow_lineage l JOIN (
        SELECT pipeline_id, max_by(update_id, event_ts) AS update_id FROM flow_lineage GROUP BY pipeline_id
      ) newest USING (pipeline_id, update_id)
    ),
    stale AS (
      SELECT $dataset AS dataset, CAST(NULL AS VARCHAR) AS pipeline_id, CAST(NULL AS VARCHAR) AS flow_name
      UNION
      SELECT e.qualified_output, e.pipeline_id, e.flow_name FROM stale s JOIN edges e ON e.qualified_input = s.dataset
    )
    SELECT DISTINCT pipeline_id, flow_name FROM stale WHERE flow_name IS NOT NULL
"""


def test_downstream_of_a_failed_flow(demo: Any) -> None:
    """What goes without new data because a flow failed, over the borders of pipelines."""
    con = connect(demo[1], *TABLES)
    failing = [plant for plant in demo[0]["planted"] if plant["kind"] == "still_failing"]
    assert failing
    for plant in failing:
        dataset = con.execute(
            "SELECT max(dataset) FROM flow_metrics WHERE update_id = $update_id AND flow_name = $flow",
            {"update_id": plant["details"]["update_ids"][-1], "flow": plant["details"]["flow"]},
        ).fetchone()
        assert dataset
        found = con.execute(_DOWNSTREAM, {"dataset": dataset[0]}).fetchall()
        told = {(flow["pipeline_id"], flow["flow"]) for flow in plant["details"]["downstream"]}
        assert set(found) == told != set()


@pytest.mark.parametrize(
    ("rule", "plants"),
    [
        ("request_failed", ["still_failing"]),  # R-RUN-05; a retry that runs may still heal it
        ("pass_rate_low", ["low_pass_rate", "decaying_rule"]),  # R-QUAL-02: below 99 % in the latest update
        ("rows_zero", ["zero_rows"]),  # R-ROW-04: not reported is not zero
        ("flow_stalled", ["stalled"]),  # R-NEW-05
        ("recomputed_in_full", ["full_recompute"]),  # R-NEW-07
        ("expectation_lost", ["rule_vanished", "rule_never_evaluated"]),
        ("pipeline_silent", ["stale"]),
    ],
)
def test_rules_find_the_planted_and_nothing_else(
    demo: Any, found: dict[str, set[str]], rule: str, plants: list[str]
) -> None:
    assert found[rule] == _planted(demo[0], *plants) != set()


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
    assert [secret for secret in truth["secrets"] if secret.encode() in stored] == []
    con = connect(warehouse, *STANDING, *TABLES)
    for table in (*STANDING, *TABLES):
        holds = f'SELECT count(*) FROM "{table.name}" AS t WHERE regexp_matches(t::VARCHAR, $secret)'
        assert con.execute(holds, {"secret": "|".join(truth["secrets"])}).fetchone() == (0,), table.name
