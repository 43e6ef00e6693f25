"""What the monitoring says of itself."""

from monitoring_platform.marts.tables.contract import table

PLATFORM_RUNS = table(
    "platform_runs",
    "one cycle of the monitoring itself, written at its end; one that was killed leaves none",
    "run_id",
    """
    run_id text The run in Dagster.
    started_at time When it started, by the system's clock.
    ended_at time End of its last step, likewise.
    cycle_ts time The time that counted as now: of `--now`, else the start.
    launched_by text command line, or the sensor or schedule of this name; null = somebody in the UI.
    status text COMPLETED, or FAILED: a step failed or was stopped; the others did what they could.
    error text Why steps failed, redacted; null = none did.
    duration_seconds double From start to end.
    step_seconds seconds Duration of each step that ended, by its name.
    logs_read long Logs with news that were read; null = not known, like all counts of a step that failed.
    logs_failed long Logs that could not be read.
    events_read long Rows read, repeats included.
    events_new long Of these, events that were not there before.
    quarantined long Rows new in quarantine.
    lag_p50_seconds double Median time from an event to its being ingested, of the new events; null = there were none.
    lag_max_seconds double The longest; a log that is read for the first time brings events as old as it is.
    cpu_seconds double Processor time of its process from its start on, without a JVM's or a cluster's.
    peak_memory_bytes long The most memory that this process had.
    """,
)
