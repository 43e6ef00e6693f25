"""Functions to call by hand, named as in the article that the tables come from. `monitored_run` does all this
by itself.

Like it, they never fail the job, nor delay it beyond `write_seconds`: what cannot be written is logged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from monitoring_platform.event_log import job_events
from monitoring_platform.event_log.redact import redact_text
from monitoring_platform.recording import frames
from monitoring_platform.recording.bounded import SECONDS, attempt, warn
from monitoring_platform.recording.checks import fails_when, row_count
from monitoring_platform.recording.run import DEFAULT_TARGET_MINUTES, utc_now
from monitoring_platform.recording.store import open_store
from monitoring_platform.recording.tables import EVENTS, METRICS, QUALITY_CHECKS, event_row, metrics_row
from monitoring_platform.warehouse.contracts import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Place = str | os.PathLike[str] | None


def setup_monitoring_tables(place: Place = None) -> None:
    """Create the schema or folder and the tables if they are missing; what exists is left as it is.

    Raises what the store raises: this is called by people, not by jobs.
    """
    open_store(place).create()


def write_pipeline_metrics(
    pipeline_name: str,
    started_at: datetime,
    rows_processed: int | None,
    rows_quarantined: int | None,
    run_id: str,
    pipeline_version: str = "1.0",
    slo_target_minutes: int = DEFAULT_TARGET_MINUTES,
    status: str = "success",
    error_message: str | None = None,
    *,
    place: Place = None,
    clock: Callable[[], datetime] = utc_now,
    write_seconds: float = SECONDS,
) -> tuple[float, bool]:
    """Write the row of a run that ends now, once for each run; gives its minutes and whether its SLO is met.

    `started_at` without a zone is taken as UTC. A run that did not succeed never meets its SLO.
    """
    started_at = started_at if started_at.tzinfo else started_at.replace(tzinfo=timezone.utc)
    completed_at = clock()
    event = job_events.step_ended(
        job_events.Run(run_id, pipeline_name),
        0,
        pipeline_name,
        completed_at,
        rows_out=None if rows_processed is None else rows_processed - (rows_quarantined or 0),
        rows_quarantined=rows_quarantined,
        is_failed=status != "success",
    )
    metrics = metrics_row(
        run_id=run_id,
        pipeline_name=pipeline_name,
        pipeline_version=pipeline_version,
        started_at=started_at,
        completed_at=completed_at,
        rows_processed=rows_processed,
        rows_quarantined=rows_quarantined,
        slo_target_minutes=slo_target_minutes,
        status=status,
        error_message=redact_text(error_message),
    )
    row = {**event_row(event), "rows_in": rows_processed, "rows_quarantined": rows_quarantined}

    _record("metrics", place, write_seconds, (EVENTS, row), (METRICS, metrics))
    return metrics["duration_minutes"], metrics["slo_met"]


def run_quality_check(
    df: DataFrame,
    run_id: str,
    pipeline_name: str,
    check_name: str,
    column_name: str,
    check_type: str,
    condition: str,
    threshold_pct: float = 1.0,
    *,
    minimum_rows: int | None = None,
    place: Place = None,
    clock: Callable[[], datetime] = utc_now,
    write_seconds: float = SECONDS,
) -> bool:
    """Evaluate one check in one pass, write its row, and say whether it passed.

    `condition` is SQL and true for rows that FAIL; rows for which it is null are counted apart. A check of the type
    `volume_check` compares the number of rows with `minimum_rows` instead. Several checks of one frame are cheaper
    together: `Step.check`.
    """
    if check_type == "volume_check":
        if minimum_rows is None:
            raise ValueError("a volume_check needs minimum_rows: the number of rows that are expected at least")
        check = row_count(minimum_rows, name=check_name, threshold_pct=threshold_pct)
    else:
        made = fails_when(condition, column_name, name=check_name, threshold_pct=threshold_pct)
        check = replace(made, kind=check_type)
    (result,) = frames.evaluate(df, [check], clock(), lambda name: None)
    run, at = job_events.Run(run_id, pipeline_name), result.checked_at
    event = event_row(job_events.checked(run, pipeline_name, at, result.expectation(pipeline_name)))
    event["checks"] = [result.extra()]
    check_row = result.row(run_id, pipeline_name)
    _record("quality check", place, write_seconds, (EVENTS, event), (QUALITY_CHECKS, check_row))
    return result.passed


def _record(what: str, place: Place, seconds: float, *rows: tuple[Table, dict[str, Any]]) -> None:
    """Append each row to its table, in this order, within a bounded time; what goes wrong is logged."""
    try:
        store = open_store(place)  # in the thread of the job, whose Spark session another one does not see
    except Exception as error:
        warn(what, error)
        return

    def write() -> None:
        for table, row in rows:
            store.append(table, [row])

    attempt(what, write, seconds)
