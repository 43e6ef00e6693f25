"""The evaluation of alarms: the fleet's truth agrees with its logs, and scores are those that one works out by hand."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from benchmarks.alert_fleet import Fault, generate, read_faults
from benchmarks.alert_score import Alarm, alarms_of, by_kind, repeated, score
from monitoring_platform.config import load
from tests.demo.reading import Row, rows_of_files

END = datetime(2026, 11, 8, 7, tzinfo=timezone.utc)
T0 = datetime(2026, 11, 1, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Fault]]:
    folder = tmp_path_factory.mktemp("fleet")
    return folder, generate(folder, pipelines=36, days=21, seed=5, end=END)["faults"]


@pytest.fixture(scope="module")
def rows(fleet: tuple[Path, list[Fault]]) -> list[Row]:
    return list(rows_of_files(fleet[0] / "logs"))


def _of(faults: list[Fault], kind: str) -> list[Fault]:
    return [fault for fault in faults if fault.kind == kind]


def _requests(rows: list[Row]) -> dict[str, list[tuple[datetime, str | None]]]:
    """Of each pipeline when each request ended, and the error if it failed, both by its last attempt."""
    ends: dict[tuple[str, str], tuple[datetime, str | None]] = {}
    for row in sorted(rows, key=lambda row: row["at"]):
        state = (row["details"].get("update_progress") or {}).get("state")
        if state in ("COMPLETED", "FAILED"):
            origin = row["origin"]
            error = row["error"]["exceptions"][0]["message"] if state == "FAILED" else None
            ends[origin["pipeline_id"], origin.get("request_id") or origin["update_id"]] = row["at"], error
    found: dict[str, list[tuple[datetime, str | None]]] = defaultdict(list)
    for (pipeline, _), end in ends.items():
        found[pipeline].append(end)
    return found


def test_what_fails_for_good_fails_in_its_time_and_is_well_after_it(
    fleet: tuple[Path, list[Fault]], rows: list[Row]
) -> None:
    """R-NEW-09: the truth is what the logs say; a fault can be known when its first request has failed."""
    requests = _requests(rows)
    faults = _of(fleet[1], "fails for good") + _of(fleet[1], "one cause in ten pipelines")
    assert len(faults) == 3
    for fault in faults:
        ends = [end for pipeline in fault.pipeline_ids for end in requests[pipeline] if end[0] >= fault.began_at]
        failed = [at for at, error in ends if error]
        assert fault.known_at == min(failed)
        assert max(failed) <= fault.ended_at
        assert any(at <= fault.ended_at + timedelta(days=1) for at, error in ends if not error)


def test_the_shared_cause_has_one_error_code(fleet: tuple[Path, list[Fault]], rows: list[Row]) -> None:
    """R-NEW-09: several pipelines with one code are one cause."""
    (shared,) = _of(fleet[1], "one cause in ten pipelines")
    requests = _requests(rows)
    errors = {
        pipeline: {error for at, error in requests[pipeline] if error and shared.began_at <= at <= shared.ended_at}
        for pipeline in shared.pipeline_ids
    }
    assert len(errors) == 3  # a tenth of the fleet
    assert len(set().union(*errors.values())) == 1
    assert all(errors.values())


def test_a_silent_pipeline_begins_nothing(fleet: tuple[Path, list[Fault]], rows: list[Row]) -> None:
    """R-NEW-09: silence is planted as no update at all."""
    (silent,) = _of(fleet[1], "falls silent")
    starts = [
        row["at"]
        for row in rows
        if row["origin"]["pipeline_id"] in silent.pipeline_ids and row["event_type"] == "create_update"
    ]
    assert [at for at in starts if silent.began_at <= at < silent.ended_at - timedelta(days=1)] == []
    assert any(at < silent.began_at for at in starts)


def test_pipelines_without_a_fault_never_fail_for_good(fleet: tuple[Path, list[Fault]], rows: list[Row]) -> None:
    """R-NEW-09: a request of an innocent fails at most in its maintenance window, Saturday 22:00 to Sunday 04:00."""
    guilty = {pipeline for fault in fleet[1] for pipeline in fault.pipeline_ids}
    failed = [at for pipeline, ends in _requests(rows).items() if pipeline not in guilty for at, error in ends if error]
    berlin = [at.astimezone(ZoneInfo("Europe/Berlin")) for at in failed]
    assert {(at.weekday(), at.hour) for at in berlin} <= {(5, 22), (5, 23), (6, 0), (6, 1), (6, 2), (6, 3)}


def test_the_configuration_is_valid_and_the_truth_can_be_read_back(fleet: tuple[Path, list[Fault]]) -> None:
    """R-NEW-06: the fleet has a deadline of 06:00 in Berlin on workdays, and a maintenance window."""
    folder, faults = fleet
    settings = load(folder / "monitoring.yaml")
    assert settings.time_zone == "Europe/Berlin"
    assert str(settings.slos[0].ready_by) == "06:00:00"
    assert settings.maintenance[0].weekdays == ("sat",)
    assert [(fault.kind, fault.pipeline_ids) for fault in read_faults(folder)] == [
        (fault.kind, fault.pipeline_ids) for fault in faults
    ]


def test_another_seed_gives_other_faults(fleet: tuple[Path, list[Fault]], tmp_path: Path) -> None:
    """R-NEW-09: nothing can be fitted to one fleet."""
    other = generate(tmp_path, pipelines=36, days=21, seed=6, end=END)["faults"]
    assert {fault.pipeline_ids for fault in other} != {fault.pipeline_ids for fault in fleet[1]}


def _fault(kind: str, pipeline: str, begin: int, end: int, *rules: str) -> Fault:
    return Fault(kind, (pipeline,), T0 + begin * HOUR, T0 + (begin + 1) * HOUR, T0 + end * HOUR, rules)


def _alarm(key: str, rule: str, hours: int, *pipelines: str) -> Alarm:
    return Alarm(key, rule, T0 + hours * HOUR, pipelines, "")


def test_score_by_hand() -> None:
    """R-NEW-09: two of three faults found, two of four incidents right."""
    faults = [
        _fault("fails", "a", 10, 20, "request_failed"),
        _fault("fails", "b", 10, 20, "request_failed"),
        _fault("slow", "c", 10, 20, "run_slow"),
    ]
    alarms = [
        _alarm("1", "request_failed", 12, "a"),
        _alarm("1", "request_failed", 14, "a", "b"),  # escalated to a second pipeline: finds the second fault
        _alarm("2", "rows_zero", 12, "a"),  # a rule that may not announce it
        _alarm("3", "run_slow", 45, "c"),  # more than a day after its end
        _alarm("4", "request_failed", 44, "b"),  # a day after its end
    ]
    result = score(faults, alarms, notifications=7)
    assert result.as_json() == {
        "recall": 0.6667,
        "precision": 0.5,
        "faults": 3,
        "found": 2,
        "incidents": 4,
        "false": 2,
        "notifications": 7,
        "false_by_rule": {"rows_zero": 1, "run_slow": 1},
    }
    assert by_kind(result) == [
        {"kind": "fails", "planted": 2, "found": 2, "median_hours_to_alarm": 2.0},
        {"kind": "slow", "planted": 1, "found": 0, "median_hours_to_alarm": None},
    ]


def _event(incident: str, hours: int, transition: str, **other: Any) -> dict[str, Any]:
    row = {"is_told": True, "severity": "warning", "pipeline_ids": ["a"], "title": "t"}
    return {"incident_id": incident, "at": T0 + hours * HOUR, "transition": transition, **row, **other}


def test_only_what_is_told_and_not_for_information_is_an_alarm() -> None:
    """R-NEW-09: of five transitions two are alarms."""
    events = [
        _event("1", 1, "opened"),
        _event("1", 2, "escalated", severity="error"),
        _event("1", 3, "resolved"),
        _event("2", 4, "opened", severity="info"),
        _event("2", 5, "opened", is_told=False),
    ]
    incidents = [{"incident_id": "1", "rule": "run_slow"}, {"incident_id": "2", "rule": "run_slow"}]
    assert [alarm.at for alarm in alarms_of(incidents, events, ("warning", "error"))] == [T0 + HOUR, T0 + 2 * HOUR]


def test_a_transition_told_twice_is_seen() -> None:
    """R-NEW-09: the same said again of the same incident; another pipeline, or an end between, makes it news."""
    events = [
        _event("1", 1, "opened"),
        _event("1", 2, "opened"),
        _event("2", 1, "opened"),
        _event("2", 2, "resolved"),
        _event("2", 3, "opened"),
        _event("3", 1, "escalated"),
        _event("3", 2, "escalated", pipeline_ids=["a", "b"]),
    ]
    assert repeated(events) == 1
