"""The monitoring watches itself: at the end of each cycle one row of `platform_runs`, from what Dagster knows of it."""

from __future__ import annotations

import resource
import sys
from datetime import datetime, timezone
from typing import Any

import dagster as dg
import pyarrow as pa

from monitoring_platform.cycle.clock import clock
from monitoring_platform.event_log.redact import redact_text
from monitoring_platform.marts.tables.platform import PLATFORM_RUNS
from monitoring_platform.orchestration.jobs import failure_text
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.store import Warehouse

_STEPS = {dg.DagsterEventType.STEP_START, dg.DagsterEventType.STEP_SUCCESS, dg.DagsterEventType.STEP_FAILURE}
_LAUNCHERS = ("monitoring/launched_by", "dagster/sensor_name", "dagster/schedule_name")
#: What the steps tell of themselves, by the column that it goes to.
_TOLD = {
    contracts.PIPELINES.name: ("logs_read", "logs_failed", "events_read", "quarantined"),
    contracts.UNION.name: ("events_new", "lag_p50_seconds", "lag_max_seconds"),
}


def keep_run(warehouse: Warehouse, instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Append the row of a run whose steps are over: one commit, which needs no lock."""
    row = {**_steps(instance, run), **_told(instance, run), **_spent()}
    warehouse.create([PLATFORM_RUNS])
    warehouse.append_rows(PLATFORM_RUNS, pa.Table.from_pylist([row], PLATFORM_RUNS.schema))


def _steps(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, Any]:
    """When the run's steps began and ended, and which failed."""
    begun: dict[str | None, float] = {}
    seconds: dict[str | None, float] = {}
    errors = []
    entries = instance.all_logs(run.run_id, of_type=_STEPS)
    for entry in entries:
        event = entry.get_dagster_event()
        if event.is_step_start:
            begun[event.step_key] = entry.timestamp
            continue
        seconds[event.step_key] = entry.timestamp - begun[event.step_key]
        if event.is_step_failure:
            errors.append(failure_text(event))
    record = instance.get_run_record_by_id(run.run_id)
    started = record.start_time if record and record.start_time else entries[0].timestamp
    ended = max(entry.timestamp for entry in entries)
    now = next(iter(_given(run.run_config, "now")), None)
    return {
        "run_id": run.run_id,
        "started_at": _instant(started),
        "ended_at": _instant(ended),
        "cycle_ts": clock(now) if now else _instant(started),
        "launched_by": next((run.tags[tag] for tag in _LAUNCHERS if tag in run.tags), None),
        "status": "FAILED" if errors or begun.keys() - seconds.keys() else "COMPLETED",
        "error": redact_text("; ".join(errors)) if errors else None,
        "duration_seconds": ended - started,
        "step_seconds": list(seconds.items()),
    }


def _given(config: Any, name: str) -> list[str]:
    """What the steps of a run were given under this name."""
    return [op["config"][name] for op in config.get("ops", {}).values() if op.get("config", {}).get(name)]


def _told(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dict[str, Any]:
    """What the steps of this run reported; nothing of one that did not come to its end."""
    found: dict[str, Any] = {}
    for table, names in _TOLD.items():
        entry = instance.get_latest_materialization_event(dg.AssetKey(table))
        if entry is None or entry.run_id != run.run_id or entry.asset_materialization is None:
            continue
        metadata = entry.asset_materialization.metadata
        found.update({name: metadata[name].value for name in names if name in metadata})
    return found


def _spent() -> dict[str, Any]:
    """What this process took until now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    unit = 1 if sys.platform == "darwin" else 1024
    return {"cpu_seconds": used.ru_utime + used.ru_stime, "peak_memory_bytes": used.ru_maxrss * unit}


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)
