"""What is defined and planned, worked out by hand: flows, datasets, schemas, lineage, refresh decisions, resets."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from tests.conftest import Site, by, event, flow, is_as_rebuilt, state

LATER = datetime(2026, 3, 1, tzinfo=timezone.utc)
HOUR, DAY = 3600, 86_400


def at(day: str, row: dict[str, Any]) -> dict[str, Any]:
    """The row on another day, at the same time of day."""
    return {**row, "timestamp": f"{day}T{row['timestamp'][11:]}"}


# ---- the graph ----


def test_flows_and_their_edges(site: Site) -> None:
    """R-FLOW-09, R-LIN-01: edges of a three-flow pipeline are complete and meet those of another one by full name."""
    raw = {"input_datasets": [], "output_dataset": "raw", "flow_type": "APPEND", "language": "PYTHON", "once": True}
    clean = {
        "input_datasets": ["raw", "ref.countries"],
        "output_dataset": "`main`.`sales`.`clean`",
        "flow_type": "MATERIALIZED_VIEW",
        "language": "SQL",
        "schema": [{"name": "id", "data_type": "bigint", "comment": "key"}],
        "comment": "cleaned",
        "explain_text": "Scan raw",
    }
    out = {"input_datasets": ["clean", "clean"], "output_sink": "kafka_out", "flow_type": "APPEND", "language": "SQL"}
    daily = {"input_datasets": ["main.sales.clean"], "output_dataset": "daily"}
    config = {"config": {"catalog": "main", "target": "sales"}}
    reports = {"pipeline_id": "q", "update_id": "v"}
    site.write(
        "a.jsonl",
        event("1", 0, "create_update", config),
        event("2", 1, "flow_definition", raw, flow_name="raw", flow_id="id-raw"),
        event("3", 1, "flow_definition", {**clean, "input_datasets": ["old"]}, flow_name="clean"),
        event("4", 2, "flow_definition", clean, flow_name="clean"),
        event("5", 3, "flow_definition", out, flow_name="out"),
        event(
            "6",
            4,
            "flow_definition",
            {"input_datasets": ["lone"], "output_dataset": "x"},
            flow_name="late",
            update_id="u2",
        ),
        event(
            "7", 0, "flow_definition", daily, flow_name="daily", catalog_name="main", schema_name="reports", **reports
        ),
        event("8", 0, "flow_definition", daily, flow_name="daily", update_id=None),
    )
    site.cycle()
    found = site.row("flow_definitions", flow_name="clean")
    assert (found["event_ts"].second, found["output_dataset"], found["output_sink"]) == (
        2,
        "`main`.`sales`.`clean`",
        None,
    )
    assert (found["input_datasets"], found["default_catalog"], found["default_schema"]) == (
        ["raw", "ref.countries"],
        "main",
        "sales",
    )
    assert (found["flow_type"], found["language"], found["once"]) == ("MATERIALIZED_VIEW", "SQL", None)
    assert (found["comment"], found["explain_text"]) == ("cleaned", "Scan raw")
    assert found["fields"] == [{"name": "id", "data_type": "bigint", "comment": "key"}]
    assert site.row("flow_definitions", flow_name="raw")["once"] is True
    assert site.row("flow_definitions", flow_name="raw")["flow_id"] == "id-raw"
    assert site.row("flow_definitions", flow_name="out")["output_sink"] == "kafka_out"
    names = ("flow_name", "input_dataset", "qualified_input", "qualified_output", "output_sink")
    assert by(site.rows("flow_lineage"), *names) == [
        ("clean", "raw", "main.sales.raw", "main.sales.clean", None),
        ("clean", "ref.countries", "main.ref.countries", "main.sales.clean", None),
        ("daily", "main.sales.clean", "main.sales.clean", "main.reports.daily", None),
        ("late", "lone", "lone", "x", None),
        ("out", "clean", "main.sales.clean", None, "kafka_out"),
    ]
    # Late: create_update of u2 is not readable when its flows are first seen (event_log 7).
    site.write("a.jsonl", event("9", 3, "create_update", {"config": {"catalog": "dev", "schema": "s"}}, update_id="u2"))
    site.cycle()
    assert by(site.rows("flow_lineage", update_id="u2"), "qualified_input", "qualified_output") == [
        ("dev.s.lone", "dev.s.x")
    ]
    is_as_rebuilt(site, "flow_definitions", "flow_lineage")


def dataset(id: str, seconds: float, name: str, columns: dict[str, str] | None, **origin: Any) -> dict[str, Any]:
    """A dataset_definition with these columns."""
    schema = None if columns is None else [{"name": n, "data_type": t} for n, t in columns.items()]
    return event(
        id, seconds, "dataset_definition", {"dataset_type": "TABLE", "schema": schema}, dataset_name=name, **origin
    )


def test_dataset_definitions(site: Site) -> None:
    """event_log 4, R-LIN-05: the newest definition of an update with the action of each rule; what it lacks comes from
    an earlier one; columns come from the dataset's own definition, else from its flow's."""
    rules = [{"name": "ok", "action": "DROP"}, {"name": "sane", "policy": "FAIL"}]
    first = {"dataset_type": "VIEW", "num_flows": 1, "expectations": [], "schema": [{"name": "id", "data_type": "int"}]}
    body = {"dataset_type": "MATERIALIZED_VIEW", "expectations": rules, "schema": []}
    by_flow = {"output_dataset": "`main`.`x`.`orders`", "schema": [{"name": "other", "data_type": "int"}]}
    site.write(
        "a.jsonl",
        event("1", 0, "dataset_definition", first, dataset_name="orders", catalog_name="main", schema_name="x"),
        event("2", 1, "dataset_definition", body, dataset_name="orders"),
        event("3", 2, "flow_definition", by_flow, flow_name="orders"),
        event("4", 2, "flow_definition", {**by_flow, "output_dataset": "items"}, flow_name="items"),
        event("5", 2, "dataset_definition", {"dataset_type": "TABLE"}, dataset_name="items"),
        event("6", 2, "dataset_definition", {"dataset_type": "TABLE"}),
    )
    site.cycle()
    found = site.row("dataset_definitions", dataset="orders")
    assert (found["dataset_type"], found["num_flows"], found["event_ts"].second) == ("MATERIALIZED_VIEW", 1, 1)
    assert [(r["name"], r["action"]) for r in found["rules"]] == [("ok", "DROP"), ("sane", "FAIL")]
    assert (found["catalog_name"], found["schema_name"]) == ("main", "x")
    assert site.row("dataset_definitions", dataset="items")["fields"] is None
    assert by(site.rows("dataset_schemas"), "dataset", "column_name", "data_type") == [
        ("items", "other", "int"),
        ("orders", "id", "int"),
    ]


def test_schema_changes(site: Site) -> None:
    """R-LIN-05, R-PEER-22: a column added, one dropped, one of another type, each with both updates; an update without
    a schema and an internal run are no step; more than 35 days apart nothing is compared."""
    old, new = {"id": "int", "gone": "date", "kept": "string"}, {"id": "bigint", "kept": "string", "come": "date"}
    site.write(
        "a.jsonl",
        dataset("1", 0, "d", old, update_id="u0"),
        dataset("2", HOUR, "d", None, update_id="u1"),
        event("3", 2 * HOUR, "create_update", {"validate_only": True}, update_id="v"),
        dataset("4", 2 * HOUR, "d", {"wild": "int"}, update_id="v"),
        dataset("5", 3 * HOUR, "d", new, update_id="u2"),
        at("2025-11-01", dataset("6", 0, "far", old, update_id="w0")),
        at("2025-12-20", dataset("7", 0, "far", new, update_id="w1")),
        at("2025-12-20", dataset("8", 0, "far", old, update_id="w1", pipeline_id="q")),
    )
    site.cycle()
    names = ("column_name", "change", "old_type", "new_type", "previous_update_id", "update_id")
    assert by(site.rows("schema_changes"), *names) == [
        ("come", "added", None, "date", "u0", "u2"),
        ("gone", "dropped", "date", None, "u0", "u2"),
        ("id", "type_changed", "int", "bigint", "u0", "u2"),
    ]
    assert site.row("schema_changes", column_name="come")["changed_at"].hour == 3
    # An update between the two arrives late: it had the new column already.
    site.write("a.jsonl", dataset("9", HOUR * 2.5, "d", {**old, "come": "date"}, update_id="u15"))
    site.cycle()
    assert by(site.rows("schema_changes"), *names) == [
        ("come", "added", None, "date", "u0", "u15"),
        ("gone", "dropped", "date", None, "u15", "u2"),
        ("id", "type_changed", "int", "bigint", "u15", "u2"),
    ]
    is_as_rebuilt(site, "dataset_definitions", "dataset_schemas", "schema_changes")


def test_a_quoted_name_with_a_dot_is_one_part(site: Site) -> None:
    """event_log 6.3: "`or.ders`" and "ders" are two datasets, also where a flow's schema stands in."""
    given = {"output_dataset": "`or.ders`", "schema": [{"name": "other", "data_type": "int"}]}
    site.write(
        "a.jsonl",
        dataset("1", 0, "ders", {"id": "int"}),
        event("2", 0, "flow_definition", given, flow_name="f"),
    )
    site.cycle()
    assert by(site.rows("dataset_schemas"), "dataset", "column_name") == [("`or.ders`", "other"), ("ders", "id")]


# ---- refresh ----


def plan(
    id: str, seconds: float, chosen: str | None, issue: dict[str, Any] | None = None, **origin: Any
) -> dict[str, Any]:
    """A planning_information event of flow `mv` that chose this technique."""
    technique: dict[str, Any] = {"maintenance_type": chosen, "is_chosen": True, "cost": 2.5}
    body: dict[str, Any] = {"technique_information": [technique]}
    if issue:
        rejected = {"maintenance_type": "MAINTENANCE_TYPE_ROW_BASED", "incrementalization_issues": [issue]}
        body["technique_information"].append(rejected)
    return event(id, seconds, "planning_information", body, **{"flow_name": "mv", **origin})


def test_refresh_decisions(site: Site) -> None:
    """R-LIN-02, R-CLU-02: chosen technique, the issue that prevented the other one, sizes; an unreported size is null, not 0."""
    issue = {
        "issue_type": "PLAN_NOT_DETERMINISTIC",
        "plan_not_deterministic_sub_type": "TIME_FUNCTION",
        "expression_name": "now",
        "table_information": [{"table_name": "main.x.orders"}],
    }
    whole = plan("1", 5, "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE", issue, flow_id="f1", dataset_name="mv")
    sources = [
        {"table_name": "a", "full_size": 4.79e8},
        {"table_name": "b", "full_size": "21000000"},
        {"table_name": "c"},
    ]
    whole["details"]["planning_information"] |= {
        "source_table_information": sources,
        "target_table_information": {"table_name": "main.x.mv", "full_size": 1000},
    }
    site.write("a.jsonl", whole, plan("2", 6, "GROUP_AGGREGATE"), plan("3", 7, "MAINTENANCE_TYPE_NO_OP"))
    site.write("a.jsonl", event("4", 8, "planning_information", {}))
    site.cycle()
    found = site.row("refresh_decisions", event_id="1")
    assert (found["technique"], found["maintenance_type"]) == ("full", "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE")
    assert found["reasons"] == "PLAN_NOT_DETERMINISTIC (TIME_FUNCTION)"
    assert (found["offending_tables"], found["offending_expressions"]) == ("main.x.orders", "now")
    assert (found["target_table"], found["target_bytes"]) == ("main.x.mv", 1000)
    assert (found["source_bytes"], found["change_bytes"]) == (500_000_000, None)
    assert (found["flow_name"], found["flow_id"], found["dataset"], found["event_ts"].second) == ("mv", "f1", "mv", 5)
    assert [(t["maintenance_type"], t["is_chosen"], t["cost"]) for t in found["techniques"]] == [
        ("MAINTENANCE_TYPE_COMPLETE_RECOMPUTE", True, 2.5),
        ("MAINTENANCE_TYPE_ROW_BASED", None, None),
    ]
    assert [(i["maintenance_type"], i["issue_type"]) for i in found["issues"]] == [
        ("MAINTENANCE_TYPE_ROW_BASED", "PLAN_NOT_DETERMINISTIC")
    ]
    found = {r["event_id"]: (r["technique"], r["reasons"]) for r in site.rows("refresh_decisions")}
    assert (found["2"], found["3"], found["4"]) == (("incremental", None), ("no_op", None), ("unknown", None))


def refreshed(update: int, seconds: float, chosen: str, flow_id: str | None, **more: Any) -> list[dict[str, Any]]:
    """Events of one update in which `mv` was refreshed in so many seconds."""
    origin = {"update_id": f"u{update}", "flow_id": flow_id}
    start = update * HOUR
    return [
        event(
            f"c{update}", start, "create_update", {"cause": "JOB_TASK", **more.pop("body", {})}, update_id=f"u{update}"
        ),
        plan(f"p{update}", start + 1, chosen, more.get("issue"), **origin),
        flow(f"s{update}", start + 10, "mv", {"status": "RUNNING"}, **origin),
        flow(f"e{update}", start + 10 + seconds, "mv", {"status": "COMPLETED"}, **origin),
        state(f"d{update}", start + 1000, "COMPLETED", update_id=f"u{update}"),
    ]


def test_recompute_watch_and_flow_resets(site: Site) -> None:
    """R-NEW-07, R-LIN-03: a first build, NO_OP and a full refresh that was asked for are no episode; one episode of 300 +
    200 s where 80 s (median of 60 and 100) were usual: 340 s lost. A new flow_id is told once, with its explanation."""
    full, rows = "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE", "MAINTENANCE_TYPE_ROW_BASED"
    issue = {"issue_type": "ROW_TRACKING_NOT_ENABLED", "table_information": {"table_name": "main.x.orders"}}
    missing = {"issue_type": "CHANGE_SET_MISSING"}
    site.write(
        "a.jsonl",
        *refreshed(0, 500, full, "A", issue=missing),
        *refreshed(1, 60, rows, "A"),
        *refreshed(2, 100, rows, "A"),
        *refreshed(3, 5, "MAINTENANCE_TYPE_NO_OP", "A"),
        *refreshed(4, 300, full, "B", issue=issue),
        *refreshed(5, 200, full, "B", issue=missing),
        *refreshed(6, 900, full, "C", body={"full_refresh": True}),
        # Without flow_ids the second witness is unknown, not absent. And a stream that lost its checkpoint.
        *(
            plan(f"w{n}", n * HOUR + 2, kind, flow_name="w", update_id=f"u{n}")
            for n, kind in ((1, rows), (4, full), (5, full))
        ),
        flow("x1", HOUR + 3, "stream", {"status": "COMPLETED"}, update_id="u1", flow_id="S1"),
        flow("x2", 2 * HOUR + 3, "stream", {"status": "COMPLETED"}, update_id="u2"),
        flow("x3", 3 * HOUR + 3, "stream", {"status": "COMPLETED"}, update_id="u3", flow_id="S2"),
        at("2025-11-01", flow("x4", 0, "rare", {"status": "COMPLETED"}, update_id="u-old", flow_id="R1")),
        flow("x5", 3 * HOUR + 4, "rare", {"status": "COMPLETED"}, update_id="u3", flow_id="R2"),
    )
    site.cycle()
    found = site.row("recompute_watch", flow_name="mv")
    assert (found["since_update_id"], found["since_ts"].hour, found["last_full_ts"].hour) == ("u4", 4, 5)
    assert (found["full_runs"], found["is_current"], found["until_ts"]) == (2, True, None)
    assert (found["reasons"], found["offending_tables"]) == ("ROW_TRACKING_NOT_ENABLED", "main.x.orders")
    assert found["flow_id_changed"] is True
    assert found["usual_incremental_seconds"] == 80.0
    assert round(found["extra_minutes"] * 60, 6) == 340.0
    found = site.row("recompute_watch", flow_name="w")
    assert (found["flow_id_changed"], found["usual_incremental_seconds"], found["extra_minutes"]) == (None, None, None)
    names = ("flow_name", "update_id", "previous_update_id", "previous_flow_id", "flow_id", "explanation")
    assert by(site.rows("flow_resets"), *names) == [
        ("mv", "u4", "u3", "A", "B", "recompute"),
        ("mv", "u6", "u5", "B", "C", "full_refresh"),
        ("stream", "u3", "u1", "S1", "S2", "reset"),
    ]
    # Incremental again: the episode ends; another one begins an hour later, with three usual times (60, 100, 30).
    site.write("a.jsonl", *refreshed(7, 30, rows, "C"), *refreshed(8, 120, full, "C"))
    site.cycle()
    episodes = {r["since_update_id"]: r for r in site.rows("recompute_watch", flow_name="mv")}
    assert {u: (r["is_current"], r["until_ts"] and r["until_ts"].hour) for u, r in episodes.items()} == {
        "u4": (False, 7),
        "u8": (True, None),
    }
    assert (episodes["u8"]["usual_incremental_seconds"], episodes["u8"]["extra_minutes"]) == (60.0, 1.0)
    assert (episodes["u8"]["flow_id_changed"], episodes["u8"]["reasons"]) == (False, None)
    is_as_rebuilt(site, "recompute_watch", "flow_resets", "refresh_decisions")
