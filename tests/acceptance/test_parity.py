"""The same deliveries on the embedded engine, on Apache Spark and over Spark Connect give the same tables, row for row.

The embedded engine is trusted as far as this goes. Each engine runs in a process of its own (`parity_cycle.py`): one
initial cycle, two increments, a rebuild of every mart. Columns are compared with exact equality, doubles included.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from monitoring_platform.config import Engine
from monitoring_platform.marts.registry import MARTS, TABLES
from monitoring_platform.warehouse.contracts import JOB_RUNS, KNOWN_UPDATES, STANDING
from monitoring_platform.warehouse.session import MINIMUM_JAVA, java_version, session
from tests.acceptance.parity_cycle import AVOIDED, RELIED_ON
from tests.acceptance.spark_servers import QUICK, QUICK_JAVA
from tests.conftest import EVENT_LOGS, Site, event, flow, state
from tests.every_body import every_body

ROOT = Path(__file__).parents[2]
CYCLES = ("1", "2", "3")
HUGE = 2**63 - 10
Row = dict[str, Any]

needs_spark = pytest.mark.skipif(
    (java_version() or 0) < MINIMUM_JAVA, reason="Spark half of the parity suite skipped: Java 17+ not found"
)


# ---- deliveries ----


def create(id: str, seconds: float, *, config: Row | None = None, body: Row | None = None, **origin: Any) -> Row:
    return event(id, seconds, "create_update", {**(body or {}), "config": config or {}}, **origin)


def counted(id: str, seconds: float, name: str, status: str | None = "RUNNING", **parts: Any) -> Row:
    """A flow_progress event; metrics and data_quality by name, the rest into origin."""
    body: Row = {"status": status} if status else {}
    for part in ("metrics", "data_quality", "streaming_metrics"):
        if part in parts:
            body[part] = parts.pop(part)
    return flow(id, seconds, name, body, **parts)


def rules(*results: tuple[str, str | None, Any, Any]) -> Row:
    return {
        "dropped_records": 0,
        "expectations": [
            {"name": name, "dataset": dataset, "passed_records": passed, "failed_records": failed}
            for name, dataset, passed, failed in results
        ],
    }


def updates() -> tuple[list[Row], list[Row], list[Row]]:
    """Life cycles: every phase, ends that conflict or come late, clocks that are wrong, internal runs, settings."""
    where: Row = {"pipeline_id": "updates"}
    names = [
        "QUEUED",
        "CREATED",
        "WAITING_FOR_RESOURCES",
        "INITIALIZING",
        "RESETTING",
        "SETTING_UP_TABLES",
        "RUNNING",
        "STOPPING",
    ]
    first = [
        create(
            "c1",
            0.123,
            update_id="all",
            **where,
            body={"cause": "USER_ACTION", "full_refresh": "false"},
            config={"serverless": True, "continuous": "false", "catalog": "main", "target": "t", "edition": "CORE"},
        ),
        *(state(f"s{i}", 1 + i * 1.237, name, update_id="all", **where) for i, name in enumerate(names)),
        # Phases that come more than once: sums of fractions must not depend on the order of summing.
        *(
            state(f"r{i}", 20 + i * 0.773, ("RUNNING", "INITIALIZING")[i % 2], update_id="all", **where)
            for i in range(41)
        ),
        state("conflict1", 60.001, "COMPLETED", update_id="all", **where),
        state("conflict2", 60.002, "FAILED", update_id="all", **where),
        state("after", 61, "RUNNING", update_id="all", **where),
        state("canceled", 70, "CANCELLED", update_id="stopped", **where)
        | {"details": {"update_progress": {"state": "CANCELLED", "cancellation_cause": "USER_ACTION"}}},
        event("silent", 80, "hook_progress", {"name": "h", "status": "x"}, update_id="no-state", **where),
        event(
            "failing",
            81,
            "flow_progress",
            None,
            update_id="no-state",
            level="ERROR",
            **where,
            error={"fatal": True, "exceptions": [{"class_name": "E", "message": "[A.B] broken"}]},
        ),
        event(
            "warning",
            82,
            "deprecation",
            {"message": "m"},
            update_id="no-state",
            level="WARN",
            **where,
            error={"exceptions": [{"message": "only a warning", "error_class": "W", "sql_state": "42000"}]},
        ),
        event("plain-error", 83, "user_action", None, update_id=None, level="ERROR", message="without error", **where),
        event("in-words", 84, "update_progress", None, update_id="in-words", message="Update 12ab is FAILED.", **where),
        # Equal times: the sequence decides, then the id; a missing number comes last.
        state("tie-b", 90, "INITIALIZING", update_id="tie", sequence={"control_plane_seq_no": 5}, **where),
        state("tie-a", 90, "RUNNING", update_id="tie", sequence={"control_plane_seq_no": 9}, **where),
        state(
            "tie-c",
            90,
            "CREATED",
            update_id="tie",
            **where,
            sequence={"control_plane_seq_no": 5, "data_plane_id": {"instance": "i", "seq_no": 1}},
        ),
        state("tie-d", 90, "SETTING_UP_TABLES", update_id="tie", **where),
        # Far-future clocks.
        state("future1", 100, "RUNNING", update_id="future", **where),
        {**state("future2", 0, "COMPLETED", update_id="future", **where), "timestamp": "2999-01-01T00:00:00Z"},
        {
            **state("future3", 0, "RUNNING", update_id="only-future", **where),
            "timestamp": "2999-12-31T23:59:59.999999Z",
        },
        # Internal runs, and settings that change during one update.
        create("explore", 110, update_id="explore", body={"explore_only": "TRUE"}, **where),
        create("validate", 111, update_id="validate", body={"validate_only": 1}, **where),
        event("maintenance", 112, "maintenance_progress", {}, update_id="maintenance", maintenance_id="m", **where),
        create(
            "old-runtime",
            113,
            update_id="settings",
            pipeline_name="old name",
            **where,
            body={"runtime_version": {"dbr_version": "10.4"}, "failed_attempts": "0", "cause": "API_CALL"},
            config={"photon": False, "development": True, "channel": "PREVIEW", "schema": "s", "serverless": False},
        ),
        event(
            "new-runtime",
            114,
            "runtime_details",
            {"dbr_version": "15.4"},
            update_id="settings",
            pipeline_name="näm €",
            pipeline_type="WORKSPACE",
            **where,
        ),
        state("night", 86_399.9, "RUNNING", update_id="midnight", **where),
    ]
    second = [
        create(
            "late-create", 5, update_id="no-state", body={"cause": "SERVICE_UPGRADE", "full_refresh": True}, **where
        ),
        state("late-between", 20.4, "STOPPING", update_id="all", **where),
        state("morning", 86_400.1, "COMPLETED", update_id="midnight", **where),
        state("ends", 101, "FAILED", update_id="tie", level="ERROR", message="it failed", **where),
    ]
    third = [
        state("very-late", 0.001, "QUEUED", update_id="all", **where),
        state("later-end", 62, "COMPLETED", update_id="all", **where),
        event(
            "late-error",
            85,
            "cluster_resources",
            None,
            update_id="no-state",
            level="ERROR",
            **where,
            error={"fatal": "false", "exceptions": "text only"},
        ),
        event("kind", 109, "maintenance_progress", {}, update_id="stopped", maintenance_id="m2", **where),
    ]
    return first, second, third


def retries() -> tuple[list[Row], list[Row], list[Row]]:
    """Requests: chains with and without request_id, open, canceled, cut at the start; a late row that joins two."""

    def attempt(
        pipeline: str, update: str, seconds: float, cause: str | None, end: str | None, **more: Any
    ) -> list[Row]:
        where = {"pipeline_id": pipeline, "update_id": update, **{k: v for k, v in more.items() if k == "request_id"}}
        attempts = {"failed_attempts": more["failed_attempts"]} if "failed_attempts" in more else {}
        rows = [create(f"{update}-c", seconds, body={**({"cause": cause} if cause else {}), **attempts}, **where)]
        return [*rows, state(f"{update}-e", seconds + 30.7, end, **where)] if end else rows

    retry = "RETRY_ON_FAILURE"
    first = [
        *attempt("chain", "a1", 0, "JOB_TASK", "FAILED"),
        *attempt("chain", "a2", 100, retry, "FAILED"),
        *attempt("chain", "b1", 300, "USER_ACTION", "COMPLETED"),
        *attempt("chain", "b2", 400, retry, "COMPLETED"),
        *attempt("chain", "c1", 500, None, "FAILED"),
        *attempt("chain", "c2", 600, retry, "CANCELED"),
        *attempt("chain", "c3", 700, retry, None),
        *attempt("named", "n1", 0, "API_CALL", "FAILED", request_id="req"),
        *attempt("named", "n2", 100, retry, "FAILED", request_id="req", failed_attempts=1),
        *attempt("named", "m1", 200, retry, None, request_id="cut", failed_attempts=3),
        *attempt("named", "o1", 300, None, "FAILED"),
        *attempt("named", "o2", 300, retry, "FAILED"),
        *attempt("orphan", "z1", 0, retry, "FAILED"),
    ]
    second = [
        *attempt("chain", "a3", 200, retry, "COMPLETED"),
        *attempt("named", "n3", 150, retry, "COMPLETED", request_id="req", failed_attempts=2),
        *attempt("orphan", "z2", 100, retry, None),
    ]
    third = [
        # The first of these was its own request until the failure before it became known.
        *attempt("orphan", "z0", -0.0, "USER_ACTION", "FAILED"),
        event("late-request", 701, "hook_progress", {}, pipeline_id="chain", update_id="c1", request_id="given"),
        state("z2-e", 160, "COMPLETED", pipeline_id="orphan", update_id="z2"),
    ]
    third[0]["timestamp"] = "2025-12-31T23:59:00.5Z"
    return first, second, third


def flows() -> tuple[list[Row], list[Row], list[Row]]:
    """Counters: batches, deltas, overflow, unknown; statuses that reopen; backlog; names that are none."""
    where: Row = {"pipeline_id": "flows", "update_id": "u"}
    gateway: Row = {
        "pipeline_id": "gateway",
        "update_id": "g",
        "pipeline_type": "ingestion_gateway",
        "level": "METRICS",
    }
    first = [
        counted(
            "b1",
            1,
            "batched",
            metrics={"num_output_rows": 5, "backlog_bytes": "900"},
            batch_id=0,
            flow_id="f1",
            **where,
        ),
        counted("b2", 2, "batched", metrics={"num_output_rows": 9, "backlog_bytes": 100}, batch_id=0, **where),
        counted(
            "b3",
            3,
            "batched",
            batch_id=1,
            **where,
            metrics={"num_output_rows": 4, "executor_time_ms": 7, "executor_cpu_time_ms": 5_000_000_000},
        ),
        counted("b4", 4, "batched", "COMPLETED", **where),
        counted("x1", 1, "two ids", metrics={"num_upserted_rows": 1}, batch_id=0, flow_id="f1", **where),
        counted("x2", 2, "two ids", metrics={"num_upserted_rows": 2}, batch_id=0, flow_id="f2", **where),
        counted("x3", 3, "two ids", metrics={"num_upserted_rows": 4, "num_deleted_rows": 0}, batch_id=0, **where),
        counted("e1", 1.25, "events", None, metrics={"num_deleted_rows": 3, "num_output_bytes": 10}, **where),
        counted("e2", 2.5, "events", "PLANNING", metrics={"num_deleted_rows": "3"}, **where),
        counted("m1", 1, "metrics level", metrics={"num_output_rows": 3}, level="METRICS", batch_id=1, **where),
        counted("m2", 2, "metrics level", metrics={"num_output_rows": 4}, level="METRICS", batch_id=1, **where),
        *(
            counted(
                f"g{i}",
                i,
                "emits",
                metrics={"num_output_rows": 10 + i, "num_deleted_rows": None},
                **gateway,
                streaming_metrics={"event_time": {"min": f"2026-01-01T00:0{i}:00Z", "max": f"2026-01-01T01:0{i}:00Z"}},
            )
            for i in range(4)
        ),
        counted("h1", 1, "too much", metrics={"num_output_rows": HUGE, "num_upserted_rows": HUGE}, batch_id=0, **where),
        counted("h2", 2, "too much", metrics={"num_output_rows": HUGE, "num_upserted_rows": 1}, batch_id=1, **where),
        counted(
            "h3",
            1,
            "much",
            metrics={"num_output_rows": HUGE, "num_deleted_rows": HUGE},
            update_id="much",
            pipeline_id="flows",
        ),
        counted("h4", 1, "much too", metrics={"num_output_rows": HUGE}, update_id="much", pipeline_id="flows"),
        counted("q1", 1, "dropping", data_quality={"dropped_records": 0}, **where),
        counted("q2", 2, "dropping", data_quality={"dropped_records": None}, **where),
        counted("o1", 5, "reopened", "COMPLETED", **where),
        counted("o2", 6, "reopened", "RUNNING", **where),
        counted(
            "o3",
            7,
            "reopened",
            None,
            metrics={"backlog_records": 3, "backlog_files": 1, "backlog_seconds": 60},
            **where,
        ),
        counted("p1", 1, "pipelines.flowTimeMetrics.missingFlowName", metrics={"num_output_rows": 1}, **where),
        flow("p2", 2, None, {"status": "RUNNING", "metrics": {"num_output_rows": 1}}, **where),  # type: ignore[arg-type]
        event("d1", 0, "flow_definition", {"output_dataset": "main.t.out"}, flow_name="batched", **where),
        event("d2", 0, "flow_definition", {"output_dataset": "main.t.out2"}, flow_name="batched", **where),
        counted("n1", 1, "origin says", dataset_name=" a.b ", **where),
        counted("n2", 1, "'; DROP TABLE x; --`\"\\", "SKIPPED", table_name="t", **where),
        {**counted("w1", 0, "future", "COMPLETED", **where), "timestamp": "2999-01-01T00:00:00Z"},
        counted("w2", 9, "future", "STARTING", **where),
    ]
    second = [
        counted(
            "b5", 2.5, "batched", metrics={"num_output_rows": 11, "backlog_bytes": 5}, batch_id=1, flow_id="f1", **where
        ),
        counted("b6", 5, "batched", "IDLE", metrics={"num_output_rows": HUGE}, batch_id=2, **where),
        counted("g9", 9, "emits", metrics={"num_output_rows": 1}, **gateway),
        counted("o4", 8, "reopened", "STOPPED", **where),
    ]
    third = [
        counted("b7", 6, "batched", metrics={"num_output_rows": HUGE}, batch_id=3, **where),
        event("d3", 10, "flow_definition", {"output_dataset": "main.t.later"}, flow_name="events", **where),
    ]
    return first, second, third


def expectations() -> tuple[list[Row], list[Row], list[Row]]:
    """Rules on datasets spelt in every way, in several batches and flows, with counts missing or too large."""
    where: Row = {"pipeline_id": "quality", "update_id": "q"}
    first = [
        create("c", 0, config={"catalog": "main", "schema": "silver"}, **where),
        event("d", 0, "flow_definition", {"output_dataset": "main.silver.out"}, flow_name="named nothing", **where),
        counted(
            "e1",
            1,
            "f",
            batch_id=0,
            **where,
            data_quality=rules(
                ("one part", "orders", 90, 10),
                ("two", "silver.orders", 3, 0),
                ("three", "main.silver.orders", 0, 3),
                ("dotted", "`odd.name`", 1, 2),
                ("ticks", "`main`.`sil``ver`.`a.b`", 7, 0),
                ("mixed", "main.`silver`.x", 1, 1),
                ("none", "orders", 0, 0),
                ("half", "orders", 5, None),
                ("unknown", "orders", None, None),
            ),
        ),
        counted("e2", 2, "f", batch_id=0, **where, data_quality=rules(("one part", "`orders`", 95, 11))),
        counted("e3", 3, "f", batch_id=1, **where, data_quality=rules(("one part", "main.silver.orders", 7, 3))),
        counted("e4", 4, "g", **where, data_quality=rules(("one part", "silver.`orders`", 1, 1))),
        counted("e5", 5, "g", **where, data_quality=rules(("one part", "orders", 1, 1))),
        counted("e6", 6, "named nothing", **where, data_quality=rules(("no dataset", None, 2, 1))),
        counted("e7", 7, "nothing at all", **where, data_quality=rules(("no dataset", None, 2, 1))),
        counted("e8", 8, "h", dataset_name="main.o.d", **where, data_quality=rules(("no dataset", None, 2, 1))),
        counted(
            "e9",
            9,
            "h",
            catalog_name="other",
            schema_name="sch",
            **where,
            data_quality=rules(("own place", "orders", 1, 3), ("too much", "orders", HUGE, 7)),
        ),
        counted(
            "f1",
            10,
            "h",
            **where,
            data_quality=rules(('it\'s "odd" näme', "orders", 3, 7), ("too much", "orders", HUGE, 7)),
        ),
        counted(
            "f2",
            11,
            "f",
            update_id="no-defaults",
            pipeline_id="quality",
            data_quality=rules(("one part", "orders", 2, 1), ("two", "silver.orders", 2, 1)),
        ),
        flow("f3", 12, None, {"data_quality": rules(("nameless", "orders", 2, 1))}, **where),  # type: ignore[arg-type]
        # No name anywhere; one spelling for datasets of two schemas (above, "too much"): keys all the same.
        flow("f4", 12, None, {"data_quality": rules(("nothing", None, 2, 1))}, **where),  # type: ignore[arg-type]
    ]
    second = [
        counted("e10", 3.5, "f", batch_id=1, **where, data_quality=rules(("one part", "orders", 9, 3))),
        # Only now the defaults become known: the qualified name of stored rows changes, and with it the rows.
        create("late", 0, config={"catalog": "late", "schema": "ly"}, update_id="no-defaults", pipeline_id="quality"),
        counted(
            "e11",
            12,
            "f",
            update_id="no-defaults",
            pipeline_id="quality",
            data_quality=rules(("one part", "`ly`.`orders`", 2, 1)),
        ),
    ]
    third = [
        counted("e12", 13, "k", **where, data_quality=rules(("one part", "late.`silver`.orders", 1, 0))),
        counted("e13", 14, "f", **where, data_quality=rules(("too much", "orders", 5, 5))),
        flow("f5", 15, None, {"data_quality": rules(("nothing", None, 3, 1))}, **where),  # type: ignore[arg-type]
    ]
    return first, second, third


def repeats() -> tuple[list[Row], list[Row], list[Row]]:
    """Deliveries that repeat, in one file and across cycles, and ids that stand for two events."""
    where: Row = {"pipeline_id": "repeats", "update_id": "r"}
    once, cut = state("twice", 1, "RUNNING", **where), state("cut", 2, "RUNNING", message="cut", **where)
    first = [
        once,
        once,
        {**cut, "truncation": {"truncated_fields": [{"field_name": "message"}]}},
        {**cut, "message": "whole"},
        state("conflict", 3, "RUNNING", **where),
        state("conflict", 4, "STOPPING", **where),
        {**state("no id", 5, "RUNNING", **where), "id": None},
        {**state("no id", 5, "RUNNING", **where), "id": None},
        {"timestamp": "never", "origin": {"pipeline_id": "repeats"}, "id": "nowhere"},
        {**state("unknown", 6, "RUNNING", **where), "novel": {"deep": [1, 2.5, "x"]}, "event_type": "BRAND_NEW"},
    ]
    second = [once, state("conflict", 3, "FAILED", level="ERROR", **where), state("end", 7, "COMPLETED", **where)]
    third = [once, *first[:6], state("end", 7, "COMPLETED", **where)]
    return first, second, third


def at(seconds: float) -> datetime:
    """A time as `event` counts them."""
    return datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=seconds)


def known_updates() -> tuple[list[Row], list[Row], list[Row]]:
    """Updates that a log has, that none has, of a pipeline without a log, older than its log; one gets its task."""

    def known(pipeline: str, update: str, seconds: float, **more: Any) -> Row:
        row = {"pipeline_id": pipeline, "update_id": update, "created_at": at(seconds), "known_from": ["listing"]}
        return {**row, "source": "prod", "first_known_at": at(90_000), **more}

    said = {"ended_at": at(30), "request_id": "r", "state": "FAILED", "update_type": "REFRESH"}
    first = [
        known("chain", "a1", 0, trigger_type="JOB_TASK", **said),
        known("chain", "lost", 60, **said, trigger_type="API_CALL"),
        known("ghost", "g1", 0, state="COMPLETED"),
        known("updates", "old", -86_400, known_from=["timeline", "updates"]),
    ]
    second = [known("chain", "c1", 500, job_id="7", task_run_id="71"), known("ghost", "g2", 9)]
    return first, second, [known("chain", "lost", 60, **{**said, "state": "CANCELED"}, trigger_type="API_CALL")]


def job_runs() -> tuple[list[Row], list[Row], list[Row]]:
    """Runs near two requests of `chain`; one turns out to have started the other request, one ends later."""

    def run(number: int, seconds: float, end: float | None, **more: Any) -> Row:
        times = {"started_at": at(seconds), "run_start_time": at(seconds - 5)}
        ends = {"run_end_time": at(end), "task_end_time": at(end - 1)} if end else {}
        results = {"result_state": "SUCCESS", "task_result_state": "SUCCESS"} if end else {}
        ids = {"job_run_id": f"{number}0", "task_run_id": f"{number}1", "job_id": str(number), "pipeline_id": "chain"}
        named = {"job_name": "näm €", "task_key": "t", "trigger": "PERIODIC", "job_tags": "{}", "pipeline_tags": "{}"}
        return {**ids, **named, **times, **ends, **results, **more}

    first = [run(7, 10.5, 50), run(9, 480, None), run(8, 200, 300, job_tags='{"a":"b"}')]
    return first, [run(12, 3, 9)], [run(9, 480, 900)]


def usage() -> tuple[list[Row], list[Row], list[Row]]:
    """Long fractions, changing prices, corrections, no price, two currencies, updates known and unknown."""

    def used(number: int, quantity: str, seconds: float = 0, **more: Any) -> Row:
        day = at(seconds).date().isoformat()
        times = {"usage_start_time": at(seconds).isoformat(), "usage_end_time": at(seconds + 3600).isoformat()}
        billed = {"sku_name": "DLT", "cloud": "AWS", "usage_unit": "DBU", "billing_origin_product": "DLT"}
        ids = {"dlt_pipeline_id": "chain", "dlt_update_id": "a1", "dlt_maintenance_id": "", "workspace_id": "1"}
        about = {"account_id": "acc", "record_type": "ORIGINAL", "custom_tags": "{}", "ingestion_date": day}
        return {
            "record_id": f"r{number}",
            "usage_quantity": quantity,
            **times,
            "usage_date": day,
            **billed,
            **ids,
            **about,
            **more,
        }

    first = [
        *(used(i, f"0.{7**i:018}", 13 * i, dlt_update_id=("a1", "a2", "b1", "")[i % 4]) for i in range(20)),
        used(30, "2.000000000000500000", 1800),
        used(31, "1", sku_name="SQL", billing_origin_product="SQL"),
        used(32, "1", sku_name="BOTH", cloud="AZURE"),
        used(33, "1", sku_name="NONE", dlt_update_id="", dlt_maintenance_id="m"),
    ]
    second = [used(30, "-2.0000000000005", 1800, record_type="RETRACTION", record_id="r30-"), used(40, "3.3", 90_000)]
    return first, second, [used(41, "5", -864_000, dlt_update_id="c1"), used(0, "0.5")]


def prices() -> list[Row]:
    """A price that changes at seconds 0 and 2400, prices in two currencies, a promotion."""
    price = {"sku_name": "DLT", "cloud": "AWS", "usage_unit": "DBU", "currency_code": "USD"}
    return [
        {**price, "price_start_time": "2025-01-01", "price_end_time": at(0).isoformat(), "pricing.default": "0.07"},
        {**price, "price_start_time": at(0).isoformat(), "pricing.default": "0.30000000000000001"},
        {
            **price,
            "price_start_time": at(2400).isoformat(),
            "pricing.default": "0.55",
            "effective_price": "0.1234567891",
        },
        {**price, "sku_name": "SQL", "price_start_time": "2025-01-01", "pricing.default": "0.7"},
        *(
            {**price, "sku_name": "BOTH", "cloud": "AZURE", "currency_code": code, "pricing.default": "1"}
            for code in ("USD", "EUR")
        ),
    ]


def write_csv(file: Path, rows: list[Row]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)


def deliver_context(deliveries: Path) -> None:
    """What a workspace says beside the logs, and exports of billing."""
    for make, table in ((known_updates, KNOWN_UPDATES), (job_runs, JOB_RUNS)):
        for number, rows in zip(CYCLES, make(), strict=True):
            file = deliveries / number / "context" / f"{table.name}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(rows, table.schema), file)
    for number, rows in zip(CYCLES, usage(), strict=True):
        write_csv(deliveries / number / "billing" / f"usage-{number}.csv", rows)
    write_csv(deliveries / "1" / "billing" / "prices.csv", prices())


def table_rows(*numbers: int) -> pa.Table:
    """Rows of a Delta log in table shape: typed time, origin as struct, details as text."""
    return pa.table(
        {
            "id": [f"t{n}" for n in numbers],
            "timestamp": pa.array([1767225600_000_001 + n * 1_000_000 for n in numbers], pa.timestamp("us", "UTC")),
            "event_type": ["update_progress"] * len(numbers),
            "level": ["INFO"] * len(numbers),
            "origin": [{"pipeline_id": "delta", "update_id": f"u{n % 2}", "org_id": 2**53 + n} for n in numbers],
            "details": ['{"update_progress": {"state": "RUNNING"}}'] * len(numbers),
            "surprise": [n / 7 for n in numbers],
        }
    )


def deliver_tables(folder: Path) -> None:
    """A plain Delta log, and one with deletion vectors and mapped names, as they stand at each delivery."""
    spark = session(Engine())
    plain, deleted = folder / "made" / "plain", folder / "made" / "deleted"
    for number in CYCLES:
        rows = table_rows(*range(int(number) * 3))
        if number == "1":
            spark.sql(
                f"CREATE TABLE parity_log (id STRING, timestamp TIMESTAMP, event_type STRING, level STRING, "
                f"origin STRUCT<pipeline_id: STRING, update_id: STRING, org_id: BIGINT>, details STRING, "
                f"surprise DOUBLE) USING delta LOCATION '{deleted}' TBLPROPERTIES "
                f"('delta.enableDeletionVectors' = 'true', 'delta.columnMapping.mode' = 'name')"
            )
        new = rows.slice(int(number) * 3 - 3)
        write_deltalake(str(plain), new, mode="append")
        new = new.set_column(
            4, "origin", pa.array([{**o, "pipeline_id": "deleted"} for o in new["origin"].to_pylist()])
        )
        spark.createDataFrame(new).createOrReplaceTempView("parity_rows")
        spark.sql("INSERT INTO parity_log SELECT * FROM parity_rows").collect()
        if number != "1":
            spark.sql(f"DELETE FROM parity_log WHERE id = 't{int(number) - 2}'").collect()
        shutil.copytree(folder / "made", folder / "deliveries" / number / "delta", dirs_exist_ok=True)


def deliver(folder: Path) -> Path:
    """What arrives before each cycle, as files to copy over those of the cycle before."""
    deliveries = folder / "deliveries"
    for name in ("completed", "dirty"):
        for file in (EVENT_LOGS / name).iterdir():
            if ".json" in file.name:
                target = deliveries / "1" / "files" / name / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
    for make in (updates, retries, flows, expectations, repeats, every_body):
        lines = b""
        for number, rows in zip(CYCLES, make(), strict=True):
            lines += b"".join(orjson.dumps(row) + b"\n" for row in rows)
            target = deliveries / number / "files" / f"{make.__name__}.jsonl"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(lines)
    deliver_tables(folder)
    deliver_context(deliveries)
    for place, file in enumerate(sorted(f for f in deliveries.rglob("*") if f.is_file())):
        os.utime(file, (1_700_000_000 + place, 1_700_000_000 + place))  # cursors hold it
    return deliveries


# ---- running and comparing ----


class Ran(NamedTuple):
    """What one engine left behind."""

    out: Path

    @property
    def report(self) -> Row:
        return dict(json.loads((self.out / "report.json").read_text()))

    def table(self, moment: str, name: str) -> pa.Table:
        return pq.read_table(self.out / moment / f"{name}.parquet")


def run(engine: Row, deliveries: Path, site: Path, out: Path) -> Ran:
    command = [
        sys.executable,
        "-m",
        "tests.acceptance.parity_cycle",
        json.dumps(engine),
        *map(str, (deliveries, site, out)),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=1800)
    if done.returncode:
        pytest.fail(f"cycles on {engine['name']} ended with {done.returncode}: …{done.stderr[-1500:]}", pytrace=False)
    return Ran(out)


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parity")
    deliver(folder)
    return folder


@pytest.fixture(scope="module")
def embedded(ground: Path) -> Ran:
    return run({"name": "embedded"}, ground / "deliveries", ground / "site", ground / "embedded")


@pytest.fixture(scope="module")
def spark(ground: Path, embedded: Ran) -> Ran:
    engine = {"name": "spark", "master": "local[2]", "conf": {**QUICK, "spark.driver.extraJavaOptions": QUICK_JAVA}}
    return run(engine, ground / "deliveries", ground / "site", ground / "spark")


#: Made anew in every warehouse: ids of commits and tables, and numbers of rows within a landing commit (the rows of a
#: table that the engine reads come in any order).
_OWN = {"_ingest_id", "_row", "input_id"}
Texts = tuple[str, ...]


def rows_of(table: pa.Table) -> Counter[Texts]:
    """The rows as texts that tell every value apart, however they are ordered; doubles by their shortest form."""
    names = [name for name in table.column_names if name not in _OWN]
    return Counter(tuple(f"{name}={row[name]!r}" for name in names) for row in table.select(names).to_pylist())


def assert_same_rows(what: str, left: pa.Table, right: pa.Table) -> None:
    """Fails with the first rows that only one side has: their first columns, and those in which they differ."""
    rows, others = rows_of(left), rows_of(right)
    only, missing = sorted((rows - others).elements()), sorted((others - rows).elements())
    lines = [f"{what}: {len(only)} rows only here, {len(missing)} only there"]
    for row, other in itertools.islice(itertools.zip_longest(only, missing, fillvalue=()), 5):
        lines.append("here  " + " ".join(text for n, text in enumerate(row) if n < 3 or text not in other))
        lines.append("there " + " ".join(text for n, text in enumerate(other) if n < 3 or text not in row))
    assert not only and not missing, "\n".join(lines)


def assert_same(one: Ran, other: Ran, moment: str) -> None:
    """Every table holds the same rows with the same types."""
    for table in (*STANDING, *TABLES):
        left, right = one.table(moment, table.name), other.table(moment, table.name)
        assert left.schema.equals(right.schema), f"{table.name}: types differ after {moment}"
        assert_same_rows(f"{table.name} after {moment}", left, right)


# ---- tests ----

#: Columns that the deliveries leave null, by table.
SPARSE = {
    "context_reads": ["note"],
    "dataset_definitions": ["schema_name"],
    "dataset_schemas": ["comment"],
    "pipelines": [
        *("remedy_sql", "workspace", "creator", "run_as", "catalog", "schema", "event_log_table", "continuous"),
        *("development", "serverless", "channel", "edition", "deleted", "predecessor_id"),
    ],
    "source_logs": ["facts", "coverage", "remedy_sql"],
    "pipeline_activity": ["usual_seconds_before"],
    "pipeline_health": ["usual_seconds_before"],
    "recompute_watch": ["until_ts"],
    "table_status": ["latest_failure_update_id", "latest_failure_ts"],
    "weekly_quality": ["previous_week_pass_rate_pct", "change_points"],  # all within one week
}
OF_FAILED_LOGS = {"next_retry_at", "error", "remedy", "owner"}


def test_deliveries_reach_every_branch(embedded: Ran) -> None:
    """The deliveries are worth comparing: no table is empty, and rows change and go in the increments."""
    empty = {}
    for table in (*STANDING, *TABLES):
        rows = embedded.table("3", table.name)
        nulls = [c for c in rows.column_names if rows[c].null_count == len(rows) and c not in OF_FAILED_LOGS]
        if nulls:
            empty[table.name] = nulls
    assert empty == SPARSE
    for number in CYCLES[1:]:
        assert embedded.report[number]["united"]["repeated"]
    refreshed = [one for number in CYCLES[1:] for one in embedded.report[number]["refreshed"]]
    assert {mart.name for mart in MARTS} == {one["mart"] for one in refreshed if one["written"]}
    removed = {one["mart"] for number in CYCLES for one in embedded.report[number]["refreshed"] if one["removed"]}
    assert removed >= {"requests", "expectation_results"}
    assert embedded.report["2"]["united"]["conflicts"]
    assert embedded.report["1"]["read"]["quarantined"]


def test_keys_are_unique_and_never_null(embedded: Ran) -> None:
    """A mart's key names one row (R-UNI-03): a MERGE finds no second one, and no null that equals nothing."""
    for moment in (*CYCLES, "rebuilt"):
        for table in TABLES:
            keys = embedded.table(moment, table.name).select(list(table.keys))
            assert [key for key in table.keys if keys[key].null_count] == [], table.name
            assert keys.group_by(list(table.keys)).aggregate([]).num_rows == keys.num_rows, table.name


def test_rebuild_gives_what_the_increments_gave_embedded(embedded: Ran) -> None:
    """A mart computed from everything at once equals the mart kept up to date by increments (R-PEER-03, R-RUN-01)."""
    assert_rebuilt(embedded)


def assert_rebuilt(ran: Ran) -> None:
    for mart in MARTS:
        assert_same_rows(mart.name, ran.table("3", mart.name), ran.table("rebuilt", mart.name))


@needs_spark
@pytest.mark.parametrize("moment", CYCLES)
def test_spark_gives_the_same_tables(embedded: Ran, spark: Ran, moment: str) -> None:
    """Every table after every cycle, row for row, doubles exactly (R-UNI-01, R-UNI-03, R-NEW-10)."""
    assert_same(embedded, spark, moment)


@needs_spark
def test_spark_says_the_same(embedded: Ran, spark: Ran) -> None:
    """What the steps report (rows read, new, repeated, in conflict, written, removed) does not depend on the engine."""
    for number in CYCLES:
        said, other = embedded.report[number], spark.report[number]
        assert {k: v for k, v in said.items() if k != "seconds"} == {k: v for k, v in other.items() if k != "seconds"}


@needs_spark
def test_a_streaming_reader_sees_each_event_once(spark: Ran) -> None:
    """R-UNI-13: the platform's own daily maintenance neither breaks it nor repeats rows; a new event comes once."""
    first, read, distinct = spark.report["streamed"]
    events = spark.table("3", "all_pipelines_event_log").num_rows
    assert (first, read, distinct) == (events, events + 1, events + 1)


@needs_spark
@pytest.mark.parametrize("name", RELIED_ON)
def test_what_the_tables_rely_on_is_the_same(embedded: Ran, spark: Ran, name: str) -> None:
    """What the SQL of this project uses, beside what the tables themselves show (R-NEW-10)."""
    assert embedded.report["answers"][name] == spark.report["answers"][name], RELIED_ON[name]


@needs_spark
@pytest.mark.parametrize("name", AVOIDED)
def test_what_is_avoided_differs(embedded: Ran, spark: Ran, name: str) -> None:
    """The list of docs/architecture.md. One that fails no longer differs: take it off the list."""
    assert embedded.report["answers"][name] != spark.report["answers"][name], AVOIDED[name]


@needs_spark
def test_embedded_reads_what_spark_wrote(spark: Ran, make_site: Any) -> None:
    """Logs as Apache Spark writes them, times as INT96 (R-ING-10): far-future times too, deleted rows not, mapped names."""
    place: Site = make_site(config=f"sources: [{{type: delta, path: '{spark.out / 'made'}'}}]\n")
    place.cycle()
    found = place.rows("all_pipelines_event_log")
    expected = {("deleted", f"s{i}") for i in range(1, 6)} | {
        (name, f"s{i}") for i in range(6) for name in ("plain", "mapped")
    }
    assert Counter((row["pipeline_id"], row["event_id"]) for row in found) == Counter(expected)
    assert {row["update_state"] for row in found} == {"RUNNING"}
    assert {row["event_ts"].isoformat() for row in found if row["event_id"] == "s5"} == {
        "2999-01-01T00:00:00.000001+00:00"
    }


SERVER = """
import os, sys
os.environ["RUST_LOG"] = "off"
from pysail.spark import SparkConnectServer
server = SparkConnectServer()
server.start(background=True)
print(server.listening_address[1], flush=True)
sys.stdin.read()
os._exit(0)
"""


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a Spark Connect server in another process; it ends with the test."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"sc://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def test_connect_gives_the_same_tables(ground: Path, embedded: Ran, server: str) -> None:
    """`engine: connect` runs a cycle on a server of another process: the same tables as in this one."""
    first = ground / "first"
    shutil.copytree(ground / "deliveries" / "1", first / "1")
    ran = run({"name": "connect", "url": server}, first, ground / "site", ground / "connect")
    assert_same(embedded, ran, "1")
