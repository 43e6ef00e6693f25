"""Jobs that are not pipelines: monitored runs and quality checks, recorded by the job itself (docs/jobs.md)."""

from monitoring_platform.recording.checks import (
    Check,
    ChecksFailed,
    Result,
    fails_when,
    fresh,
    has_schema,
    in_range,
    in_set,
    matches,
    not_null,
    refers_to,
    row_count,
    row_count_change,
    unique,
)
from monitoring_platform.recording.functions import run_quality_check, setup_monitoring_tables, write_pipeline_metrics
from monitoring_platform.recording.run import Report, Run, Step, current_run, monitored_run

__all__ = [
    "Check",
    "ChecksFailed",
    "Report",
    "Result",
    "Run",
    "Step",
    "current_run",
    "fails_when",
    "fresh",
    "has_schema",
    "in_range",
    "in_set",
    "matches",
    "monitored_run",
    "not_null",
    "refers_to",
    "row_count",
    "row_count_change",
    "run_quality_check",
    "setup_monitoring_tables",
    "unique",
    "write_pipeline_metrics",
]
