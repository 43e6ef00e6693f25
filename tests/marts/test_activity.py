"""What goes on in and beside flows, worked out by hand: operations, streams, gateways, clusters, people, hours."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from monitoring_platform.config import load
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import Site, by, event, flow, is_as_rebuilt, state

LATER = datetime(2026, 3, 1, tzinfo=timezone.utc)
HOUR, DAY = 3600, 86_400


# ---- reports beside the flows ----


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """One site with every kind of report; the second half arrives in a second cycle."""
    folder = tmp_path_factory.mktemp("beside")
    (folder / "monitoring.yaml").write_text("warehouse: {path: ./w}\nsources:\n  - {type: files, path: ./logs}\n")
    (folder / "logs").mkdir()
    site = Site(folder, open_warehouse(load(folder / "monitoring.yaml")))
    listing = {"type": "AUTO_LOADER_LISTING", "auto_loader_details": {"source_path": "/in", "num_files_listed": 12}}
    snapshot = {"target_table_name": "main.x.t", "snapshot_timestamp": 1_767_225_600_000, "snapshot_reason": "INITIAL"}
    progress = {
        "id": "s",
        "runId": "r",
        "name": "n",
        "batchId": 3,
        "timestamp": "2026-01-01T00:00:07Z",
        "numInputRows": 5,
    }
    source = {
        "description": "Delta",
        "numInputRows": 5,
        "metrics": {"numBytesOutstanding": "99", "numFilesOutstanding": 2},
    }
    progress |= {"sources": [source], "durationMs": {"triggerExecution": 250}, "sink": {"numOutputRows": -1}}
    load_ = {"num_task_slots": 8, "num_executors": 2, "avg_task_slot_utilization": 0.25, "avg_num_queued_tasks": 1.5}
    scaling = {"state": "RESIZING", "optimal_num_executors": 4, "latest_requested_num_executors": 3}
    site.write(
        "a.jsonl",
        event("o1", 1, "operation_progress", {**listing, "status": "STARTED"}, flow_name="f", dataset_name="d"),
        event("o2", 2, "operation_progress", {**listing, "status": "COMPLETED", "duration_ms": 1500}, flow_name="f"),
        event(
            "o3", 3, "operation_progress", {"type": "CDC_SNAPSHOT", "progress_percent": 40, "cdc_snapshot": snapshot}
        ),
        event("o4", 4, "operation_progress", {"type": "CONNECTOR_FETCH", "estimated_completion_ms": 7}, update_id=None),
        event("s1", 9, "stream_progress", {"progress": progress}, flow_name="f", maturity_level="EVOLVING"),
        event("c1", 1, "cluster_resources", {"task_slot_metrics": load_, "autoscale_info": scaling}),
        event("c2", 2, "cluster_resources", {**load_, **scaling}),
        event(
            "u1", 1, "user_action", {"action": "create", "user_name": "ann", "user_id": 7}, update_id=None, message="m"
        ),
        event("r1", 1, "create_update", {"runtime_version": {"dbr_version": "13.3"}}, update_id="old"),
        event("r2", 1, "create_update", {"runtime_version": {"dbr_version": "14.3"}}, update_id="new"),
        state("r3", 2, "RUNNING", update_id="silent"),
        event("d1", 1, "deprecation", {"message": "LEGACY_STORAGE"}, level="WARN", message="Storage is going away"),
        event("h1", 1, "hook_progress", {"name": "to_slack", "status": "failed"}, level="WARN", message="no route"),
    )
    site.cycle()
    details = {"dbr_version": "18.0", "image_key": "img-1", "effective_environment_version": "3"}
    site.write(
        "a.jsonl",
        event("o5", 5, "operation_progress", {"type": "Wormhole", "status": "FAILED", "duration_ms": -1}),
        event("s2", 9, "stream_progress", {"progress_json": "{}"}),
        event("c3", 3, "cluster_utilization", load_),
        event("c4", 4, "autoscale", {"status": "SUCCEEDED", "requested_num_executors": 5, "optimal_num_executors": 6}),
        event("u2", 2, "user_action", {"action": "STOP"}),
        event("r4", 3, "runtime_details", details, update_id="new"),
        event(
            "d2", 2, "behavior_change_in_spark_connect", {"issue": "LATE_RESOLUTION"}, level="WARN", message="changed"
        ),
        event("d3", 3, "behavior_change_in_sql", {"issue": "NULLS_LAST"}, message="unknown kind"),
    )
    site.cycle()
    return site


def test_operation_progress(beside: Site) -> None:
    """R-FLOW-06: one row per operation event, the duration null while absent, unknown types as they come."""
    names = ("event_id", "operation_type", "status", "duration_ms", "flow_name", "update_id")
    assert by(beside.rows("operation_progress"), *names) == [
        ("o1", "AUTO_LOADER_LISTING", "STARTED", None, "f", "u"),
        ("o2", "AUTO_LOADER_LISTING", "COMPLETED", 1500, "f", "u"),
        ("o3", "CDC_SNAPSHOT", None, None, None, "u"),
        ("o4", "CONNECTOR_FETCH", None, None, None, None),
        ("o5", "WORMHOLE", "FAILED", None, None, "u"),
    ]
    found = beside.row("operation_progress", event_id="o1")
    assert (found["source_path"], found["num_files_listed"], found["dataset"]) == ("/in", 12, "d")
    found = beside.row("operation_progress", event_id="o3")
    assert (found["progress_percent"], found["target_table"], found["snapshot_reason"]) == (40.0, "main.x.t", "INITIAL")
    assert found["snapshot_ts"] == datetime(2026, 1, 1, tzinfo=timezone.utc)
    assert beside.row("operation_progress", event_id="o4")["estimated_completion_ms"] == 7


def test_stream_progress(beside: Site) -> None:
    """R-PEER-20: the batch's own time, rows, lag and duration; −1 is unknown; a report that says nothing is a row."""
    found = beside.row("stream_progress", event_id="s1")
    assert (found["batch_id"], found["num_input_rows"], found["num_output_rows"]) == (3, 5, None)
    assert (found["trigger_ms"], found["backlog_bytes"], found["backlog_files"]) == (250, 99, 2)
    assert (found["progress_ts"].second, found["event_ts"].second) == (7, 9)
    assert (found["stream_name"], found["stream_id"], found["run_id"]) == ("n", "s", "r")
    assert (found["maturity_level"], found["is_truncated"], found["state_rows"]) == ("EVOLVING", False, None)
    assert [(s["description"], s["num_input_rows"]) for s in found["sources"]] == [("Delta", 5)]
    assert beside.row("stream_progress", event_id="s2")["batch_id"] is None


def test_cluster_resources(beside: Site) -> None:
    """R-CLU-01: both documented shapes, the older type and autoscale fill one table."""
    names = ("event_id", "num_task_slots", "avg_task_slot_utilization", "scaling_state", "requested_num_executors")
    assert by(beside.rows("cluster_resources"), *names) == [
        ("c1", 8, 0.25, "RESIZING", 3),
        ("c2", 8, 0.25, "RESIZING", 3),
        ("c3", 8, 0.25, None, None),
        ("c4", None, None, "SUCCEEDED", 5),
    ]
    assert by(beside.rows("cluster_resources"), "event_id", "event_type", "num_executors", "optimal_num_executors") == [
        ("c1", "cluster_resources", 2, 4),
        ("c2", "cluster_resources", 2, 4),
        ("c3", "cluster_utilization", 2, None),
        ("c4", "autoscale", None, 6),
    ]
    assert beside.row("cluster_resources", event_id="c1")["avg_num_queued_tasks"] == 1.5


def test_user_actions(beside: Site) -> None:
    """R-AUD-01: action, person, time, pipeline, and the update if any."""
    names = ("event_id", "action", "user_name", "user_id", "update_id", "message", "pipeline_name")
    assert by(beside.rows("user_actions"), *names) == [
        ("u1", "CREATE", "ann", "7", None, "m", "pipe"),
        ("u2", "STOP", None, None, "u", None, "pipe"),
    ]


def test_runtime_details(beside: Site) -> None:
    """event_log 4: runtime_details first, else create_update; an update of which nothing is said has no row."""
    assert by(beside.rows("runtime_details"), "update_id", "dbr_version", "image_key", "environment_version") == [
        ("new", "18.0", "img-1", "3"),
        ("old", "13.3", None, None),
    ]


def test_deprecations_and_hooks(beside: Site) -> None:
    """event_log 4: enums that grow; what a type means that nobody has seen is not guessed: it is drift."""
    assert by(beside.rows("deprecations"), "event_id", "event_type", "level", "code", "message") == [
        ("d1", "deprecation", "WARN", "LEGACY_STORAGE", "Storage is going away"),
        ("d2", "behavior_change_in_spark_connect", "WARN", "LATE_RESOLUTION", "changed"),
    ]
    assert by(beside.rows("hooks"), "event_id", "hook", "status", "level", "message") == [
        ("h1", "to_slack", "FAILED", "WARN", "no route")
    ]
    assert "event_type=behavior_change_in_sql" in {row["what"] for row in beside.rows("schema_drift")}


def test_reports_of_two_cycles_are_those_of_one(beside: Site) -> None:
    """R-UNI-03: late events give the same tables as all events together."""
    is_as_rebuilt(
        beside, "operation_progress", "stream_progress", "cluster_resources", "user_actions", "runtime_details",
        "deprecations", "hooks",
    )  # fmt: skip


# ---- gateways ----


def gateway(
    id: str, seconds: float, metrics: dict[str, Any], streaming: dict[str, Any] | None = None, **origin: Any
) -> Any:
    """One emission of an ingestion gateway."""
    body = {"status": "RUNNING", "metrics": metrics, "streaming_metrics": streaming}
    return flow(id, seconds, "snap", body, **{"level": "METRICS", "pipeline_type": "INGESTION_GATEWAY", **origin})


def test_gateway_progress(site: Site) -> None:
    """R-PEER-12, event_log 6.1 and quirk 26: deltas are summed, latencies averaged; an empty emission is a sign of life."""
    times = {"event_time": {"min": "2025-12-31T23:00:00Z", "max": "2026-01-01T00:05:00Z"}}
    site.write(
        "a.jsonl",
        gateway("1", 0, {"num_upserted_rows": 10, "num_output_bytes": 100}, {"discovery_latency_ms": 100, **times}),
        gateway(
            "2", 60, {"num_upserted_rows": 10, "num_deleted_rows": None}, {"discovery_latency_ms": 300}, batch_id=1
        ),
        gateway("3", 120, {"num_upserted_rows": 5}, {"batch_processing_time_ms": 40}, dataset_name="main.x.t"),
        gateway("4", 180, {}),
        gateway("5", HOUR + 1, {"num_deleted_rows": 2}),
        gateway("6", 200, {"num_upserted_rows": 1}, level="INFO"),
        gateway("7", 200, {"num_upserted_rows": 1}, pipeline_type="WORKSPACE", update_id="w"),
    )
    site.cycle()
    first, second = sorted(site.rows("gateway_progress"), key=lambda row: row["hour_ts"])
    assert (first["emissions"], first["rows_upserted"], first["rows_deleted"], first["output_bytes"]) == (
        4,
        25,
        None,
        100,
    )
    assert (first["avg_discovery_latency_ms"], first["max_discovery_latency_ms"]) == (200.0, 300)
    assert first["p95_discovery_latency_ms"] == 290.0
    assert (first["avg_batch_processing_time_ms"], first["dataset"]) == (40.0, "main.x.t")
    assert (first["event_time_min"].hour, first["event_time_max"].minute) == (23, 5)
    assert (first["last_emission_ts"].minute, first["hour_ts"].hour) == (3, 0)
    assert (second["emissions"], second["rows_deleted"], second["rows_upserted"], second["hour_ts"].hour) == (
        1,
        2,
        None,
        1,
    )
    assert second["avg_discovery_latency_ms"] is None


# ---- flows by the hour ----


def counted(
    id: str, seconds: float, batch: int | None, rows: int | None, name: str = "f", **origin: Any
) -> dict[str, Any]:
    """A flow's running count of one batch."""
    metrics = {} if rows is None else {"num_output_rows": rows}
    return flow(id, seconds, name, {"status": "RUNNING", "metrics": metrics}, batch_id=batch, flow_id="id", **origin)


def test_an_update_over_midnight(site: Site) -> None:
    """R-NEW-05, event_log 6.1: an update that never ends has figures for each hour and day. Batch 1 says 10, then 30
    after midnight; batch 2 says 5, then 12: 42 rows in the first hour of the second day, none on the first day."""
    night = 22 * HOUR + 50 * 60
    site.write(
        "a.jsonl",
        event("0", night, "create_update", {"config": {"continuous": True}}),
        state("s", night, "RUNNING"),
        counted("1", night + HOUR, 1, 10),
        counted("2", DAY + 600, 1, 30),
        counted("3", DAY + 1200, 2, 5),
        counted("4", DAY + 2400, 2, 12),
        counted("5", DAY + HOUR + 300, 3, 7),
        counted("6", DAY + HOUR + 300, None, 100, "plain"),
        flow("7", DAY + 60, "quality", {"data_quality": {"dropped_records": 4}}, batch_id=1),
    )
    site.cycle(LATER)
    names = ("flow_name", "hour_ts", "rows_output", "rows_written", "batches", "event_count")

    def hours() -> list[tuple[Any, ...]]:
        found = by(site.rows("flow_hours"), *names)
        return [(n, h.day, h.hour, *rest) for n, h, *rest in found]

    assert hours() == [
        ("f", 1, 23, None, None, 0, 1),
        ("f", 2, 0, 42, 42, 2, 3),
        ("f", 2, 1, 7, 7, 1, 1),
        ("plain", 2, 1, 100, 100, 0, 1),
        ("quality", 2, 0, None, None, 1, 1),
    ]
    found = site.row("flow_hours", flow_name="f", rows_output=42)
    assert (found["last_batch_ts"].minute, found["rows_dropped"], found["output_bytes"]) == (40, None, None)
    assert site.row("flow_hours", flow_name="quality")["rows_dropped"] == 4
    days = by(site.rows("daily_trends"), "day", "runs", "open_runs", "rows_written", "rows_dropped", "batches")
    assert [(d.day, *rest) for d, *rest in days] == [(1, 1, 1, None, None, 0), (2, 0, 0, 149, 4, 4)]
    # Late: batch 3 goes on to 9 rows, and batch 1 had a last word in the third hour.
    site.write("a.jsonl", counted("8", DAY + HOUR + 900, 3, 9), counted("9", DAY + 2 * HOUR + 5, 1, 31))
    site.cycle(LATER)
    assert [row for row in hours() if row[0] == "f"] == [
        ("f", 1, 23, None, None, 0, 1),
        ("f", 2, 0, 12, 12, 1, 3),
        ("f", 2, 1, 9, 9, 1, 2),
        ("f", 2, 2, 31, 31, 1, 1),
    ]
    is_as_rebuilt(site, "flow_hours", "daily_trends")


def test_flow_liveness(site: Site) -> None:
    """R-NEW-05, quirk 35: idle, working and unknown; ended flows, ended updates and older ones are not judged."""

    def report(id: str, name: str, batch: int | None, rows: int | None, backlog: dict[str, int], **origin: Any) -> None:
        metrics = {**({} if rows is None else {"num_output_rows": rows}), **backlog}
        body = {"status": origin.pop("status", "RUNNING"), "metrics": metrics}
        site.write("a.jsonl", flow(id, origin.pop("seconds", 60), name, body, batch_id=batch, **origin))

    config = {"config": {"continuous": "true"}}
    site.write("a.jsonl", event("c", 10, "create_update", config), state("s", 11, "RUNNING"))
    report("1", "idle", 1, 5, {"backlog_bytes": 900}, seconds=50)
    report("2", "idle", 2, 0, {"backlog_bytes": 0})
    report("3", "working", 1, 5, {"backlog_records": 7, "backlog_bytes": 0})
    report("4", "no_backlog", 1, 5, {})
    report("5", "no_batch", None, 5, {"backlog_files": 0})
    report("6", "just_begun", 1, None, {"backlog_seconds": 3})
    report("7", "ended", 1, 5, {"backlog_bytes": 9}, status="COMPLETED")
    report("8", "older", 1, 5, {"backlog_bytes": 9}, update_id="before", seconds=1)
    report("9", "done", 1, 5, {"backlog_bytes": 9}, pipeline_id="q")
    site.write("a.jsonl", state("10", 90, "FAILED", pipeline_id="q"))
    report(
        "11",
        "snap",
        None,
        None,
        {"backlog_bytes": 0},
        pipeline_id="g",
        level="METRICS",
        pipeline_type="INGESTION_GATEWAY",
    )
    site.cycle()
    assert by(site.rows("flow_liveness"), "pipeline_id", "flow_name", "state") == [
        ("g", "snap", "idle"),
        ("p", "idle", "idle"),
        ("p", "just_begun", "unknown"),
        ("p", "no_backlog", "unknown"),
        ("p", "no_batch", "unknown"),
        ("p", "working", "working"),
    ]
    found = site.row("flow_liveness", flow_name="idle")
    assert (found["update_id"], found["continuous"], found["last_backlog_bytes"], found["status"]) == (
        "u",
        True,
        0,
        "RUNNING",
    )
    assert (found["last_batch_ts"].minute, found["last_event_ts"].minute) == (1, 1)
    # The update stops: nothing of it is alive any more; the gateway's next emission finds work.
    site.write("a.jsonl", state("12", 300, "CANCELED"))
    report(
        "13",
        "snap",
        None,
        0,
        {"backlog_bytes": 5},
        pipeline_id="g",
        level="METRICS",
        pipeline_type="INGESTION_GATEWAY",
        seconds=400,
    )
    site.cycle()
    assert by(site.rows("flow_liveness"), "flow_name", "state") == [("snap", "working")]
    is_as_rebuilt(site, "flow_liveness")


def backlog(
    name: str, readings: list[int], unit: str = "bytes", rows: int | None = None, first: float = 0, **origin: Any
) -> list[Any]:
    """One reading in each hour."""
    metrics = [{f"backlog_{unit}": value, **({} if rows is None else {"num_output_rows": rows})} for value in readings]
    return [
        flow(f"{name}{first}-{n}", first + n * HOUR, name, {"status": "RUNNING", "metrics": body}, **origin)
        for n, body in enumerate(metrics)
    ]


def test_backlog_trends(site: Site) -> None:
    """R-ROW-06, R-NEW-05: the median of the newer half against that of the older one, out of at most 24 readings in 7
    days: 100, 110 | 200, 240 is 105 → 220: growing."""
    site.write(
        "a.jsonl",
        *backlog("growing", [100, 110, 200, 240]),
        *backlog("shrinking", [400, 380, 100, 50], "records"),
        *backlog("steady", [100, 105, 100, 102], "files"),
        *backlog("stuck", [70, 70, 70]),
        *backlog("fed", [70, 70, 70], rows=5),
        *backlog("none", [0, 0, 0], "seconds"),
        *backlog("few", [1, 900]),
        flow("silent", 0, "silent", {"status": "RUNNING"}),
        # Older than 7 days, and beyond the newest 24 readings: not looked at.
        *backlog("aged", [9000, 9000, 9000, 9000]),
        *backlog("aged", [10, 10, 11], first=8 * DAY, rows=1),
        *backlog("long", [5] + [100] * 24, rows=1),
    )
    site.cycle(LATER)
    names = ("flow_name", "trend", "readings", "unit", "latest_backlog", "peak_backlog")
    assert by(site.rows("backlog_trends"), *names) == [
        ("aged", "steady", 3, "bytes", 11, 11),
        ("fed", "steady", 3, "bytes", 70, 70),
        ("few", "unknown", 2, "bytes", 900, 900),
        ("growing", "growing", 4, "bytes", 240, 240),
        ("long", "steady", 24, "bytes", 100, 100),
        ("none", "none", 3, "seconds", 0, 0),
        ("shrinking", "shrinking", 4, "records", 50, 400),
        ("silent", "unknown", 0, None, None, None),
        ("steady", "steady", 4, "files", 102, 105),
        ("stuck", "stuck", 3, "bytes", 70, 70),
    ]
    found = site.row("backlog_trends", flow_name="growing")
    assert (found["earlier_median"], found["later_median"], found["last_hour_ts"].hour) == (105.0, 220.0, 3)
    # The next update, two weeks on: the flow has one trend, from its new readings.
    site.write("a.jsonl", *backlog("growing", [300, 200, 100], first=14 * DAY, update_id="u2"))
    site.cycle(LATER)
    assert by(site.rows("backlog_trends", flow_name="growing"), "trend", "readings") == [("shrinking", 3)]
    assert len(site.rows("backlog_trends")) == 10
    is_as_rebuilt(site, "backlog_trends")


# ---- where the time went ----


def lasting(update: str, name: str, start: float, end: float, status: str = "COMPLETED") -> list[dict[str, Any]]:
    """A flow from start to end."""
    return [
        flow(f"{update}-{name}-1", start, name, {"status": "RUNNING"}, update_id=update),
        flow(f"{update}-{name}-2", end, name, {"status": status}, update_id=update),
    ]


def test_flow_durations(site: Site) -> None:
    """R-FLOW-03, R-FLOW-05, R-DUR-07, R-LIN-04: a waits 20 s and works until 60, b works 30–100, c 90–95 within b. Only a
    worked before b began (10 s), then b carries to the end (70 s): b is the bottleneck with 87.5 %. It took 70 s where
    20 (median of 10, 20, 40; a full refresh does not count) are usual."""
    last = 6 * HOUR
    listing = {"type": "AUTO_LOADER_LISTING"}
    site.write(
        "a.jsonl",
        *lasting("u0", "b", 0, 10),
        *lasting("u1", "b", HOUR, HOUR + 20),
        *lasting("u2", "b", 2 * HOUR, 2 * HOUR + 40),
        *lasting("u3", "b", 3 * HOUR, 3 * HOUR + 500, "FAILED"),
        event("full", 4 * HOUR, "create_update", {"full_refresh": True}, update_id="u4"),
        *lasting("u4", "b", 4 * HOUR, 4 * HOUR + 900),
        event("dry", 5 * HOUR, "create_update", {"explore_only": True}, update_id="u5"),
        *lasting("u5", "b", 5 * HOUR, 5 * HOUR + 1),
        flow("q", last, "a", {"status": "QUEUED"}, update_id="u6"),
        *lasting("u6", "a", last + 20, last + 60),
        *lasting("u6", "b", last + 30, last + 100),
        *lasting("u6", "c", last + 90, last + 95),
        flow("rows", last + 100, "b", {"metrics": {"num_output_rows": 3, "backlog_bytes": 8}}, update_id="u6"),
        event("l1", last, "operation_progress", {**listing, "duration_ms": 12_000}, flow_name="b", update_id="u6"),
        event("l2", last, "operation_progress", {**listing, "duration_ms": 45_500}, flow_name="b", update_id="u6"),
        event(
            "l3", last, "operation_progress", {"type": "CDC_SNAPSHOT", "duration_ms": 9}, flow_name="a", update_id="u6"
        ),
    )
    site.cycle()
    names = ("flow_name", "duration_seconds", "active_seconds", "duration_rank", "critical_seconds", "is_bottleneck")
    assert by(site.rows("flow_durations", update_id="u6"), *names) == [
        ("a", 60.0, 40.0, 2, 10.0, False),  # queued for 20 s, worked from 20 to 60, from 30 on under b
        ("b", 70.0, 70.0, 1, 70.0, True),
        ("c", 5.0, 5.0, 3, 0.0, False),
    ]
    shares = {r["flow_name"]: r["critical_share_pct"] for r in site.rows("flow_durations", update_id="u6")}
    assert shares == pytest.approx({"a": 12.5, "b": 87.5, "c": 0.0})
    usual = {r["update_id"]: (r["usual_seconds"], r["usual_runs"]) for r in site.rows("flow_durations", flow_name="b")}
    assert usual == {
        "u0": (None, 0),
        "u1": (10.0, 1),
        "u2": (15.0, 2),
        "u3": (20.0, 3),
        "u4": (20.0, 3),
        "u5": (20.0, 3),
        "u6": (20.0, 3),
    }
    found = site.row("flow_durations", update_id="u6", flow_name="b")
    assert (found["times_usual"], found["rows_written"], found["peak_backlog_bytes"]) == (3.5, 3, 8)
    assert (found["listing_seconds"], found["run_start_ts"].hour, found["status"]) == (45.5, 6, "COMPLETED")
    assert site.row("flow_durations", update_id="u6", flow_name="a")["listing_seconds"] is None
    # Late: the update before has a run of 30 s after all: the median of 10, 20, 30, 40 is 25.
    site.write("a.jsonl", *lasting("u25", "b", 2.5 * HOUR, 2.5 * HOUR + 30))
    site.cycle()
    found = site.row("flow_durations", update_id="u6", flow_name="b")
    assert (found["usual_seconds"], found["usual_runs"], found["times_usual"]) == (25.0, 4, 2.8)
    is_as_rebuilt(site, "flow_durations")
