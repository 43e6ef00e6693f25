"""The tables that jobs write: append-only, one set for all jobs of a place.

`pipeline_metrics` and `pipeline_quality_checks` have exactly the columns of the article that they come from. What
it has no column for (steps, stacks of errors, severity and action of a check) is in `pipeline_run_events`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa

from monitoring_platform.event_log.job_events import Event
from monitoring_platform.event_log.redact import redact_value
from monitoring_platform.event_log.schema import LONG, STRING, Column
from monitoring_platform.marts.tables.contract import table

METRICS = table(
    "pipeline_metrics",
    "one run that ended",
    "run_id",
    """
    run_id text UUID made at the start of the run; the same in all three tables.
    pipeline_name text The job.
    pipeline_version text Raised by hand when the logic changes.
    started_at time When the run began.
    completed_at time When it ended.
    duration_minutes double Minutes between the two, 2 decimals.
    rows_processed long Rows that came in; null = not counted.
    rows_quarantined long Rows that were put into quarantine; null = not counted.
    slo_target_minutes int Minutes that the run was allowed to take.
    slo_met bool It succeeded, and took at most that long before rounding.
    status text success or failed.
    error_message text Class and text of the exception, redacted; null = none.
    """,
)
QUALITY_CHECKS = table(
    "pipeline_quality_checks",
    "one check of one run",
    "",
    """
    run_id text The run.
    pipeline_name text The job.
    checked_at time When it was evaluated.
    check_name text Name of the check.
    column_name text Column that it is about; * = the whole.
    check_type text null_check, unique_check, range_check, volume_check, …
    rows_checked long Rows looked at.
    rows_failed long Rows that failed; of a volume check the rows missing or too many; null = no count.
    failure_pct double 100 × failed / checked, 4 decimals; 0 of an empty frame; null = unknown.
    threshold_pct double Largest percentage that passes.
    passed bool The percentage, before rounding, is at most that.
    """,
)
_CHECK = pa.struct(
    [("name", STRING), ("severity", STRING), ("action", STRING), ("rows_unknown", LONG), ("note", STRING)]
)
_EVENTS = table(
    "pipeline_run_events",
    "one event of a run, in the shape of an event log",
    "id",
    """
    id text Follows from the run and what is said.
    timestamp time When it happened.
    level text INFO or ERROR.
    event_type text create_update, update_progress or flow_progress (a step).
    message text For people.
    origin text JSON: job, run and step.
    error text JSON: the exception and its causes with their stacks, redacted; null = none.
    details text JSON: what the event says.
    run_id text The run.
    pipeline_name text The job.
    step text The step, nested ones as outer/inner; null = the run.
    rows_in long Rows that the step read; null = not counted.
    rows_out long Rows that it wrote; null = not counted.
    rows_quarantined long Rows that it put into quarantine; null = not counted.
    """,
)
_CHECKS = Column("checks", pa.list_(_CHECK), "Its checks: what their table has no column for.")
EVENTS = _EVENTS._replace(columns=(*_EVENTS.columns, _CHECKS))
TABLES = (METRICS, QUALITY_CHECKS, EVENTS)


def metrics_row(
    *,
    run_id: str,
    pipeline_name: str,
    pipeline_version: str,
    started_at: datetime,
    completed_at: datetime,
    rows_processed: int | None,
    rows_quarantined: int | None,
    slo_target_minutes: int,
    status: str,
    error_message: str | None,
) -> dict[str, Any]:
    """The row of a run that ended. One that did not succeed never meets its SLO; it is judged before rounding."""
    minutes = (completed_at - started_at) / timedelta(minutes=1)
    return {
        "run_id": run_id,
        "pipeline_name": pipeline_name,
        "pipeline_version": pipeline_version,
        "started_at": started_at,
        "completed_at": completed_at,
        "duration_minutes": round(minutes, 2),
        "rows_processed": rows_processed,
        "rows_quarantined": rows_quarantined,
        "slo_target_minutes": slo_target_minutes,
        "slo_met": status == "success" and minutes <= slo_target_minutes,
        "status": status,
        "error_message": error_message,
    }


def event_row(event: Event) -> dict[str, Any]:
    """The row of an event; what an event has no member for is added to it."""
    origin, error = event["origin"], event.get("error")
    return {
        **{name: event[name] for name in ("id", "level", "event_type", "message")},
        "timestamp": datetime.fromisoformat(event["timestamp"]),
        "origin": orjson.dumps(origin).decode(),
        "error": orjson.dumps(redact_value(error)).decode() if error else None,
        "details": orjson.dumps(event["details"]).decode(),
        "run_id": origin["update_id"],
        "pipeline_name": origin["pipeline_name"],
        "step": origin.get("flow_name"),
    }
