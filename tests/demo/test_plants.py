"""What is planted in the demo fleet is in its logs, exactly as the truth file tells."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.demo.reading import END, Row, readable


def _plants(demo: tuple[Path, Row], kind: str) -> list[Row]:
    return [plant for plant in demo[1]["planted"] if plant["kind"] == kind]


def _details(demo: tuple[Path, Row], kind: str) -> tuple[str, Row]:
    (plant,) = _plants(demo, kind)
    return plant["pipeline_id"], plant["details"]


def _bodies(events: list[Row], event_type: str, pipeline: str | None = None) -> Iterator[tuple[Row, Row]]:
    """Event and body of every event of a type, in the order of time."""
    for event in sorted(events, key=lambda event: event["at"]):
        if event["event_type"] == event_type and pipeline in (None, event["origin"]["pipeline_id"]):
            yield event, event["details"].get(event_type, {})


def test_views_are_refreshed_as_the_truth_says(demo: tuple[Path, Row], events: list[Row]) -> None:
    """A first build is complete because no change set is there yet; later on only the planted view is."""
    found: dict[tuple[str, str], list[tuple[str, str, str]]] = defaultdict(list)
    for event, body in _bodies(events, "planning_information"):
        origin, techniques = event["origin"], body["technique_information"]
        chosen = next(each["maintenance_type"] for each in techniques if each.get("is_chosen"))
        issue = techniques[0].get("incrementalization_issues", [{}])[0].get("issue_type", "")
        found[origin["pipeline_id"], origin["flow_name"]].append((origin["update_id"], chosen, issue))
    classes = {"MAINTENANCE_TYPE_COMPLETE_RECOMPUTE": "full", "MAINTENANCE_TYPE_NO_OP": "no_op"}
    told = {
        (pipeline, flow, update): technique
        for pipeline, updates in demo[1]["decisions"].items()
        for update, flows in updates.items()
        for flow, technique in flows.items()
    }
    assert told == {
        (pipeline, flow, update): classes.get(chosen, "incremental")
        for (pipeline, flow), planned in found.items()
        for update, chosen, _ in planned
    }
    watched, recompute = _details(demo, "full_recompute")
    full = demo[1]["runs"]
    for (pipeline, flow), planned in found.items():
        assert planned[0][2] == "CHANGE_SET_MISSING"
        for update, chosen, issue in planned[1:]:
            if chosen in classes and classes[chosen] == "full" and not full[pipeline][update]["is_full_refresh"]:
                assert (pipeline, flow) == (watched, recompute["flow"])
                assert issue == recompute["reason"].split(" ")[0]


def test_planted_recompute_takes_longer_and_changes_the_flow_id(demo: tuple[Path, Row], events: list[Row]) -> None:
    pipeline, recompute = _details(demo, "full_recompute")
    assert min(recompute["run_seconds_since"]) > max(recompute["run_seconds_before"]) + 240
    assert recompute["flow_id_changed"]
    assert recompute["full_runs"] == len(recompute["run_seconds_since"])
    text = repr([body for _, body in _bodies(events, "planning_information", pipeline)])
    assert recompute["offending_expression"] in text
    assert recompute["offending_table"] in text


def test_flow_ids_change_as_the_truth_says(demo: tuple[Path, Row], events: list[Row]) -> None:
    seen: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for event, _ in _bodies(events, "flow_progress"):
        origin = event["origin"]
        if origin.get("flow_id"):
            told = seen[origin["pipeline_id"], origin["flow_name"]]
            if not told or told[-1] != (origin["update_id"], origin["flow_id"]):
                told.append((origin["update_id"], origin["flow_id"]))
    found = {
        (pipeline, after[0], flow, before[0])
        for (pipeline, flow), told in seen.items()
        for before, after in pairwise(told)
        if before[1] != after[1]
    }
    resets = {p: told for p, told in demo[1]["resets"].items() if told}
    assert found == {
        (p, reset["update_id"], reset["flow"], reset["previous_update_id"])
        for p, told in resets.items()
        for reset in told
    }
    pipeline, lost = _details(demo, "lost_checkpoint")
    assert {p for p, told in resets.items() if any(reset["explanation"] == "reset" for reset in told)} == {pipeline}
    assert resets[pipeline] == [lost]


def test_schema_changes_once(demo: tuple[Path, Row], events: list[Row]) -> None:
    """One column comes, one goes, one gets another type; every other dataset keeps its 4 to 8 columns."""
    schemas: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for event, body in _bodies(events, "dataset_definition"):
        columns = {column["name"]: column["data_type"] for column in body.get("schema", ())}
        told = schemas[event["origin"]["pipeline_id"], event["origin"]["dataset_name"]]
        if columns and columns not in told:
            told.append(columns)
    assert all(4 <= len(columns) <= 8 for told in schemas.values() for columns in told)
    pipeline, change = _details(demo, "schema_change")
    changed = {key: told for key, told in schemas.items() if len(told) > 1}
    assert list(changed) == [(pipeline, change["dataset"])]
    before, after = changed[pipeline, change["dataset"]]
    assert {(c["column"], c["old_type"], c["new_type"]) for c in change["columns"]} == {
        (name, before.get(name), after.get(name))
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name)
    }
    assert sorted(c["change"] for c in change["columns"]) == ["added", "dropped", "type_changed"]


def test_rules_live_as_planted(demo: tuple[Path, Row], events: list[Row]) -> None:
    def defined(kind: str) -> tuple[Row, list[dict[str, str]]]:
        pipeline, details = _details(demo, kind)
        return details, [
            {rule["name"]: rule["action"] for rule in body["expectations"]}
            for event, body in _bodies(events, "dataset_definition", pipeline)
            if event["origin"]["dataset_name"] == details["dataset"]
        ]

    told, rules = defined("rule_vanished")
    assert told["expectation"] in rules[0]
    assert set(rules[-1]) == set(rules[0]) - {told["expectation"]}
    told, rules = defined("rule_renamed")
    assert set(rules[-1]) == set(rules[0]) - {told["expectation"]} | {told["renamed_to"]}
    told, rules = defined("rule_action_changed")
    assert (rules[0][told["expectation"]], rules[-1][told["expectation"]]) == ("ALLOW", "DROP")
    told, rules = defined("rule_never_evaluated")
    assert all(told["expectation"] in each for each in rules)
    pipeline = _details(demo, "rule_never_evaluated")[0]
    judged = {e["expectation"] for e in demo[1]["expectations"] if e["pipeline_id"] == pipeline}
    assert judged
    assert told["expectation"] not in judged


def test_backlogs_are_as_planted(demo: tuple[Path, Row], events: list[Row]) -> None:
    """One grows, one stands still while nothing is written, one waits for a pipeline that does nothing more."""

    def readings(pipeline: str, flow: str) -> list[tuple[datetime, int]]:
        return [
            (event["at"], body["metrics"]["backlog_bytes"])
            for event, body in _bodies(events, "flow_progress", pipeline)
            if event["origin"].get("flow_name") == flow and "backlog_bytes" in body.get("metrics", {})
        ]

    pipeline, told = _details(demo, "growing_backlog")
    waiting = readings(pipeline, told["flow"])
    assert waiting[-1][1] == told["latest_backlog_bytes"]
    assert waiting[-1][1] > 4 * next(amount for at, amount in waiting if at > END - timedelta(hours=24))
    pipeline, told = _details(demo, "stuck_backlog")
    assert {amount for _, amount in readings(pipeline, told["flow"])} == {told["latest_backlog_bytes"]}
    written = [flows[told["flow"]] for flows in demo[1]["flows"][pipeline].values() if told["flow"] in flows]
    assert written
    assert not any((flow["rows_output"] or 0) + (flow["rows_upserted"] or 0) for flow in written)
    pipeline, told = _details(demo, "stalled")
    for name, flow in told["flows"].items():
        last = datetime.fromisoformat(flow["last_batch_ts"].replace("Z", "+00:00"))
        assert timedelta(hours=8) < END - last < timedelta(hours=11)
        at, waiting_now = readings(pipeline, name)[-1]
        assert END - at < timedelta(hours=2)
        assert waiting_now == flow["backlog_bytes"] > 0


def test_graph_crosses_pipelines(demo: tuple[Path, Row], events: list[Row]) -> None:
    """Gold reads silver, silver reads bronze, all of it by somebody else's name; what fails is always read."""
    truth = demo[1]
    makers = {e["output"]: p for p, graph in truth["lineage"].items() for e in graph["edges"] if e["output"]}
    layers = {p: entry["name"].split("_")[0] for p, entry in truth["pipelines"].items()}
    read: dict[str, set[str]] = defaultdict(set)
    for pipeline, graph in truth["lineage"].items():
        outside = [edge["input"] for edge in graph["edges"] if makers.get(edge["input"], pipeline) != pipeline]
        read[layers[pipeline]] |= {name.split(".")[1] for name in outside}
        assert outside or layers[pipeline] in ("bronze", "gateway")
    assert {layer: names for layer, names in read.items() if names} == {"silver": {"bronze"}, "gold": {"silver"}}
    assert all(plant["details"]["downstream"] for plant in _plants(demo, "still_failing"))
    found = {
        (event["origin"]["pipeline_id"], event["origin"]["update_id"], event["origin"]["flow_name"], name)
        for event, body in _bodies(events, "flow_definition")
        for name in body["input_datasets"]
    }
    edges = [(p, update, e) for p, g in truth["lineage"].items() for update in g["update_ids"] for e in g["edges"]]
    assert len(found) == len(edges)
    spelled = {key[:3]: key[3].replace("`", "").split(".")[-1] for key in found}
    for pipeline, update, edge in edges:
        if len([e for e in truth["lineage"][pipeline]["edges"] if e["flow"] == edge["flow"]]) == 1:
            assert spelled[pipeline, update, edge["flow"]] == edge["input"].split(".")[-1]


def test_a_sink_is_written(demo: tuple[Path, Row], events: list[Row]) -> None:
    pipeline, told = _details(demo, "sink")
    definitions = [
        b for e, b in _bodies(events, "flow_definition", pipeline) if e["origin"]["flow_name"] == told["flow"]
    ]
    assert {body["output_sink"] for body in definitions} == {told["sink"]}
    assert not any("output_dataset" in body for body in definitions)
    options = [body["options"][told["redacted_option"]] for _, body in _bodies(events, "sink_definition", pipeline)]
    assert options
    assert all(any(secret in option for secret in demo[1]["secrets"]) for option in options)


def test_one_error_in_several_pipelines(demo: tuple[Path, Row]) -> None:
    """Same code, and no two messages alike."""
    plants = _plants(demo, "shared_error")
    assert len({plant["pipeline_id"] for plant in plants}) == 3
    assert len({plant["details"]["error_message"] for plant in plants}) == 3
    assert len({plant["details"]["error_class"] for plant in plants}) == 1
    groups = Counter(f["root_error"] for failed in demo[1]["failures"].values() for f in failed.values())
    assert groups[plants[0]["details"]["error_class"]] == 3


def test_a_refusal_is_no_failure_of_the_run_beside_it(demo: tuple[Path, Row]) -> None:
    pipeline, told = _details(demo, "refused")
    runs = demo[1]["runs"][pipeline]
    refused = runs[told["update_id"]]
    assert refused["status"] == "FAILED"
    assert demo[1]["failures"][pipeline][told["update_id"]]["kind"] == "refused"
    assert any(run["start_ts"] < refused["start_ts"] < run["end_ts"] for run in runs.values())


def test_rare_events_are_there(demo: tuple[Path, Row], events: list[Row]) -> None:
    types = Counter(event["event_type"] for event in events)
    _, told = _details(demo, "notices")
    assert types["deprecation"] + types["behavior_change_in_spark_connect"] == sum(told["codes"].values())
    assert types["hook_progress"] == sum(told["hooks"].values())
    assert types["cluster_utilization"]
    assert types["cluster_resources"]
    assert {body["type"] for _, body in _bodies(events, "operation_progress")} == {
        "AUTO_LOADER_LISTING",
        "CDC_SNAPSHOT",
    }
    assert _details(demo, "slow")[1]["listing_seconds"] == 420


def test_unknown_members_and_values_are_counted(demo: tuple[Path, Row], events: list[Row]) -> None:
    pipeline, told = _details(demo, "unknown_details")
    bodies = [body for _, body in _bodies(events, "flow_progress", pipeline)]
    assert told["drift"] == {
        "details.flow_progress.status=THROTTLED": sum(body.get("status") == "THROTTLED" for body in bodies),
        "details.flow_progress.metrics.num_input_files": sum(
            "num_input_files" in body.get("metrics", {}) for body in bodies
        ),
    }
    pipeline, told = _details(demo, "extra_column")
    assert told["drift"]["column.archive_note"] == sum("archive_note" in event for event in events)


def test_planted_figures_are_what_they_promise(demo: tuple[Path, Row]) -> None:
    told = {plant["kind"]: plant["details"] for plant in demo[1]["planted"]}
    assert told["slow"]["seconds"] == pytest.approx(660, abs=45)
    assert told["slow"]["seconds_before"] == pytest.approx([240] * len(told["slow"]["seconds_before"]), abs=40)
    assert told["zero_rows"]["rows_written"] == 0
    assert min(told["zero_rows"]["rows_written_before"]) > 0
    assert told["low_pass_rate"]["pass_rate_pct"] < 99
    rates = [rate for _, rate in told["decaying_rule"]["pass_rates_pct"]]
    assert [round(rates[0], 1), round(rates[-1], 1)] == [99.9, 95.0]
    assert told["retry_running"]["states"] == ["FAILED", "RUNNING"]
    assert told["recovered"]["states"] == ["FAILED", "FAILED", "COMPLETED"]
    last = datetime.fromisoformat(told["stale"]["last_event_ts"].replace("Z", "+00:00"))
    assert timedelta(days=6) <= END - last < timedelta(days=6, hours=1)
    assert told["night_errors"]["update_ids"]
    assert all("T03:" in at for at in told["night_errors"]["at"])
    assert told["unknown_event_type"]["events"] > 0


def test_three_lines_are_broken(demo: tuple[Path, Row]) -> None:
    folder, truth = demo
    details = next(plant["details"] for plant in truth["planted"] if plant["kind"] == "broken_lines")
    lines = (folder / details["file"]).read_bytes().splitlines()
    assert truth["quarantined"] == 3
    unreadable = [n for n, line in enumerate(lines, 1) if not list(readable([line]))]
    undated = [n for n, line in enumerate(lines, 1) if b'"timestamp":"string"' in line]
    assert sorted(unreadable + undated) == details["lines"]
