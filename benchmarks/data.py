"""Seeded event logs of a fleet, as Delta tables: one folder per pipeline, a few commits each.

Every update tells the same story of 100 events (`STORY`): created with its configuration, its phases, its datasets
and flows, cumulative metrics per batch with expectations, its end. About one update in 25 fails and is retried under
the same request. A longer log reaches further back in time at the same density, as a real one does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from deltalake import write_deltalake

END = datetime(2026, 11, 1, tzinfo=timezone.utc)
EVENTS_PER_UPDATE = 100
UPDATE_EVERY = timedelta(days=14) / 20  # 2,000 events are 20 updates in 14 days
COMMITS = 8
FAILURE_RATE = 0.04
FAILING_FLOW = 2
IDENTITY, HISTORY = 1, 2  # streams of random numbers of one pipeline; increments follow

EXCEPTION = pa.struct(
    [
        ("class_name", pa.string()),
        ("message", pa.string()),
        (
            "stack",
            pa.list_(
                pa.struct(
                    [
                        ("declaring_class", pa.string()),
                        ("method_name", pa.string()),
                        ("file_name", pa.string()),
                        ("line_number", pa.int64()),
                    ]
                )
            ),
        ),
    ]
)
ERROR = pa.struct([("fatal", pa.bool_()), ("exceptions", pa.list_(EXCEPTION))])
ORIGIN = {
    "cloud": pa.string(),
    "region": pa.string(),
    "org_id": pa.int64(),
    "user_id": pa.int64(),
    "pipeline_id": pa.string(),
    "pipeline_type": pa.string(),
    "pipeline_name": pa.string(),
    "cluster_id": pa.string(),
    "update_id": pa.string(),
    "maintenance_id": pa.string(),
    "table_id": pa.string(),
    "table_name": pa.string(),
    "flow_id": pa.string(),
    "flow_name": pa.string(),
    "batch_id": pa.int64(),
    "request_id": pa.string(),
    "uc_resource_id": pa.string(),
    "dataset_name": pa.string(),
    "sink_name": pa.string(),
    "catalog_name": pa.string(),
    "schema_name": pa.string(),
    "materialization_name": pa.string(),
    "operation_id": pa.string(),
}


@dataclass(frozen=True)
class Flow:
    """One flow of every pipeline: its table, its kind, the rules on it and the figures it reports."""

    name: str
    flow_type: str
    inputs: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    rows: int | None = None  # usual rows per batch; None: reports no rows

    @property
    def dataset(self) -> str:
        return f"main.sales.{self.name}"


FLOWS = (
    Flow("bronze_orders", "APPEND", rows=20_000),
    Flow("bronze_customers", "APPEND", rows=4_000),
    Flow("silver_orders", "APPEND", ("bronze_orders",), ("valid_amount", "non_null_id"), 19_000),
    Flow("silver_customers", "CHANGE", ("bronze_customers",), rows=1_500),
    Flow("silver_products", "APPEND", rules=("valid_price",), rows=900),
    Flow("gold_daily_sales", "MATERIALIZED_VIEW", ("silver_orders",)),
    Flow("gold_revenue", "MATERIALIZED_VIEW", ("silver_orders", "silver_products")),
    Flow("gold_customers", "MATERIALIZED_VIEW", ("silver_customers",)),
)


@dataclass(frozen=True)
class Step:
    """One event of an update's story; `details` and `message` are %-templates over the update's values."""

    gap_s: float
    event_type: str
    details: str
    message: str
    flow: int | None = None
    batch: int | None = None
    share: float = 0.0
    last: str = ""  # "flow" or "update" for the event whose state depends on the outcome


@dataclass(frozen=True)
class Pipeline:
    """What identifies one generated pipeline."""

    number: int
    pipeline_id: str
    name: str
    flow_ids: list[str]

    @property
    def folder(self) -> str:
        return f"event_log_{self.pipeline_id.replace('-', '_')}"


def template(details: dict[str, Any]) -> str:
    """JSON text with `%(key)s` inside strings left as it is and `"@key"` turned into the number `%(key)d`."""
    return re.sub(r'"@(\w+)"', r"%(\1)d", json.dumps(details, separators=(",", ":")))


def _phase(state: str, gap_s: float, last: str = "") -> Step:
    details = template({"update_progress": {"state": state, "cancellation_cause": None}})
    return Step(gap_s, "update_progress", details, f"Update %(short)s is {state}.", last=last)


def _beginning() -> Iterator[Step]:
    config = {
        "id": "%(pipeline_id)s",
        "name": "%(pipeline_name)s",
        "storage": "dbfs:/pipelines/%(pipeline_id)s",
        "configuration": {"env": "prod", "source.path": "/Volumes/main/landing/orders", "api_key": "not-a-real-key"},
        "clusters": [{"label": "default", "autoscale": {"min_workers": 1, "max_workers": 4, "mode": "ENHANCED"}}],
        "libraries": [{"notebook": {"path": "/Repos/prod/%(pipeline_name)s/flows"}}],
        "catalog": "main",
        "schema": "sales",
        "serverless": True,
        "continuous": False,
        "development": False,
        "photon": True,
        "edition": "ADVANCED",
        "channel": "CURRENT",
    }
    created = {
        "cause": "%(cause)s",
        "config": config,
        "full_refresh": False,
        "failed_attempts": "@failed_attempts",
        "run_as_user_id": 7405605519549535,
        "validate_only": False,
        "explore_only": False,
    }
    yield Step(0, "create_update", template({"create_update": created}), "Update %(short)s started by %(cause)s.")
    yield _phase("CREATED", 0.2)
    yield _phase("WAITING_FOR_RESOURCES", 1)
    runtime = template({"runtime_details": {"dbr_version": "17.3", "image_key": "dlt:17.3.4-delta-pipelines-dlt"}})
    yield Step(40, "runtime_details", runtime, "Runtime of update %(short)s.")
    yield _phase("INITIALIZING", 4)
    yield _phase("SETTING_UP_TABLES", 9)


def _definitions() -> Iterator[Step]:
    schema = [
        {"name": name, "path": [name], "data_type": kind}
        for name, kind in (("id", "bigint"), ("amount", "decimal(18,2)"), ("country", "string"), ("ts", "timestamp"))
    ]
    for number, flow in enumerate(FLOWS):
        dataset = {"dataset_type": "TABLE", "num_flows": 1, "expectations": [], "schema": schema}
        yield Step(
            0.1,
            "dataset_definition",
            template({"dataset_definition": dataset}),
            f"Dataset '{flow.name}' defined as TABLE.",
            number,
        )
        definition = {
            "input_datasets": [f"main.sales.{name}" for name in flow.inputs],
            "output_dataset": flow.dataset,
            "flow_type": flow.flow_type,
            "language": "PYTHON",
            "once": False,
            "schema": schema,
            "spark_conf": [{"key": "spark.sql.shuffle.partitions", "value": "auto"}],
            "explain_text": f"== Physical Plan ==\nAdaptiveSparkPlan isFinalPlan=false\n+- Scan {flow.dataset}\n" * 3,
        }
        yield Step(
            0.1,
            "flow_definition",
            template({"flow_definition": definition}),
            f"Flow '{flow.name}' defined as {flow.flow_type}.",
            number,
        )


def _flow_status(status: str, gap_s: float, last: str = "") -> Iterator[Step]:
    for number, flow in enumerate(FLOWS):
        details = template({"flow_progress": {"status": status, "metrics": None, "data_quality": None}})
        yield Step(gap_s, "flow_progress", details, f"Flow '{flow.name}' is {status}.", number, last=last)


def _metrics(flow: Flow) -> dict[str, Any]:
    metrics: dict[str, Any] = {"executor_time_ms": "@time_ms", "executor_cpu_time_ms": "@cpu_ms"}
    if flow.flow_type == "CHANGE":
        metrics |= {"num_upserted_rows": "@rows", "num_deleted_rows": "@deleted"}
    elif flow.rows:
        metrics |= {"num_output_rows": "@rows", "num_output_bytes": "@bytes"}
    if flow.rows and not flow.inputs:
        metrics |= {"backlog_bytes": "@backlog", "backlog_files": 3}
    return metrics


def _batches() -> Iterator[Step]:
    """Each flow's running counts: of batch 0 twice (cumulative), of batch 1 twice, of batch 2 once."""
    for batch, share in ((0, 0.5), (0, 1.0), (1, 0.4), (1, 1.0), (2, 1.0)):
        for number, flow in enumerate(FLOWS):
            rules = [
                {"name": rule, "dataset": flow.dataset, "passed_records": "@passed", "failed_records": "@failed"}
                for rule in flow.rules
            ]
            quality = {"dropped_records": "@failed" if rules else 0, "expectations": rules}
            progress = {"status": "RUNNING", "metrics": _metrics(flow), "data_quality": quality}
            details = template({"flow_progress": progress})
            yield Step(6, "flow_progress", details, f"Flow '{flow.name}' is RUNNING.", number, batch, share)


def _planning() -> Step:
    techniques = [
        {
            "maintenance_type": "MAINTENANCE_TYPE_COMPLETE_RECOMPUTE",
            "is_chosen": False,
            "is_applicable": True,
            "cost": 4.75717377e8,
        },
        {
            "maintenance_type": "MAINTENANCE_TYPE_ROW_BASED",
            "is_chosen": True,
            "is_applicable": True,
            "cost": 1.18965781e8,
        },
    ]
    details = template({"planning_information": {"technique_information": techniques}})
    return Step(1, "planning_information", details, "Flow 'gold_daily_sales' has been planned as ROW_BASED.", 5)


def _listing(status: str) -> Step:
    operation = {
        "type": "AUTO_LOADER_LISTING",
        "status": status,
        "duration_ms": "@time_ms" if status == "COMPLETED" else None,
        "auto_loader_details": {"source_path": "/Volumes/main/landing/orders", "num_files_listed": 120},
    }
    details = template({"operation_progress": operation})
    return Step(2, "operation_progress", details, f"Directory listing has {status}.", 0)


def _story() -> list[Step]:
    """The 100 events of one update, in order."""
    steps = [*_beginning(), *_definitions(), _phase("RUNNING", 3)]
    steps += [*_flow_status("QUEUED", 0.05), *_flow_status("STARTING", 0.5), _planning()]
    steps += [_listing("STARTED"), _listing("COMPLETED"), *_flow_status("RUNNING", 1), *_batches()]
    steps += [*_flow_status("COMPLETED", 2, last="flow"), _phase("COMPLETED", 5, last="update")]
    padding = EVENTS_PER_UPDATE - len(steps)
    if padding < 0:
        raise AssertionError(f"the story has {len(steps)} events, more than {EVENTS_PER_UPDATE}")
    idle = template({"cluster_resources": {"task_slot_metrics": {"num_task_slots": 8, "num_executors": 2}}})
    resources = Step(4, "cluster_resources", idle, "Reported cluster resources.")
    return [*steps[:-1], *[resources] * padding, steps[-1]]


STORY = _story()
OFFSETS_MS = np.cumsum([int(step.gap_s * 1000) for step in STORY])
CONTROL_PLANE = np.array([step.event_type in ("create_update", "update_progress") for step in STORY])


def uuids(rng: np.random.Generator, count: int) -> list[str]:
    """Random ids in UUID form."""
    text = rng.bytes(16 * count).hex()
    ids = (text[at : at + 32] for at in range(0, len(text), 32))
    return [f"{i[:8]}-{i[8:12]}-{i[12:16]}-{i[16:20]}-{i[20:]}" for i in ids]


def pipeline(seed: int, number: int) -> Pipeline:
    """The `number`-th pipeline of the fleet grown from `seed`."""
    pipeline_id, *flow_ids = uuids(np.random.default_rng([seed, number, IDENTITY]), 1 + len(FLOWS))
    return Pipeline(number, pipeline_id, f"sales_{number:04d}", flow_ids)


def _failure(code: str, text: str) -> dict[str, Any]:
    frame = {
        "declaring_class": "org.apache.spark.sql.errors.QueryCompilationErrors$",
        "method_name": "schemaMismatch",
        "file_name": "QueryCompilationErrors.scala",
        "line_number": 1042,
    }
    raised = {
        "class_name": "org.apache.spark.sql.AnalysisException",
        "message": f"[{code}] {text}",
        "stack": [frame] * 6,
    }
    return {"fatal": True, "exceptions": [raised]}


FAILURE = _failure("DELTA_SCHEMA_MISMATCH", "A schema mismatch was detected when writing to the table silver_orders.")
FAILED_FLOW = template({"flow_progress": {"status": "FAILED"}})
STOPPED_FLOW = template({"flow_progress": {"status": "STOPPED"}})
FAILED_UPDATE = template({"update_progress": {"state": "FAILED", "cancellation_cause": None}})


@dataclass
class Update:
    """One run of a pipeline: when, how it ends, and the values its events share."""

    start: datetime
    failed: bool
    pace: float
    values: dict[str, Any]
    request_id: str

    def outcome(self, step: Step) -> tuple[str, str, str, dict[str, Any] | None]:
        """(level, message template, details template, error) of a step, given how this update ends."""
        if not (self.failed and step.last):
            return "INFO", step.message, step.details, None
        if step.last == "update":
            return "ERROR", "Update %(short)s is FAILED.", FAILED_UPDATE, FAILURE
        if step.flow == FAILING_FLOW:
            return "ERROR", f"Flow '{FLOWS[FAILING_FLOW].name}' has FAILED.", FAILED_FLOW, FAILURE
        if step.flow is not None and step.flow > FAILING_FLOW:
            return "WARN", f"Flow '{FLOWS[step.flow].name}' was STOPPED.", STOPPED_FLOW, None
        return "INFO", step.message, step.details, None


def _updates(pipe: Pipeline, rng: np.random.Generator, starts: list[datetime]) -> list[Update]:
    """One update per start; the one after a failure is its retry and shares the request."""
    count = len(starts)
    update_ids, request_ids = uuids(rng, count), uuids(rng, count)
    fails, pace = rng.random(count) < FAILURE_RATE, rng.uniform(0.7, 1.4, count)
    updates: list[Update] = []
    for i, start in enumerate(starts):
        retry = i > 0 and updates[-1].failed
        values = {
            "pipeline_id": pipe.pipeline_id,
            "pipeline_name": pipe.name,
            "update_id": update_ids[i],
            "short": update_ids[i][:6],
            "cause": "RETRY_ON_FAILURE" if retry else "JOB_TASK",
            "failed_attempts": int(retry),
        }
        request = updates[-1].request_id if retry else request_ids[i]
        updates.append(Update(start, bool(fails[i]) and not retry, float(pace[i]), values, request))
    return updates


def _figures(flow: Flow, share: float, size: float) -> dict[str, int]:
    """The counts that one metrics event reports."""
    rows = int((flow.rows or 0) * share * size)
    failed = rows // 400
    return {
        "rows": rows,
        "deleted": rows // 50,
        "bytes": rows * 180,
        "backlog": int(1e6 * size),
        "passed": rows - failed,
        "failed": failed,
        "time_ms": int(4000 * share * size) + 900,
        "cpu_ms": int(2500 * share * size) + 400,
    }


def _texts(updates: list[Update], rng: np.random.Generator, count: int) -> dict[str, list[Any]]:
    """level, message, details and error of the first `count` events of these updates."""
    columns: dict[str, list[Any]] = {"level": [], "message": [], "details": [], "error": []}
    sizes = rng.uniform(0.6, 1.5, len(updates) * len(FLOWS)).reshape(len(updates), len(FLOWS)).tolist()
    for update, size in zip(updates, sizes, strict=True):
        for step in STORY[: count - len(columns["level"])]:
            level, message, details, error = update.outcome(step)
            values = update.values
            if step.flow is not None:
                values = values | _figures(FLOWS[step.flow], step.share, size[step.flow])
            columns["level"].append(level)
            columns["message"].append(message % values)
            columns["details"].append(details % values)
            columns["error"].append(error)
    return columns


def _origin(pipe: Pipeline, updates: list[Update], steps: np.ndarray, which: np.ndarray) -> pa.StructArray:
    """`origin` of every event: the pipeline's constants, the update's ids, the flow's names."""
    flows = pa.array([step.flow for step in STORY], pa.int64()).take(pa.array(steps))
    constant = {
        "cloud": "AWS",
        "region": "eu-central-1",
        "org_id": 1234567890123456,
        "pipeline_id": pipe.pipeline_id,
        "pipeline_type": "WORKSPACE",
        "pipeline_name": pipe.name,
        "uc_resource_id": pipe.pipeline_id,
        "catalog_name": "main",
        "schema_name": "sales",
    }
    by_update = {
        "update_id": [update.values["update_id"] for update in updates],
        "request_id": [update.request_id for update in updates],
    }
    by_flow = {
        "flow_name": [flow.dataset for flow in FLOWS],
        "flow_id": pipe.flow_ids,
        "dataset_name": [flow.dataset for flow in FLOWS],
    }
    arrays = []
    for name, kind in ORIGIN.items():
        if name in constant:
            arrays.append(pa.repeat(pa.scalar(constant[name], kind), len(steps)))
        elif name in by_update:
            arrays.append(pa.array(by_update[name], kind).take(pa.array(which)))
        elif name in by_flow:
            arrays.append(pa.array(by_flow[name], kind).take(flows))
        elif name == "batch_id":
            arrays.append(pa.array([step.batch for step in STORY], kind).take(pa.array(steps)))
        else:
            arrays.append(pa.nulls(len(steps), kind))
    return pa.StructArray.from_arrays(arrays, list(ORIGIN))


def _sequence(pipe: Pipeline, steps: np.ndarray, first: int) -> pa.StructArray:
    """`sequence`: the control plane numbers all events, the data plane its own only."""
    numbers = np.arange(first, first + len(steps))
    data_plane = pa.StructArray.from_arrays(
        [pa.repeat(f"execution-{pipe.number}", len(steps)), pa.array(numbers)],
        ["instance", "seq_no"],
        mask=pa.array(CONTROL_PLANE[steps]),
    )
    return pa.StructArray.from_arrays(
        [data_plane, pa.array(numbers + 1_700_000_000_000_000)], ["data_plane_id", "control_plane_seq_no"]
    )


def events(pipe: Pipeline, rng: np.random.Generator, starts: list[datetime], count: int, first: int = 0) -> pa.Table:
    """The first `count` events of updates that begin at `starts`, as a table of the ten columns."""
    updates = _updates(pipe, rng, starts)
    steps, which = np.arange(count) % EVENTS_PER_UPDATE, np.arange(count) // EVENTS_PER_UPDATE
    begin = np.array([int(update.start.timestamp() * 1000) for update in updates])
    pace = np.array([update.pace for update in updates])
    stamps_us = (begin[which] + (OFFSETS_MS[steps] * pace[which]).astype(np.int64)) * 1000
    texts = _texts(updates, rng, count)
    types = pa.array([step.event_type for step in STORY])
    return pa.table(
        {
            "id": pa.array(uuids(rng, count)),
            "sequence": _sequence(pipe, steps, first),
            "origin": _origin(pipe, updates, steps, which),
            "timestamp": pa.array(stamps_us, pa.timestamp("us", tz="UTC")),
            "message": pa.array(texts["message"], pa.string()),
            "level": pa.array(texts["level"], pa.string()),
            "maturity_level": pa.repeat("STABLE", count),
            "error": pa.array(texts["error"], ERROR),
            "details": pa.array(texts["details"], pa.string()),
            "event_type": types.take(pa.array(steps)),
        }
    )


def _write_history(logs: Path, seed: int, count: int, number: int) -> None:
    """One pipeline's whole log, in `COMMITS` commits."""
    pipe = pipeline(seed, number)
    rng = np.random.default_rng([seed, number, HISTORY])
    updates = -(-count // EVENTS_PER_UPDATE)
    shift = rng.uniform(0.1, 0.9)
    starts = [END - UPDATE_EVERY * (updates - i - shift) for i in range(updates)]
    table = events(pipe, rng, starts, count)
    bounds = np.linspace(0, count, COMMITS + 1).astype(int)
    for begin, end in pairwise(bounds):
        if end > begin:  # rows are copied: delta-rs 1.6 aborts the process on a slice of a nullable struct
            write_deltalake(str(logs / pipe.folder), table.take(pa.array(range(begin, end))), mode="append")


def write_logs(logs: Path, pipelines: int, count: int, seed: int) -> int:
    """Write every pipeline's log of `count` events under `logs`; return the number of events."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(_write_history, logs, seed, count), range(pipelines)))
    return pipelines * count


def append_increment(logs: Path, pipelines: int, seed: int, turn: int, touched: int = 10, count: int = 100) -> int:
    """Turn `turn` (1, 2, …): `touched` pipelines run once more, one commit each; return the number of new events.

    Which pipelines these are moves on with every turn.
    """
    chosen = {(i * pipelines // touched + turn) % pipelines for i in range(touched)}
    for number in sorted(chosen):
        pipe = pipeline(seed, number)
        rng = np.random.default_rng([seed, number, HISTORY + turn])
        start = END + timedelta(hours=turn - 1, minutes=float(rng.uniform(0, 20)))
        starts = [start + timedelta(minutes=15 * i) for i in range(-(-count // EVENTS_PER_UPDATE))]
        table = events(pipe, rng, starts, count, first=10_000_000 + turn * count)
        write_deltalake(str(logs / pipe.folder), table, mode="append")
    return len(chosen) * count
