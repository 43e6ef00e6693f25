"""Pipelines that run without end: micro-batches of continuous ones, emissions of ingestion gateways."""

from __future__ import annotations

from monitoring_platform.demo.events import HOUR, MINUTE, SECOND, Json, iso
from monitoring_platform.demo.journal import Journal
from monitoring_platform.demo.model import CATALOG, Flow
from monitoring_platform.demo.rows import work
from monitoring_platform.demo.timeline import Attempt
from monitoring_platform.demo.truth import RunTruth
from monitoring_platform.demo.updates import Update


def play_continuous(
    journal: Journal, attempt: Attempt, start: int, until: int, request_id: str | None, stalls_at: int | None = None
) -> RunTruth:
    """An update that goes on in micro-batches; it is stopped at `until` or, when RUNNING is meant, goes on.

    From `stalls_at` on it does nothing but tell what waits.
    """
    update = Update(journal, attempt, start, 1, request_id)
    update.create()
    ready = update.prepare()
    update.define(ready - 600)
    update.state(ready, "RUNNING")
    origins = [update.flow_origin(flow) for flow in update.pipeline.flows]
    for flow, origin in zip(update.pipeline.flows, origins, strict=True):
        update.flow_status(ready + 20, flow, "STARTING", origin)
        update.flow_status(ready + 1_200, flow, "RUNNING", origin)
    for number, begin in enumerate(range(ready + 2 * SECOND, until - 12 * MINUTE, HOUR)):
        end = min(begin + HOUR, until) - MINUTE
        for flow, origin in zip(update.pipeline.flows, origins, strict=True):
            if stalls_at is not None and begin >= stalls_at:
                update.flow_figures(begin + 10 * MINUTE, flow, origin, {"metrics": {}})
                continue
            done = work(update.pipeline, flow, int(flow.usual_rows * journal.rng.uniform(0.1, 0.2)), {}, journal.rng)
            update.batch(begin, end, flow, origin, done, journal.rng.choice((1, 1, 2, 3)))
            journal.finish_batch(flow)
        if number % 12 == 0:
            update.cluster((begin + end) // 2)
    if attempt.outcome != "RUNNING":
        for flow, origin in zip(update.pipeline.flows, origins, strict=True):
            update.flow_status(until - 4 * SECOND, flow, "STOPPED", origin)
        update.state(until, attempt.outcome)
    return update.run


def play_gateway(journal: Journal, attempt: Attempt, start: int, until: int, request_id: str | None) -> RunTruth:
    """An ingestion gateway: METRICS rows whose counters begin at 0 again at every emission."""
    update = Update(journal, attempt, start, 1, request_id)
    update.create()
    ready = update.prepare()
    update.state(ready, "RUNNING")
    for flow in update.pipeline.flows:
        origin = {**update.flow_origin(flow), "ingestion_source_type": _source_type(update.pipeline.name)}
        if flow.flow_type == "SNAPSHOT_CHANGE":
            _play_snapshot(update, flow, origin, ready, min(until, ready + 6 * HOUR))
        else:
            _play_changes(update, flow, origin, ready, until)
    return update.run


def _source_type(pipeline_name: str) -> str:
    return pipeline_name.split("_")[1].upper()


def _emit(update: Update, ts: int, flow: Flow, origin: Json, upserted: int, deleted: int | None, extra: Json) -> None:
    """One emission; a null num_deleted_rows says nothing about deletions."""
    metrics = {"num_upserted_rows": upserted, "num_deleted_rows": deleted, "num_output_bytes": upserted * 61}
    message = f"Completed a streaming update of '{flow.name}'."
    details = {"status": "RUNNING", "metrics": metrics, **extra}
    update.journal.write(ts, "flow_progress", details, message, origin, level="METRICS")
    truth = update.run.flow(flow.name)
    truth.status, truth.last_batch = "RUNNING", ts
    truth.add({"rows_upserted": upserted} | ({} if deleted is None else {"rows_deleted": deleted}))


def _play_snapshot(update: Update, flow: Flow, origin: Json, begin: int, until: int) -> None:
    steps = range(begin + MINUTE, until - 30 * MINUTE, 30 * MINUTE)
    for number, ts in enumerate(steps, 1):
        _emit(update, ts, flow, origin, flow.usual_rows * update.rng.randint(800, 1_200), None, {})
        if number % 4:
            continue
        details = {
            "type": "CDC_SNAPSHOT",
            "status": "IN_PROGRESS",
            "duration_ms": ts - begin,
            "progress_percent": round(100 * number / len(steps), 1),
            "estimated_completion_ms": (len(steps) - number) * 30 * MINUTE,
            "cdc_snapshot": {
                "target_table_name": f"{CATALOG}.{update.pipeline.schema}.{flow.dataset}",
                "snapshot_timestamp": begin,
                "snapshot_reason": "NEW_TABLE",
            },
        }
        message = f"Snapshot in progress for '{CATALOG}.{update.pipeline.schema}.{flow.dataset}'."
        update.journal.write(ts + 40, "operation_progress", details, message, origin, level="METRICS")


def _play_changes(update: Update, flow: Flow, origin: Json, begin: int, until: int) -> None:
    rng = update.rng
    for ts in range(begin + 5 * MINUTE, until - 2 * MINUTE, HOUR):
        quiet = rng.random() < 0.2
        upserted = 0 if quiet else flow.usual_rows + rng.randint(0, 60)
        deleted = None if rng.random() < 0.1 else (0 if quiet else rng.randint(0, 9))
        times = {
            "discovery_latency_ms": rng.randint(900, 16_000),
            "batch_processing_time_ms": rng.randint(2_000, 9_000),
            "event_time": {"max": iso(ts - 12_000)},
        }
        _emit(update, ts, flow, origin, upserted, deleted, {} if quiet else {"streaming_metrics": times})
