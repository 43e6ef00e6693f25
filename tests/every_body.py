"""Events of every type in updates of three pipelines, so that each table has rows, and rows that change.

Update d0 defines and builds a view, d1 refreshes it incrementally, d2 recomputes it after a schema change with another
flow_id and other rules, d3 fails with an error that pipeline w has too; g0 is a gateway's update that never ends.
"""

from __future__ import annotations

from typing import Any

from tests.conftest import event, flow, state

Row = dict[str, Any]
DAY = 10_000  # a short one: all of it before what these tests take for now
_FIELDS = [{"name": "id", "data_type": "BIGINT"}, {"name": "name", "data_type": "STRING"}]
_CHANGED = [{"name": "id", "data_type": "STRING"}, {"name": "born", "data_type": "DATE"}]


def _planned(technique: str, *issues: Row) -> Row:
    return {
        "technique_information": [
            {"incrementalization_issues": list(issues)},
            {"maintenance_type": f"MAINTENANCE_TYPE_{technique}", "is_chosen": True, "cost": "4.79E8"},
            {"maintenance_type": "MAINTENANCE_TYPE_NO_OP", "is_chosen": False},
        ],
        "source_table_information": [{"table_name": "`m`.`s`.`a`", "full_size": 4.79e8, "change_size": 12}],
        "target_table_information": {"table_name": "`m`.`s`.`mv`", "full_size": 3e8},
    }


def _update(name: str, begin: float, fields: list[Row], rules: list[Row], planned: Row, flow_id: str) -> list[Row]:
    """One completed update of pipeline d with a streaming flow and a view."""
    at: Row = {"pipeline_id": "d", "pipeline_name": "defined", "update_id": name}
    of_flow: Row = {**at, "flow_name": "mv", "flow_id": flow_id, "dataset_name": "mv"}
    return [
        event(f"{name}.c", begin, "create_update", {"cause": "JOB_TASK", "run_as": "me@example.com", "config": {
            "catalog": "m", "schema": "s", "serverless": "true"}}, **at),
        event(f"{name}.r", begin + 1, "runtime_details", {"runtime_version": {"dbr_version": "18.0"}, "image_key": "i",
            "effective_environment_version": "4"}, **at),
        event(f"{name}.f", begin + 2, "flow_definition", {"input_datasets": ["a", "`x`.`s`.`b.c`"], "output_dataset":
            "m.s.mv", "flow_type": "MATERIALIZED_VIEW", "language": "SQL", "once": False, "explain_text": "Scan a",
            "comment": "a view", "schema": fields}, **of_flow),
        event(f"{name}.k", begin + 2, "flow_definition", {"input_datasets": ["mv"], "output_sink": "out",
            "flow_type": "APPEND"}, **{**at, "flow_name": "to_sink", "sink_name": "out"}),
        event(f"{name}.s", begin + 2, "sink_definition", {"format": "kafka", "options": {"password": "hidden"}}, **at),
        event(f"{name}.d", begin + 3, "dataset_definition", {"dataset_type": "MATERIALIZED_VIEW", "num_flows": "1",
            "expectations": rules, "schema": fields}, **{**at, "dataset_name": "mv", "catalog_name": "m"}),
        state(f"{name}.1", begin + 4, "RUNNING", **at),
        event(f"{name}.p", begin + 5, "planning_information", planned, **of_flow),
        flow(f"{name}.2", begin + 6, "mv", {"status": "RUNNING", "metrics": {"num_output_rows": 5, "backlog_bytes": 9}},
             **{k: v for k, v in of_flow.items() if k != "flow_name"}, batch_id=1),
        flow(f"{name}.3", begin + 40, "mv", {"status": "COMPLETED", "data_quality": {"dropped_records": 1,
            "expectations": [{"name": rules[0]["name"], "dataset": "mv", "passed_records": 9, "failed_records": 1}]}},
             **{k: v for k, v in of_flow.items() if k != "flow_name"}),
        flow(f"{name}.4", begin + 8, "to_sink", {"status": "COMPLETED"}, **at, sink_name="out"),
        event(f"{name}.o", begin + 7, "operation_progress", {"type": "AUTO_LOADER_LISTING", "status": "COMPLETED",
            "duration_ms": "3000", "auto_loader_details": {"source_path": "/in", "num_files_listed": 7}}, **of_flow),
        event(f"{name}.t", begin + 8, "stream_progress", {"progress": {"name": "q", "batchId": 4, "timestamp":
            "2026-01-01T00:00:00Z", "durationMs": {"triggerExecution": 62}, "sources": [{"description": "D", "numInputRows":
            3, "startOffset": {"v": 1}, "endOffsetTruncated": True, "metrics": {"numBytesOutstanding": "8",
            "numFilesOutstanding": "1"}}], "stateOperators": [{"numRowsTotal": 2}], "sink": {"description": "S",
            "numOutputRows": 3}, "id": "q1", "runId": "r1"}}, **of_flow, maturity_level="EVOLVING"),
        event(f"{name}.u", begin + 9, "cluster_resources", {"task_slot_metrics": {"num_task_slots": 8,
            "avg_num_task_slots": 7.5, "avg_task_slot_utilization": 0.25, "num_executors": 2, "avg_num_queued_tasks": 1.5,
            "summary_duration_ms": 60000}, "autoscale_info": {"state": "RESIZING", "optimal_num_executors": 3,
            "latest_requested_num_executors": 3, "request_pending_seconds": 5}}, **at),
        event(f"{name}.a", begin - 5, "user_action", {"action": "start", "user_name": "me@example.com", "user_id": "7"},
              **at, message="User started"),
        event(f"{name}.n", begin + 10, "deprecation", {"message": "OLD_API"}, **at, message="will go"),
        event(f"{name}.h", begin + 10, "hook_progress", {"name": "notify", "status": "COMPLETED"}, **at, message="done"),
        event(f"{name}.x", begin + 11, "quantum_progress", {"qubits": 3}, **at),
        event(f"{name}.y", begin + 12, "update_progress", {"state": "RUNNING", "mood": "good"}, **at, planet="Mars"),
        state(f"{name}.9", begin + 60, "COMPLETED", **at),
    ]  # fmt: skip


def _failed(name: str, begin: float, table: str, **at: Any) -> list[Row]:
    """An update that fails: the flow first, then the update, two exceptions each."""
    error = {"exceptions": [
        {"class_name": "FlowFailed", "message": f"Flow '{table}' failed"},
        {"class_name": "AnalysisException", "message": f"[TABLE_NOT_FOUND] No table `{table}` at /data/{name}/7. SQLSTATE: 42P01"},
    ]}  # fmt: skip
    return [
        state(f"{name}.1", begin, "RUNNING", update_id=name, **at),
        event(f"{name}.2", begin + 30, level="ERROR", error=error, update_id=name, flow_name="mv", **at),
        event(f"{name}.3", begin + 33, level="ERROR", error=error, update_id=name, **at),
        state(f"{name}.4", begin + 33, "FAILED", update_id=name, **at),
    ]


def every_body() -> tuple[list[Row], list[Row], list[Row]]:
    """Three deliveries; the second and third also hold late events of updates delivered before."""
    keep = [{"name": "ok", "action": "ALLOW"}, {"name": "never", "action": "DROP"}]
    issue = {"issue_type": "PLAN_NOT_INCREMENTALIZABLE", "prevent_incrementalization": True, "expression_name": "now()",
             "operator_name": "Aggregate", "plan_not_incrementalizable_sub_type": "AGGREGATE_WITH_DISTINCT",
             "table_information": {"table_name": "`m`.`s`.`a`"}}  # fmt: skip
    first_build = {"issue_type": "CHANGE_SET_MISSING"}
    gateway: Row = {"pipeline_id": "g", "pipeline_name": "gate", "pipeline_type": "INGESTION_GATEWAY"}

    def emission(id: str, seconds: float, upserted: int, waiting: int) -> Row:
        body = {"status": "RUNNING", "metrics": {"num_upserted_rows": upserted, "num_deleted_rows": 1,
                "num_output_rows": 0, "num_output_bytes": 10 * upserted, "backlog_bytes": waiting,
                "backlog_records": 1, "backlog_files": 1, "backlog_seconds": 1},
                "data_quality": {"dropped_records": 0},
                "streaming_metrics": {"discovery_latency_ms": 100 + upserted, "batch_processing_time_ms": 50,
                "event_time": {"min": "2026-01-01T00:00:00Z", "max": "2026-01-01T00:00:30Z"}}}  # fmt: skip
        return flow(id, seconds, "cdc", body, level="METRICS", update_id="g0", dataset_name="t", **gateway)

    snapshot = {"type": "CDC_SNAPSHOT", "status": "IN_PROGRESS", "progress_percent": 65.5, "estimated_completion_ms": 9,
                "cdc_snapshot": {"target_table_name": "m.s.t", "snapshot_timestamp": 1737542400000,
                                 "snapshot_reason": "NEW_TABLE"}}  # fmt: skip
    one = _update("d0", 10, _FIELDS, keep, _planned("COMPLETE_RECOMPUTE", first_build), "f1")
    two = _update("d1", DAY, _FIELDS, keep, _planned("ROW_BASED"), "f1")
    renamed = [{"name": "ok", "action": "FAIL"}, {"name": "newer", "action": "DROP"}]
    three = _update("d2", 8 * DAY, _CHANGED, renamed, _planned("COMPLETE_RECOMPUTE", issue), "f2")
    lost = _update("d4", 9 * DAY, _CHANGED, renamed[:1], _planned("COMPLETE_RECOMPUTE", issue), "f3")
    d: Row = {"pipeline_id": "d", "pipeline_name": "defined"}
    return (
        [*one, state("g0.0", 0, "RUNNING", update_id="g0", continuous_hint="yes", **gateway),
         event("g0.c", 1, "create_update", {"cause": "USER_ACTION", "config": {"continuous": True}}, update_id="g0", **gateway),
         emission("g0.1", 100, 3, 5), event("g0.s", 101, "operation_progress", snapshot, update_id="g0", **gateway),
         *_failed("d3", 2 * DAY, "left", **d)],
        [*two, emission("g0.2", 4000, 4, 50), emission("g0.3", 8000, 5, 500), one[-3],
         *_failed("w0", 3 * DAY, "right", pipeline_id="w", pipeline_name="other")],
        [*three, *lost, emission("g0.4", 100_000, 6, 5000), emission("g0.5", 200, 1, 4),
         event("late", 20, "deprecation", {"message": "LATE"}, update_id="d0", **d)],
    )  # fmt: skip
