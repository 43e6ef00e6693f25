"""Contracts of the tables that the platform keeps beside the marts: grain, keys, columns."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from monitoring_platform.event_log.schema import (
    BOOL,
    EVENT_COLUMNS,
    LANDING_COLUMNS,
    LONG,
    QUARANTINE_COLUMNS,
    STRING,
    TIMESTAMP,
    Column,
    arrow_schema,
)

STRINGS = pa.list_(STRING)
TAGS = pa.map_(STRING, STRING)


class Table(NamedTuple):
    """A table's contract. `grain` says what one row is; `keys` are unique together."""

    name: str
    grain: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.columns)


LANDING = Table(
    "pipeline_event_log",
    "one delivered event; repeats are possible; kept for days",
    (),
    LANDING_COLUMNS,
)
UNION = Table(
    "all_pipelines_event_log",
    "one event; append-only",
    ("pipeline_id", "event_id"),
    EVENT_COLUMNS,
    ("event_date",),
)
QUARANTINE = Table("quarantine", "one row or text that could not be placed", ("quarantine_id",), QUARANTINE_COLUMNS)
PIPELINES = Table(
    "pipelines",
    "one known pipeline, or one log whose pipeline is not known",
    ("pipeline_id",),
    (
        Column("pipeline_id", STRING, "Identity; for a log of files or tables that was never readable, its location."),
        Column("pipeline_name", STRING, "Its name in the workspace, else the newest in its log; null = none yet."),
        Column("name_as_of", TIMESTAMP, "Newest event that carried this name; null = none with a time to trust."),
        Column("names_seen", STRINGS, "All names seen, sorted."),
        Column("pipeline_type", STRING, "origin.pipeline_type last seen; null = not said."),
        Column("source", STRING, "Name of the source in the configuration."),
        Column(
            "access_path",
            STRING,
            "How its log is read: files, delta, table (published), function (event_log()), system_table, storage, api; "
            "workspace = no way was open yet.",
        ),
        Column("logs", STRINGS, "Locations of its logs."),
        Column(
            "state",
            STRING,
            "seen, stale, never_ran, log_not_published, no_grant, not_owner, rate_limited, unreadable, deleted, "
            "excluded or retired (no source lists its log any more).",
        ),
        Column("reason", STRING, "Why it has this state, in words."),
        Column("remedy", STRING, "What to do about it; null = nothing."),
        Column("remedy_sql", STRING, "SQL, or settings as JSON, to paste for that; null = there is none."),
        Column("owner", STRING, "From the configuration; null = nobody."),
        Column("tags", TAGS, "From the workspace, over them those of the configuration."),
        Column("workspace", STRING, "Address of its workspace; null = not read from one, like all that follows here."),
        Column("creator", STRING, "Who made it, as the workspace says."),
        Column("run_as", STRING, "Whose rights it runs with."),
        Column("catalog", STRING, "Catalog that it writes to; null = Hive metastore."),
        Column("schema", STRING, "Schema that it writes to by default."),
        Column(
            "event_log_table", STRING, "Published event log by its settings, catalog.schema.name; null = not published."
        ),
        Column("continuous", BOOL, "Runs without end; null = not said."),
        Column("development", BOOL, "Development mode; null = not said."),
        Column("serverless", BOOL, "Serverless compute; null = not said."),
        Column("channel", STRING, "CURRENT or PREVIEW; null = not said."),
        Column("edition", STRING, "CORE, PRO or ADVANCED; null = not said."),
        Column("deleted", BOOL, "Whether the workspace has it no longer; its history stays."),
        Column(
            "predecessor_id",
            STRING,
            "The pipeline of the same source and name, known before this one, that was deleted or is listed no more: "
            "it was made anew; null = there is none.",
        ),
        Column("first_event_ts", TIMESTAMP, "Oldest event seen; null = none."),
        Column("last_event_ts", TIMESTAMP, "Newest event seen, events dated in the far future left out; null = none."),
        Column("has_updates", BOOL, "Whether any event belongs to an update."),
        Column("last_ingested_at", TIMESTAMP, "Clock of the last run that read rows of it; null = never."),
        Column("last_position", STRING, "Cursors of its logs as JSON, {location: cursor}."),
        Column("consecutive_failures", LONG, "Reads of its logs that failed in a row; 0 = the last one worked."),
        Column("next_retry_at", TIMESTAMP, "When a failing log is tried again; null = with the next run."),
        Column("registered_at", TIMESTAMP, "Clock of the run that first knew it."),
    ),
)
LOGS = Table(
    "source_logs",
    "one log of a source (file, table, or pipeline of a workspace): how far it was read and whether it can be",
    ("location",),
    (
        Column("location", STRING, "File or table; source and pipeline_id for a pipeline of a workspace."),
        Column("source", STRING, "Name of the source in the configuration."),
        Column("kind", STRING, "Type of the source, or the way by which a pipeline of a workspace was read."),
        Column("pipeline_ids", STRINGS, "Pipelines found in it."),
        Column("cursor", STRING, "How far it was read, JSON that belongs to the source; null = not yet."),
        Column("selection", STRING, "Include/exclude in force at that time; another one makes the log read again."),
        Column(
            "facts", STRING, "What the workspace said of the pipeline, JSON that belongs to the source; null = none."
        ),
        Column("state", STRING, "readable, unreadable, unreachable (its source cannot be listed), excluded or gone."),
        Column("error", STRING, "Why it is not read, redacted; null = it is."),
        Column("coverage", STRING, "State of its pipelines that follows from the error; null = no error."),
        Column("remedy", STRING, "What to do about it; null = nothing."),
        Column("remedy_sql", STRING, "SQL, or settings as JSON, to paste for that; null = there is none."),
        Column("consecutive_failures", LONG, "Failures in a row."),
        Column("next_retry_at", TIMESTAMP, "Not tried before; null = now."),
        Column("last_read_at", TIMESTAMP, "Clock of the last run that read it; null = never."),
    ),
)
PROGRESS = Table(
    "progress",
    "how far one step has come",
    ("step",),
    (
        Column("step", STRING, "union, or the name of a mart."),
        Column("version", LONG, "Version of the step's input that is done."),
        Column("input_id", STRING, "Identity of the input table; another one means it was recreated."),
    ),
)

STANDING: tuple[Table, ...] = (LANDING, UNION, QUARANTINE, PIPELINES, LOGS, PROGRESS)
