"""The demo fleet: the same every time, told truly, and carrying every problem that it promises."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from monitoring_platform.demo import Fleet, generate
from monitoring_platform.demo.planting import PLANTS
from tests.demo.reading import END, Row


def _iso(at: datetime) -> str:
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _flow_rows(events: list[Row]) -> Iterator[tuple[tuple[str, str, str], Row, Row]]:
    """Key of the flow, event and body of every flow_progress row of a real flow."""
    for event in events:
        origin, body = event["origin"], event["details"].get("flow_progress")
        flow = origin.get("flow_name")
        if body is not None and flow != "pipelines.flowTimeMetrics.missingFlowName":
            yield (origin["pipeline_id"], origin["update_id"], flow), event, body


def _counted(events: list[Row]) -> dict[tuple[str, str, str], Row]:
    """The counting rules written down a second time: deltas summed, batches by their maximum, other rows summed."""
    counters = {
        "num_output_rows": "rows_output",
        "num_upserted_rows": "rows_upserted",
        "num_deleted_rows": "rows_deleted",
    }
    batches: dict[tuple[Any, ...], int] = {}
    for key, event, body in _flow_rows(events):
        reported = {name: body.get("metrics", {}).get(metric) for metric, name in counters.items()}
        reported["rows_dropped"] = (body.get("data_quality") or {}).get("dropped_records")
        numbered = event["origin"].get("batch_id")
        for name, amount in reported.items():
            if amount is not None:
                batch = (*key, name, event["id"] if numbered is None else numbered)
                batches[batch] = max(batches.get(batch, 0), amount)
    totals: dict[tuple[str, str, str], Row] = defaultdict(dict)
    for (pipeline, update, flow, name, _), amount in batches.items():
        totals[pipeline, update, flow][name] = totals[pipeline, update, flow].get(name, 0) + amount
    return totals


def test_same_arguments_give_the_same_logs(demo: tuple[Path, Row], tmp_path: Path) -> None:
    folder, truth = demo
    assert generate(tmp_path, pipelines=40, days=3, end=END) == truth
    for path in sorted((folder / "logs").iterdir()):
        assert (tmp_path / "logs" / path.name).read_bytes() == path.read_bytes()
    tables = [path.name for path in sorted((folder / "delta_logs").iterdir()) if path.name != "broken_export"]
    assert len(tables) >= 6
    for name in tables:
        one, two = (DeltaTable(root / "delta_logs" / name) for root in (folder, tmp_path))
        assert one.version() == two.version()
        assert sorted(map(repr, one.to_pyarrow_table().to_pylist())) == sorted(
            map(repr, two.to_pyarrow_table().to_pylist())
        )
    for name in ("truth.json", "monitoring.yaml"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_another_seed_gives_another_fleet(demo: tuple[Path, Row], tmp_path: Path) -> None:
    other = generate(tmp_path, pipelines=5, days=1, seed=8, end=END)
    assert not set(other["pipelines"]) & set(demo[1]["pipelines"])


def test_distinct_events_are_those_of_the_truth(demo: tuple[Path, Row], rows: list[Row], events: list[Row]) -> None:
    truth = demo[1]
    assert len(events) == truth["events"]
    assert len(rows) == truth["events"] + truth["repeated_events"]
    assert truth["repeated_events"] > 0
    per_pipeline = Counter(event["origin"]["pipeline_id"] for event in events)
    assert per_pipeline == {id_: told["events"] for id_, told in truth["pipelines"].items()}


def test_some_events_come_after_newer_ones(demo: tuple[Path, Row]) -> None:
    table = next(p for p in sorted((demo[0] / "delta_logs").glob("event_log_*")) if DeltaTable(p).version() > 1)
    first, both = (DeltaTable(table, version=version).to_pyarrow_table().to_pylist() for version in (0, 1))
    known = {row["id"] for row in first}
    assert min(row["timestamp"] for row in both if row["id"] not in known) < max(row["timestamp"] for row in first)


def test_no_event_is_later_than_the_end(events: list[Row]) -> None:
    assert max(event["at"] for event in events) <= END


def test_flows_count_as_the_truth_says(demo: tuple[Path, Row], events: list[Row]) -> None:
    truth, counted = demo[1], _counted(events)
    told = {
        (pipeline, update, flow): figures
        for pipeline, updates in truth["flows"].items()
        for update, flows in updates.items()
        for flow, figures in flows.items()
    }
    statuses: dict[tuple[str, str, str], tuple[datetime, str]] = {}
    for key, event, body in _flow_rows(events):
        if body.get("status"):
            statuses[key] = max(statuses.get(key, (event["at"], "")), (event["at"], body["status"]))
    assert set(told) == {key for key, _, _ in _flow_rows(events)}
    for key, figures in told.items():
        reported = {name: amount for name, amount in figures.items() if amount is not None}
        assert reported == {"status": statuses[key][1], **counted.get(key, {})}


def test_runs_are_as_the_truth_says(demo: tuple[Path, Row], events: list[Row]) -> None:
    by_run = defaultdict(list)
    for event in events:
        if event["origin"].get("update_id"):
            by_run[event["origin"]["pipeline_id"], event["origin"]["update_id"]].append(event)
    told = {(p, u): run for p, runs in demo[1]["runs"].items() for u, run in runs.items()}
    assert set(told) == set(by_run)
    for key, run in told.items():
        states = [e for e in by_run[key] if e["event_type"] == "update_progress"]
        last = max(states, key=lambda event: event["at"])
        state = last["details"]["update_progress"]["state"].replace("CANCELLED", "CANCELED")
        ended = _iso(last["at"]) if state in ("COMPLETED", "FAILED", "CANCELED") else None
        assert (run["status"], run["end_ts"]) == (state, ended)
        assert run["start_ts"] == _iso(min(event["at"] for event in by_run[key]))
        assert run["error_count"] == sum(event["level"] == "ERROR" for event in by_run[key])
        requested = {event["origin"].get("request_id") for event in by_run[key]}
        assert requested in ({run["request_id"]}, {None})


def test_expectations_are_as_the_truth_says(demo: tuple[Path, Row], events: list[Row]) -> None:
    batches: dict[tuple[Any, ...], tuple[int, int]] = {}
    for (pipeline, update, flow), event, body in _flow_rows(events):
        number = event["origin"].get("batch_id")
        for rule in (body.get("data_quality") or {}).get("expectations", ()):
            key = (pipeline, update, rule["dataset"], rule["name"], flow, event["id"] if number is None else number)
            before = batches.get(key, (0, 0))
            batches[key] = (max(before[0], rule["passed_records"]), max(before[1], rule["failed_records"]))
    found: dict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for key, (passed, failed) in batches.items():
        found[key[:4]][0] += passed
        found[key[:4]][1] += failed
    told = {
        (e["pipeline_id"], e["update_id"], e["dataset"], e["expectation"]): [e["passed"], e["failed"]]
        for e in demo[1]["expectations"]
    }
    assert found == told


def test_requests_hold_their_attempts(demo: tuple[Path, Row]) -> None:
    for pipeline, asked in demo[1]["requests"].items():
        runs = demo[1]["runs"][pipeline]
        for request, told in asked.items():
            attempts = [run["attempt"] for run in runs.values() if run["request_id"] == request]
            assert sorted(attempts) == list(range(1, told["attempts"] + 1))
            assert runs[told["last_update_id"]]["status"] == told["outcome"]


def test_small_fleet_carries_one_of_each_problem(demo: tuple[Path, Row]) -> None:
    kinds = Counter(plant["kind"] for plant in demo[1]["planted"])
    assert kinds == Counter(PLANTS) + Counter(["broken_log", "extra_column"])


def test_only_the_planted_pipelines_fail_at_the_end(demo: tuple[Path, Row]) -> None:
    truth = demo[1]
    failing = set()
    for pipeline, runs in truth["runs"].items():
        normal = [run for run in runs.values() if run["kind"] == "normal"]
        if normal and max(normal, key=lambda run: run["start_ts"])["status"] == "FAILED":
            failing.add(pipeline)
    assert failing == {plant["pipeline_id"] for plant in truth["planted"] if plant["kind"] == "still_failing"}


def test_secrets_are_in_the_logs(demo: tuple[Path, Row], events: list[Row]) -> None:
    text = repr(events)
    assert demo[1]["secrets"]
    assert all(secret in text for secret in demo[1]["secrets"])


def test_nothing_planted_is_missing_from_a_big_fleet() -> None:
    plants = Counter(pipeline.plant for pipeline in Fleet.build(100, seed=7).pipelines if pipeline.plant)
    assert plants == Counter(PLANTS)


@pytest.mark.parametrize(("size", "days"), [(1, 1), (2, 2), (12, 1)])
def test_small_demos_are_made_too(tmp_path: Path, size: int, days: int) -> None:
    """A plant without room for its history does no harm."""
    assert len(generate(tmp_path, pipelines=size, days=days, seed=4, end=END)["pipelines"]) == size


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_fleet_of_any_size_has_unique_names_and_ids(size: int) -> None:
    fleet = Fleet.build(size, seed=7).pipelines
    assert len({p.id for p in fleet}) == len({p.name for p in fleet}) == size


def test_a_new_demo_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    """Also of the warehouse that was made of it: two fleets in one would be the truth of neither."""
    generate(tmp_path, pipelines=1, days=1, end=END)
    (tmp_path / "warehouse" / "pipelines").mkdir(parents=True)
    generate(tmp_path, pipelines=1, days=2, end=END)
    assert not (tmp_path / "warehouse").exists()


@pytest.mark.parametrize("name", ["logs", "delta_logs", "warehouse"])
def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(FileExistsError, match="choose another folder"):
        generate(tmp_path, pipelines=1, days=1, end=END)
    assert (tmp_path / name).exists()


def test_an_end_without_zone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="time zone"):
        generate(tmp_path, pipelines=1, days=1, end=datetime(2025, 11, 30))
