"""The tables that jobs write: append-only, one set for all jobs of a place.

`pipeline_metrics` and `pipeline_quality_checks` have exactly the columns of the article that they come from. What
it has no column for (steps, stacks of errors, severity and action of a check) is in `pipeline_run_events`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson
import pyarrow as pa

from monitoring_platform.event_log.job_events import Event
from monitoring_platform.event_log.redact import redact_value
from monitoring_platform.event_log.schema import BOOL, LONG, STRING, TIMESTAMP, Column
from monitoring_platform.warehouse.contracts import Table

_INT, _DOUBLE = pa.int32(), pa.float64()

METRICS = Table(
    "pipeline_metrics",
    "one run that ended",
    ("run_id",),
    (
        Column("run_id", STRING, "UUID made at the start of the run; the same in all three tables."),
        Column("pipeline_name", STRING, "The job."),
        Column("pipeline_version", STRING, "Raised by hand when the logic changes."),
        Column("started_at", TIMESTAMP, "When the run began."),
        Column("completed_at", TIMESTAMP, "When it ended."),
        Column("duration_minutes", _DOUBLE, "Minutes between the two, 2 decimals."),
        Column("rows_processed", LONG, "Rows that came in; null = not counted."),
        Column("rows_quarantined", LONG, "Rows that were put into quarantine; null = not counted."),
        Column("slo_target_minutes", _INT, "Minutes that the run was allowed to take."),
        Column("slo_met", BOOL, "It succeeded, and took at most that long before rounding."),
        Column("status", STRING, "success or failed."),
        Column("error_message", STRING, "Class and text of the exception, redacted; null = none."),
    ),
)
QUALITY_CHECKS = Table(
    "pipeline_quality_checks",
    "one check of one run",
    (),
    (
        Column("run_id", STRING, "The run."),
        Column("pipeline_name", STRING, "The job."),
        Column("checked_at", TIMESTAMP, "When it was evaluated."),
        Column("check_name", STRING, "Name of the check."),
        Column("column_name", STRING, "Column that it is about; * = the whole."),
        Column("check_type", STRING, "null_check, unique_check, range_check, volume_check, …"),
        Column("rows_checked", LONG, "Rows looked at."),
        Column(
            "rows_failed", LONG, "Rows that failed; of a volume check the rows missing or too many; null = no count."
        ),
        Column("failure_pct", _DOUBLE, "100 × failed / checked, 4 decimals; 0 of an empty frame; null = unknown."),
        Column("threshold_pct", _DOUBLE, "Largest percentage that passes."),
        Column("passed", BOOL, "The percentage, before rounding, is at most that."),
    ),
)
_CHECK = pa.struct(
    [("name", STRING), ("severity", STRING), ("action", STRING), ("rows_unknown", LONG), ("note", STRING)]
)
EVENTS = Table(
    "pipeline_run_events",
    "one event of a run, in the shape of an event log",
    ("id",),
    (
        Column("id", STRING, "Follows from the run and what is said."),
        Column("timestamp", TIMESTAMP, "When it happened."),
        Column("level", STRING, "INFO or ERROR."),
        Column("event_type", STRING, "create_update, update_progress or flow_progress (a step)."),
        Column("message", STRING, "For people."),
        Column("origin", STRING, "JSON: job, run and step."),
        Column("error", STRING, "JSON: the exception and its causes with their stacks, redacted; null = none."),
        Column("details", STRING, "JSON: what the event says."),
        Column("run_id", STRING, "The run."),
        Column("pipeline_name", STRING, "The job."),
        Column("step", STRING, "The step, nested ones as outer/inner; null = the run."),
        Column("rows_in", LONG, "Rows that the step read; null = not counted."),
        Column("rows_out", LONG, "Rows that it wrote; null = not counted."),
        Column("rows_quarantined", LONG, "Rows that it put into quarantine; null = not counted."),
        Column("checks", pa.list_(_CHECK), "Its checks: what their table has no column for."),
    ),
)
TABLES = (METRICS, QUALITY_CHECKS, EVENTS)


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
