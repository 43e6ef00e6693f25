"""Functions to call by hand, named as in the article that the tables come from. `monitored_run` does all this
by itself.

Like it, they never fail the job: what cannot be written is logged.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from monitoring_platform.event_log import job_events
from monitoring_platform.event_log.redact import redact_text
from monitoring_platform.recording import frames
from monitoring_platform.recording.bounded import attempt
from monitoring_platform.recording.checks import fails_when, row_count
from monitoring_platform.recording.run import DEFAULT_TARGET_MINUTES, utc_now
from monitoring_platform.recording.store import open_store
from monitoring_platform.recording.tables import EVENTS, METRICS, QUALITY_CHECKS, event_row, metrics_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def setup_monitoring_tables(place: str | os.PathLike[str] | None = None) -> None:
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
    place: str | os.PathLike[str] | None = None,
    clock: Callable[[], datetime] = utc_now,
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

    def write() -> None:
        store.append(EVENTS, [row])
        store.append(METRICS, [metrics])

    store = open_store(place)
    attempt("metrics", write)
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
    place: str | os.PathLike[str] | None = None,
    clock: Callable[[], datetime] = utc_now,
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
    store = open_store(place)
    run, at = job_events.Run(run_id, pipeline_name), result.checked_at
    event = job_events.checked(run, pipeline_name, at, result.expectation(pipeline_name))

    def write() -> None:
        store.append(EVENTS, [{**event_row(event), "checks": [result.extra()]}])
        store.append(QUALITY_CHECKS, [result.row(run_id, pipeline_name)])

    attempt("quality check", write)
    return result.passed
