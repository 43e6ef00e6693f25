"""Quality checks: each kind worked out by hand, on both engines, in one pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from monitoring_platform.recording import has_schema, in_range, not_null, row_count
from tests.conftest import HAS_SPARK, by
from tests.recording import scenario

ROW_CHECKS = {
    # rows checked, rows failed, rows unknown, percent, passed
    "id_not_null": [4, 1, 0, 25.0, False],
    "amount_in_range": [4, 1, 1, 25.0, False],
    "kind_in_set": [4, 1, 0, 25.0, False],
    "code_matches": [4, 1, 1, 25.0, False],
    "row_count": [4, 0, 0, 0.0, True],
    "many": [4, 4, 0, 50.0, False],  # 4 of at least 8 are missing
    "few": [4, 2, 0, 100.0, False],  # 2 more than at most 2
    "row_count_change": [4, None, 0, None, True],  # there was no run before
    "at_fresh": [4, None, 0, 0.0, True],  # 12 hours old
    "fresher": [4, None, 0, 100.0, False],
    "schema": [4, None, 0, 100.0, False],
    "kind_refers_to": [4, 1, 0, 25.0, False],
    "amount < 0 and id = 2": [4, 1, 1, 25.0, False],
}
EMPTY = {
    name: [0, None if found[1] is None else 0, 0, None if found[3] is None else 0.0, True]
    for name, found in ROW_CHECKS.items()
} | {
    "row_count": [0, 3, 0, 100.0, False],  # E-40
    "many": [0, 8, 0, 100.0, False],
    "at_fresh": [0, None, 0, 100.0, False],
    "fresher": [0, None, 0, 100.0, False],
    "schema": [0, None, 0, 100.0, False],
    "id_unique": [0, 0, 0, 0.0, True],
}


@pytest.fixture(
    scope="module",
    params=["embedded", pytest.param("spark", marks=pytest.mark.skipif(not HAS_SPARK, reason="no Java"))],
)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, dict[str, Any]]:
    """The scenario on one engine: the embedded one here, Apache Spark in a process of its own."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "embedded":
        return request.param, folder, scenario.run("embedded", folder)
    command = [sys.executable, "-m", "tests.recording.scenario", "spark", str(folder)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return request.param, folder, json.loads(done.stdout.splitlines()[-1])


def test_each_kind(ran: tuple[str, Path, dict[str, Any]]) -> None:
    """R-OWN-07, R-OWN-08, E-40, E-41: counts, unknown rows and verdicts, of rows, of the whole and of an empty frame."""
    _, _, said = ran
    pairs = {"id_unique": [4, 1, 1, 25.0, False], "id_code_unique": [4, 0, 2, 0.0, True]}
    assert said["checked"] == ROW_CHECKS | pairs
    assert said["empty"] == EMPTY
    assert said["write"] == ROW_CHECKS
    assert said["plain write"] == {
        k: v for k, v in ROW_CHECKS.items() if k not in ("amount_in_range", "kind_refers_to")
    }
    assert said["problems"] == []


def test_one_pass(ran: tuple[str, Path, dict[str, Any]]) -> None:
    """R-OWN-09, E-37: 15 checks compute the frame once; on Spark the write itself is that pass, quarantine included."""
    engine, _, said = ran
    assert said["scans of a check"] == 1
    assert said.get("kept by the job") is not False
    # The embedded engine observes nothing and keeps nothing: the aggregate, the target, and what is in quarantine.
    assert (said["scans of a plain write"], said["scans of a write"]) == ((1, 1) if engine == "spark" else (2, 3))


def test_quarantine(ran: tuple[str, Path, dict[str, Any]]) -> None:
    """R-OWN-10, E-36: what is not known to be good is in quarantine; both parts together are the frame."""
    _, folder, _ = ran
    good = DeltaTable(str(folder / "target")).to_pyarrow_table().to_pylist()
    bad = DeltaTable(str(folder / "target_quarantine")).to_pyarrow_table().to_pylist()
    assert by(good, "id", "amount") == [(1, 10.0), (None, 5.0)]
    assert by(bad, "id", "amount", "quality_flag", "failed_checks") == [
        (2, -1.0, "fail", "amount_in_range"),
        (2, None, "fail", "amount_in_range, kind_refers_to"),
    ]
    assert set(good[0]) == {"id", "code", "amount", "kind", "at"}
    assert len(DeltaTable(str(folder / "plain")).to_pyarrow_table()) == 4


def test_samples(ran: tuple[str, Path, dict[str, Any]]) -> None:
    """Rows that fail are kept if that is asked for: so many, with what they failed, redacted, in one more look."""
    _, folder, said = ran
    assert said["samples of those above"] == []  # nothing was asked for
    assert said["scans of a check with samples"] == 2  # and nothing is left of the frame that was kept for the write
    found = sorted((row["row"] for row in said["samples"]), key=lambda row: (row["id"] or 9, row["amount"] or 9))
    assert found == [
        {
            "id": 2, "code": "b", "amount": -1.0, "kind": "y", "at": "2026-01-02 00:00:00",
            "failed_checks": "amount_in_range, amount < 0 and id = 2",
        },
        {
            "id": 2, "code": None, "amount": None, "kind": "q", "at": "2026-01-03 00:00:00",
            "failed_checks": "kind_in_set, kind_refers_to",
        },
        {
            "id": None, "code": "password=[REDACTED]", "amount": 5.0, "kind": "x", "at": None,
            "failed_checks": "id_not_null, code_matches",
        },
    ]  # fmt: skip
    assert {row["dataset"] for row in said["samples"]} == {"things"}
    assert said["more samples"] == 1  # of a frame without failures none, and one where one is asked for
    events = DeltaTable(str(folder / "records/pipeline_run_events")).to_pyarrow_table().to_pylist()
    (told,) = (row for row in events if row["step"] == "all" and row["checks"])
    quality = json.loads(told["details"])["flow_progress"]["data_quality"]
    assert quality["samples"][:3] == said["samples"] and len(quality["samples"]) == 4


def test_change_since_the_last_run(ran: tuple[str, Path, dict[str, Any]]) -> None:
    """R-OWN-08: 6 rows after 4 are 50 % more; a check of another name has no run before."""
    _, _, said = ran
    assert said["change"] == [
        [6, 2, 50.0, False, "4 rows in the last run"],
        [6, None, None, True, "no earlier run to compare with"],
    ]


def test_one_check_by_hand(ran: tuple[str, Path, dict[str, Any]]) -> None:
    """R-OWN-07: 1 of 100 passes at 1.0 and fails at 0.5; volume compares numbers; nulls are counted apart."""
    _, folder, said = ran
    assert said["by hand"] == [True, False, False, True, True]
    stored = [
        r
        for r in DeltaTable(str(folder / "records/pipeline_quality_checks")).to_pyarrow_table().to_pylist()
        if r["run_id"] == "r"
    ]
    assert by(stored, "check_name", "rows_checked", "rows_failed", "failure_pct", "threshold_pct", "passed") == [
        ("c1", 100, 1, 1.0, 1.0, True),
        ("c2", 100, 1, 1.0, 0.5, False),
        ("c3", 100, 1, 0.9901, 0.0, False),
        ("c4", 0, 0, 0.0, 0.0, True),
        ("c5", 100, 0, 0.0, 0.0, True),
    ]
    events = DeltaTable(str(folder / "records/pipeline_run_events")).to_pyarrow_table().to_pylist()
    notes = {c["name"]: c["note"] for row in events for c in row["checks"] or () if row["run_id"] == "r"}
    assert (notes["c4"], notes["c5"]) == ("no rows", "3 rows could not be judged: no value")


@pytest.mark.skipif(not HAS_SPARK, reason="no Java")
def test_records_in_a_catalog(ran: tuple[str, Path, dict[str, Any]]) -> None:
    """R-OWN-01, 02, 03, 06, E-34, E-43: schema and tables are made, and written through the job's session."""
    engine, _, said = ran
    if engine != "spark":
        pytest.skip("the embedded engine has no catalog")
    catalog = said["catalog"]
    assert catalog["columns"]["pipeline_metrics"] == [
        ["run_id", "string"], ["pipeline_name", "string"], ["pipeline_version", "string"], ["started_at", "timestamp"],
        ["completed_at", "timestamp"], ["duration_minutes", "double"], ["rows_processed", "bigint"],
        ["rows_quarantined", "bigint"], ["slo_target_minutes", "int"], ["slo_met", "boolean"], ["status", "string"],
        ["error_message", "string"],
    ]  # fmt: skip
    assert catalog["metrics"] == [["success", True, "2026-01-03T12:00:00"]] * 2
    assert catalog["checks"] == [["row_count", 3, True]] * 2 + [["row_count_change", 3, True]] * 2
    assert [mode for _, mode in catalog["history"]][:2] == ["Append", "Append"]
    assert catalog["problems"] == []


def test_what_cannot_be_asked() -> None:
    """Only checks of rows can put rows into quarantine, a threshold is a percentage, and a range has a limit."""
    for make in (
        lambda: in_range("a"),
        lambda: row_count(1, quarantine=True),
        lambda: has_schema({}, quarantine=True),
        lambda: not_null("a", threshold_pct=101),
    ):
        with pytest.raises(ValueError):
            make()
