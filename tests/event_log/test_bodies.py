"""Typed bodies, drift and root causes: pure Python, values from the documented shapes (event_log.md, sections 4, 5, 8)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from monitoring_platform.event_log import details, drift, rootcause

MIDNIGHT = 1_767_225_600  # 2026-01-01T00:00:00Z


def facts(event_type: str, body: Any) -> dict[str, Any]:
    """Typed columns of one event."""
    return details.read(event_type, {event_type: body})[1]


# ---- bodies ----


def test_user_action() -> None:
    """R-AUD-01: who did what; a number is an id too."""
    assert facts("user_action", {"action": " START ", "user_name": "ann", "user_id": 42}) == {
        "user_action": {"action": "START", "user_name": "ann", "user_id": "42"}
    }


def test_operation_of_auto_loader() -> None:
    """R-FLOW-06: a listing; −1 is unknown, an absent duration stays null."""
    body = {
        "type": "auto_loader_listing",
        "status": "STARTED",
        "auto_loader_details": {"source_path": "/landing/orders", "num_files_listed": "1200"},
        "progress_percent": "12.5",
        "estimated_completion_ms": -1,
    }
    found = facts("operation_progress", body)["operation"]
    assert (found["type"], found["status"], found["duration_ms"]) == ("AUTO_LOADER_LISTING", "STARTED", None)
    assert (found["source_path"], found["num_files_listed"]) == ("/landing/orders", 1200)
    assert (found["progress_percent"], found["estimated_completion_ms"]) == (12.5, None)
    assert (found["target_table"], found["snapshot_ts"], found["snapshot_reason"]) == (None, None, None)


@pytest.mark.parametrize("name", ["target_table_name", "table_name"])
def test_snapshot_in_both_shapes(name: str) -> None:
    """Quirk 27: the target is called target_table_name or table_name; its time is epoch milliseconds."""
    snapshot = {name: "main.x.orders", "snapshot_timestamp": MIDNIGHT * 1000, "snapshot_reason": "INITIAL"}
    found = facts("operation_progress", {"type": "CDC_SNAPSHOT", "duration_ms": 900, "cdc_snapshot": snapshot})
    operation = found["operation"]
    assert (operation["target_table"], operation["snapshot_reason"]) == ("main.x.orders", "INITIAL")
    assert (operation["snapshot_ts"], operation["duration_ms"]) == (MIDNIGHT * 1_000_000, 900)


PROGRESS = {
    "id": "stream-1",
    "runId": "run-1",
    "name": "orders",
    "batchId": 7,
    "timestamp": "2026-01-01T00:00:00.500Z",
    "durationMs": {"triggerExecution": 1500, "addBatch": 900},
    "stateOperators": [{"numRowsTotal": 30}, {"numRowsTotal": 12}],
    "sources": [
        {
            "description": "Kafka[orders]",
            "startOffset": {"orders": {"0": 5}},
            "endOffset": '{"orders":{"0":9}}',
            "numInputRows": 4,
            "metrics": {"estimatedTotalBytesBehindLatest": "1000.0", "maxOffsetsBehindLatest": "17"},
        },
        {
            "description": "CloudFiles",
            "numInputRows": 6,
            "metrics": {"numBytesOutstanding": "24", "numFilesOutstanding": "3"},
            "latestOffsetTruncated": True,
        },
    ],
    "sink": {"description": "Delta[orders]", "numOutputRows": -1},
}


@pytest.mark.parametrize(
    "body", [{"progress": PROGRESS}, {"progress_json": json.dumps(PROGRESS)}, {"progress": json.dumps(PROGRESS)}]
)
def test_stream_progress_in_its_shapes(body: dict[str, Any]) -> None:
    """R-PEER-20: object and JSON text say the same: 4 + 6 rows read, 1,000 + 24 bytes behind, −1 rows written = unknown."""
    found = facts("stream_progress", body)["stream"]
    sources = found.pop("sources")
    assert found == {
        "stream_id": "stream-1",
        "run_id": "run-1",
        "name": "orders",
        "batch_id": 7,
        "progress_ts": MIDNIGHT * 1_000_000 + 500_000,
        "trigger_ms": 1500,
        "num_input_rows": 10,
        "num_output_rows": None,
        "sink": "Delta[orders]",
        "state_rows": 42,
        "backlog_bytes": 1024,
        "backlog_files": 3,
        "is_truncated": True,
    }
    assert (sources[0]["start_offset"], sources[0]["end_offset"]) == ('{"orders":{"0":5}}', '{"orders":{"0":9}}')
    assert [s["max_offsets_behind"] for s in sources] == [17, None]


def test_stream_progress_that_says_little_or_nothing() -> None:
    """R-PEER-20, event_log 9: no sources, no state: null, never 0; unreadable text leaves the column empty."""
    found = facts("stream_progress", {"progress": {"batchId": 0, "numInputRows": 0}})["stream"]
    assert (found["batch_id"], found["num_input_rows"], found["state_rows"], found["backlog_bytes"]) == (
        0,
        0,
        None,
        None,
    )
    assert (found["sources"], found["is_truncated"]) == (None, False)
    for body in ({"progress_json": "{"}, {"progress_json": "[1]"}, {}):
        assert facts("stream_progress", body) == {}


def test_planning_of_a_recompute() -> None:
    """R-LIN-02: chosen technique and the issue that prevented the other one; sizes come as floats with exponent."""
    issue = {
        "issue_type": "PLAN_NOT_INCREMENTALIZABLE",
        "prevent_incrementalization": True,
        "plan_not_incrementalizable_sub_type": "AGGREGATE_NOT_TOP_NODE",
        "expression_name": "rank",
        "operator_name": "Window",
        "table_information": {"table_name": "main.x.orders"},
    }
    body = {
        "technique_information": [
            {"incrementalization_issues": [issue, {"issue_type": "CDF_UNAVAILABLE"}]},
            {"maintenance_type": "MAINTENANCE_TYPE_ROW_BASED", "is_chosen": False, "is_applicable": "false"},
            {"maintenance_type": "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE", "is_chosen": True, "cost": 4.5e8},
        ],
        "source_table_information": [{"table_name": "main.x.orders", "full_size": 4.79e8, "change_size": "1E3"}],
        "target_table_information": {"table_name": "main.x.mv", "full_size": 100, "is_row_id_enabled": "true"},
    }
    found = facts("planning_information", body)["planning"]
    assert (found["chosen"], found["technique"]) == ("MAINTENANCE_TYPE_COMPLETE_RECOMPUTE", "full")
    assert found["reasons"] == "PLAN_NOT_INCREMENTALIZABLE (AGGREGATE_NOT_TOP_NODE), CDF_UNAVAILABLE"
    assert (found["offending_tables"], found["offending_expressions"]) == ("main.x.orders", "rank Window")
    assert [t["maintenance_type"] for t in found["techniques"]] == [
        "MAINTENANCE_TYPE_ROW_BASED",
        "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE",
    ]
    assert (found["techniques"][0]["is_applicable"], found["techniques"][1]["cost"]) == (False, 4.5e8)
    assert [(i["maintenance_type"], i["prevents"]) for i in found["issues"]] == [(None, True), (None, None)]
    assert (found["sources"][0]["full_size"], found["sources"][0]["change_size"]) == (479_000_000, 1000)
    assert (found["target"]["full_size"], found["target"]["is_row_id_enabled"]) == (100, True)


@pytest.mark.parametrize(
    ("chosen", "technique"),
    [
        ("MAINTENANCE_TYPE_COMPLETE_RECOMPUTE", "full"),
        ("COMPLETE_RECOMPUTE", "full"),
        ("MAINTENANCE_TYPE_NO_OP", "no_op"),
        ("no_op", "no_op"),
        ("MAINTENANCE_TYPE_GROUP_AGGREGATE", "incremental"),
        ("WINDOW_FUNCTION", "incremental"),
        (None, "unknown"),
    ],
)
def test_class_of_a_technique(chosen: str | None, technique: str) -> None:
    """event_log 5: the prefix may be missing; nothing chosen is unknown."""
    body = {"technique_information": [{"maintenance_type": chosen, "is_chosen": True}]}
    assert facts("planning_information", body)["planning"]["technique"] == technique


LOAD = {"num_task_slots": 8, "num_executors": 2, "avg_task_slot_utilization": 0.25, "avg_num_queued_tasks": 1.5}
SCALING = {"state": "RESIZING", "optimal_num_executors": 4, "latest_requested_num_executors": 3}


@pytest.mark.parametrize(
    ("event_type", "body"),
    [
        ("cluster_resources", {"task_slot_metrics": LOAD, "autoscale_info": SCALING}),
        ("cluster_resources", {**LOAD, **SCALING}),
        ("cluster_utilization", {**LOAD, **SCALING}),
    ],
)
def test_cluster_in_its_shapes(event_type: str, body: dict[str, Any]) -> None:
    """R-CLU-01, quirk 27: nested, flat and the older type say the same."""
    found = facts(event_type, body)["cluster"]
    assert (found["num_task_slots"], found["num_executors"]) == (8, 2)
    assert (found["avg_task_slot_utilization"], found["avg_num_queued_tasks"]) == (0.25, 1.5)
    assert (found["scaling_state"], found["optimal_num_executors"]) == ("RESIZING", 4)
    assert (found["requested_num_executors"], found["request_pending_seconds"]) == (3, None)


def test_autoscale() -> None:
    """R-CLU-01: its own names for state and request."""
    found = facts("autoscale", {"status": "succeeded", "requested_num_executors": "5", "optimal_num_executors": 6})
    cluster = found["cluster"]
    assert (cluster["scaling_state"], cluster["requested_num_executors"]) == ("SUCCEEDED", 5)
    assert (cluster["optimal_num_executors"], cluster["num_task_slots"]) == (6, None)


def test_flow_definition() -> None:
    """R-FLOW-09: inputs, output, type, language, once; names may come as objects; enums in upper case."""
    body = {
        "input_datasets": ["raw", {"name": "main.x.ref"}, None],
        "output_dataset": "clean",
        "flow_type": "append",
        "language": "sql",
        "once": "true",
        "schema": [{"name": "id", "data_type": "bigint", "comment": "key"}, {"name": "odd"}, {"data_type": "int"}],
    }
    found = facts("flow_definition", body)
    assert (found["output_dataset"], found["definition"]["output_sink"]) == ("clean", None)
    assert found["definition"]["input_datasets"] == ["raw", "main.x.ref"]
    assert (found["definition"]["flow_type"], found["definition"]["language"]) == ("APPEND", "SQL")
    assert found["definition"]["once"] is True
    assert found["fields"] == [
        {"name": "id", "data_type": "bigint", "comment": "key"},
        {"name": "odd", "data_type": None, "comment": None},
    ]
    sole = facts("flow_definition", {"input_datasets": "raw", "output_sink": "kafka"})["definition"]
    assert (sole["input_datasets"], sole["output_sink"], sole["once"]) == (["raw"], "kafka", None)


def test_schema_from_the_engines_json() -> None:
    """R-LIN-05: without `schema` the text `schema_json` counts; a struct type is kept as JSON text; broken text is none."""
    struct = {"type": "struct", "fields": []}
    fields = [
        {"name": "id", "type": "long", "nullable": True, "metadata": {"comment": "key"}},
        {"name": "address", "type": struct, "nullable": True, "metadata": {}},
    ]
    body = {"schema_json": json.dumps({"type": "struct", "fields": fields})}
    found = facts("dataset_definition", body)["fields"]
    assert found[0] == {"name": "id", "data_type": "long", "comment": "key"}
    assert (found[1]["name"], json.loads(found[1]["data_type"])) == ("address", struct)
    for text in ("{", "[]", '{"fields": []}'):
        assert facts("dataset_definition", {"schema_json": text})["fields"] is None


def test_dataset_definition_and_its_rules() -> None:
    """event_log 4: the policy of a rule is here, under one of three names; a nameless rule is none."""
    rules = [
        {"name": "a", "action": "drop"},
        {"name": "b", "policy": "FAIL"},
        {"name": "c", "on_violation": "Allow", "dataset": "d"},
        {"name": "d"},
        {"action": "DROP"},
    ]
    found = facts("dataset_definition", {"dataset_type": "view", "num_flows": "2", "expectations": rules})["dataset"]
    assert (found["dataset_type"], found["num_flows"]) == ("VIEW", 2)
    assert [(r["name"], r["action"]) for r in found["rules"]] == [
        ("a", "DROP"),
        ("b", "FAIL"),
        ("c", "ALLOW"),
        ("d", None),
    ]


@pytest.mark.parametrize(
    "body", [{"dbr_version": "18.0"}, {"runtime_version": {"dbr_version": "18.0"}}, {"dbr_version": 18.0}]
)
def test_runtime_in_both_shapes(body: dict[str, Any]) -> None:
    """Quirk 27; the version is text."""
    assert facts("runtime_details", body)["dbr_version"] == "18.0"


def test_hooks_and_notices() -> None:
    """event_log 4: enums that grow; deprecation says message, a behaviour change says issue."""
    assert facts("hook_progress", {"name": "to_slack", "status": "failed"})["hook"] == {
        "name": "to_slack",
        "text": "FAILED",
    }
    assert facts("deprecation", {"message": "OLD_THING"})["notice"]["name"] == "OLD_THING"
    assert facts("behavior_change_in_spark_connect", {"issue": "NEW_WAY"})["notice"]["name"] == "NEW_WAY"


@pytest.mark.parametrize("event_type", sorted(details.READERS))
@pytest.mark.parametrize("value", [None, 1, "x", [], [1], {"x": 1}])
def test_a_wrong_type_anywhere_is_no_error(event_type: str, value: Any) -> None:
    """event_log 9 and 11: code must survive other shapes; the text keeps what the columns cannot."""
    assert details.read(event_type, {event_type: value})[0] == event_type
    for name in drift.KNOWN.get(event_type, {}):
        assert details.read(event_type, {event_type: {name: value}})[0] == event_type


# ---- drift ----

KNOWN_EVENTS: list[tuple[str, Any]] = [
    ("create_update", {"cause": "JOB_TASK", "config": {"anything": {"goes": 1}}, "run_as": "ann"}),
    ("update_progress", {"state": "CANCELLED", "cancellation_cause": "WORKFLOW_CANCELLATION"}),
    ("flow_progress", {"status": "Running", "metrics": {"source_metrics": [{"source_name": "s", "backlog_files": 1}]}}),
    ("flow_progress", {"data_quality": {"dropped_records": 0, "expectations": [{"name": "r", "passed_records": 1}]}}),
    ("operation_progress", {"type": "CDC_SNAPSHOT", "cdc_snapshot": {"table_name": "t"}}),
    ("stream_progress", {"progress": PROGRESS}),
    ("planning_information", {"technique_information": [{"maintenance_type": "ROW_BASED", "cost": 1.0}]}),
    ("cluster_resources", {"task_slot_metrics": LOAD, "autoscale_info": SCALING}),
    ("sink_definition", {"format": "kafka", "options": {"topic": "t"}}),
    ("flow_definition", {"schema": [{"name": "a", "path": ["a"]}], "spark_conf": [{"key": "a", "value": "b"}]}),
    ("deprecation", {"message": "AN_ENUM_THAT_GROWS"}),
]


@pytest.mark.parametrize(("event_type", "body"), KNOWN_EVENTS)
def test_documented_events_are_no_drift(event_type: str, body: Any) -> None:
    """event_log 4 and 5: enums compare case-insensitively, free-form parts are not looked into."""
    assert drift.unknown(event_type, {event_type: body}, None) is None


def test_unknown_things_are_named() -> None:
    """event_log 4 and 11: types, members at any depth, enum values, other top-level keys."""
    rule = {"name": "r", "passed_records": 1, "skipped_records": 2}
    body = {"status": "Dreaming", "metrics": {"num_new": 1}, "data_quality": {"expectations": [rule, rule]}}
    assert drift.unknown("flow_progress", {"flow_progress": body, "novel": {}}, None) == [
        "details.flow_progress.data_quality.expectations.skipped_records",
        "details.flow_progress.metrics.num_new",
        "details.flow_progress.status=Dreaming",
        "details.novel",
    ]
    assert drift.unknown("graph_definition", {"graph_definition": {"x": 1}}, None) == ["event_type=graph_definition"]
    assert drift.unknown(None, None, None) == ["event_type"]
    issue = {"issue_type": "MOON_PHASE"}
    planning = {"technique_information": {"maintenance_type": "MAGIC", "incrementalization_issues": [issue]}}
    assert drift.unknown("planning_information", {"planning_information": planning}, None) == [
        "details.planning_information.technique_information.incrementalization_issues.issue_type=MOON_PHASE",
        "details.planning_information.technique_information.maintenance_type=MAGIC",
    ]


def test_new_columns_and_members_of_origin() -> None:
    """event_log 1.2 and 11: a value that only did not fit is no new member; the undocumented one that was seen is none."""
    known = {"update_progress": {"state": "RUNNING"}}
    extra = {"origin": {"batch_id": "many", "planet": "mars", "source_code_location": {}}, "level": 3, "novel": 1}
    assert drift.unknown("update_progress", known, extra) == ["column.novel", "origin.planet"]
    assert drift.unknown("update_progress", known, {"origin": {"batch_id": "many"}}) is None


def test_findings_are_few_and_short() -> None:
    """event_log 9: names from logs are data of any size."""
    body = {f"{n:02d}" + "x" * 500: n for n in range(50)}
    found = drift.unknown("user_action", {"user_action": body}, None)
    assert found is not None
    assert (len(found), found[0]) == (20, "details.user_action.00" + "x" * 118)


# ---- root causes ----

MARK = "[REDACTED]"


def root(*messages: str | None, message: str | None = None, **last: str) -> dict[str, Any]:
    """The root error of exceptions with these messages, `last` are further members of the deepest one."""
    exceptions: list[dict[str, Any]] = [{"message": text} for text in messages]
    if last:
        exceptions[-1].update(last)
    found = rootcause.root_error(exceptions, message, MARK)
    assert found is not None
    return found


def test_the_deepest_cause_counts() -> None:
    """event_log 6.9: code and SQL state come from the deepest exception that has one."""
    found = root(
        "[OUTER] Flow failed", "[DATA.SUB] bad row. SQLSTATE: 22018", "For input string: x", class_name="java.lang.X"
    )
    assert (found["message"], found["class_name"]) == ("For input string: x", "java.lang.X")
    assert (found["error_class"], found["sql_state"]) == ("DATA.SUB", "22018")


def test_code_given_in_a_field_or_nowhere() -> None:
    """R-PEER-07: error_class and sql_state of the system table; a redaction mark is no code."""
    given = root("boom", error_class="GIVEN", sql_state="42000")
    assert (given["error_class"], given["sql_state"]) == ("GIVEN", "42000")
    assert root(f"{MARK} boom")["error_class"] is None
    assert root("boom [NOT_AT_START]")["error_class"] is None


def test_errors_without_exceptions() -> None:
    """event_log 6.9: ERROR rows may lack exceptions: the event's message, its code included; without both there is none."""
    found = rootcause.root_error([], "[CLUSTER_LAUNCH] no nodes", MARK)
    assert found is not None
    assert (found["message"], found["error_class"], found["class_name"]) == (
        "[CLUSTER_LAUNCH] no nodes",
        "CLUSTER_LAUNCH",
        None,
    )
    assert rootcause.root_error([], None, MARK) is None
    assert root(None, class_name="java.lang.X", message="Flow failed")["message"] == "Flow failed"


SAME = [
    ("Update 3fa85f has failed.", "Update 123456 has failed."),
    ("Update 3fa85f64-5717-4562-b3fc-2c963f66afa6 lost", "Update 11111111-2222-3333-4444-555555555555 lost"),
    ("Table `main`.`x`.`orders` not found", "Table `items` not found"),
    ("Column 'price' is null", "Column 'it''s' is null"),
    ("Can't find 'price'", "Can't find 'amount'"),
    ("Cannot read s3://a/b/c.parquet, retrying", "Cannot read abfss://x@y.net/z, retrying"),
    ("No such file /mnt/a/b.json", "No such file /Volumes/main/x/y"),
    ("main.sales.orders is locked", "main.hr.people is locked"),
    ("Timed out at 2026-01-01T03:00:00.123Z after 30 s", "Timed out at 2026-02-03 04:05:06 after 1,200.5 s"),
    ("Row 1:\n  bad", "Row 22: bad"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_the_same_error_elsewhere_has_the_same_fingerprint(one: str, other: str) -> None:
    """R-NEW-09, R-ERR-02: ids (whole or the first six digits), quoted names, paths, times and numbers do not matter."""
    assert root(one)["fingerprint"] == root(other)["fingerprint"]


DIFFERENT = [
    "[A] boom",
    "[B] boom",
    "boom",
    "bang",
    "Column 'a' not found",
    "Table 'a' not found",
    "java.io.EOFException",
    "java.net.SocketTimeoutException",
    "Connection refused",
]


def test_different_errors_have_different_fingerprints() -> None:
    """R-NEW-09: code, wording and exception class tell errors apart."""
    prints = [root(text)["fingerprint"] for text in DIFFERENT]
    prints += [root(None, class_name="java.lang.A")["fingerprint"], root(None, class_name="java.lang.B")["fingerprint"]]
    assert len(set(prints)) == len(prints)
