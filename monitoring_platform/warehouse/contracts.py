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
DATE = pa.date32()
QUANTITY = pa.decimal128(38, 18)  # as billing has it
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
        Column(
            "pipeline_type",
            STRING,
            "origin.pipeline_type last seen, else that of the system table of pipelines; JOB = no pipeline but a "
            "recorded job; null = not said.",
        ),
        Column("source", STRING, "Name of the source in the configuration."),
        Column(
            "access_path",
            STRING,
            "How its log is read: files, delta, jobs (recorded by itself), table (published), function (event_log()), "
            "system_table, storage, api; workspace = no way was open yet.",
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

# ---- context: what workspaces and exports say beside the logs; kept for ever, never emptied by a failure ----

KNOWN_UPDATES = Table(
    "known_updates",
    "one update that a workspace knows, whether or not a log has it",
    ("pipeline_id", "update_id"),
    (
        Column("pipeline_id", STRING, "Identity of the pipeline."),
        Column("update_id", STRING, "The update."),
        Column("created_at", TIMESTAMP, "When it was created; where nothing says so, when it became known."),
        Column("ended_at", TIMESTAMP, "End of its last slice in the timeline; null = open, or not known from there."),
        Column("request_id", STRING, "The request, from the timeline; null = not said."),
        Column("state", STRING, "Last state or result said; null = none yet."),
        Column("update_type", STRING, "REFRESH, FULL_REFRESH or VALIDATE; null = not said."),
        Column("trigger_type", STRING, "Why it started (cause, trigger_type); null = not said."),
        Column("job_id", STRING, "Job whose task started it, from the timeline; null = none, or not said."),
        Column("task_run_id", STRING, "Run of that task, likewise."),
        Column("known_from", STRINGS, "Who says so, sorted: listing, timeline, updates."),
        Column("source", STRING, "Source of the configuration that said so first."),
        Column("first_known_at", TIMESTAMP, "Clock of the run that first knew it."),
    ),
)
JOB_RUNS = Table(
    "job_runs",
    "one pipeline task in one run of a job",
    ("job_run_id", "task_run_id"),
    (
        Column("job_run_id", STRING, "The run of the job."),
        Column("task_run_id", STRING, "The run of the task within it."),
        Column("pipeline_id", STRING, "Pipeline that the task refreshes."),
        Column("started_at", TIMESTAMP, "Start of the task; where it says none, of the run."),
        Column("job_id", STRING, "The job."),
        Column("job_name", STRING, "Name of the job, else of the run; null = neither is said."),
        Column("job_tags", STRING, "Tags of the job as JSON when the run was read; {} = none, or the job is gone."),
        Column("task_key", STRING, "Name of the task in the job."),
        Column("trigger", STRING, "What started the run (PERIODIC, ONE_TIME, RETRY, …); null = not said."),
        Column("run_start_time", TIMESTAMP, "Start of the run."),
        Column("run_end_time", TIMESTAMP, "End of the run; null = it runs."),
        Column("result_state", STRING, "Result of the run (SUCCESS, FAILED, …); null = none yet."),
        Column("task_end_time", TIMESTAMP, "End of the task; null = it runs."),
        Column("task_result_state", STRING, "Result of the task; null = none yet."),
        Column("pipeline_tags", STRING, "Tags of the pipeline as JSON when the run was read; {} = none."),
    ),
)
BILLING_USAGE = Table(
    "billing_usage",
    "one record of billed usage of a pipeline; corrections are records of their own",
    ("record_id",),
    (
        Column("record_id", STRING, "Identity of the record; where an export lacks it, a digest of the record."),
        Column("pipeline_id", STRING, "usage_metadata.dlt_pipeline_id."),
        Column("usage_date", DATE, "Day of the usage, by which days are settled."),
        Column("update_id", STRING, "usage_metadata.dlt_update_id; null = no update's."),
        Column("maintenance_id", STRING, "usage_metadata.dlt_maintenance_id; null = no maintenance."),
        Column("record_type", STRING, "ORIGINAL, RETRACTION (takes back an earlier one) or RESTATEMENT."),
        Column("usage_start_time", TIMESTAMP, "Start of the usage; null = not said, then the day counts."),
        Column("usage_end_time", TIMESTAMP, "End of the usage; null = not said."),
        Column("usage_quantity", QUANTITY, "Units used, exact; negative in a RETRACTION. Null = unreadable."),
        Column("usage_unit", STRING, "Unit, such as DBU."),
        Column("sku_name", STRING, "What is billed."),
        Column("cloud", STRING, "AWS, AZURE or GCP."),
        Column("product", STRING, "billing_origin_product: DLT, SQL (tables of Databricks SQL), LAKEFLOW_CONNECT, …"),
        Column("custom_tags", STRING, "Tags of the usage as JSON; {} = none."),
        Column("workspace_id", STRING, "Where it was used; null = not said."),
        Column("account_id", STRING, "Who is billed; null = not said."),
        Column("ingestion_date", DATE, "Day on which billing published the record; null = not said."),
    ),
)
LIST_PRICES = Table(
    "list_prices",
    "one price of one SKU for one time",
    ("sku_name", "cloud", "usage_unit", "currency_code", "price_start_time"),
    (
        Column("sku_name", STRING, "What is billed."),
        Column("cloud", STRING, "AWS, AZURE or GCP; empty = not said."),
        Column("usage_unit", STRING, "Unit that the price is for; empty = not said."),
        Column("currency_code", STRING, "Currency of the price; empty = not said."),
        Column("price_start_time", TIMESTAMP, "From when it holds; 1970 = not said."),
        Column("price_end_time", TIMESTAMP, "Until when it holds; null = until the next one begins."),
        Column("default_price", QUANTITY, "pricing.default, exact; null = not said."),
        Column("effective_price", QUANTITY, "pricing.effective_list.default, promotions included; null = not said."),
    ),
)
CONTEXT_READS = Table(
    "context_reads",
    "one kind of context of one source: how far it was read and whether it can be",
    ("source", "kind"),
    (
        Column("source", STRING, "Name of the source, or the export as written in the configuration."),
        Column("kind", STRING, "updates, job_runs, usage or list_prices."),
        Column("position", STRING, "How far it was read, JSON; null = not yet."),
        Column("note", STRING, "What it does without, and why; null = nothing."),
        Column("state", STRING, "readable, or why not in one word."),
        Column("error", STRING, "Last failure, redacted; null = none. What was read before is kept."),
        Column("remedy", STRING, "What to do about it; null = nothing."),
        Column("consecutive_failures", LONG, "Failures in a row."),
        Column("next_retry_at", TIMESTAMP, "Not tried before; null = now."),
        Column("last_read_at", TIMESTAMP, "Clock of the last run that read it; null = never."),
        Column(
            "complete_to",
            TIMESTAMP,
            "Of usage: all that was published before then has been read (an export tells what there was when it was "
            "written); null = not all yet, or another kind.",
        ),
    ),
)

#: Each with the time by which its rows are told apart; None = it has few rows.
CONTEXT: dict[str, str | None] = {
    KNOWN_UPDATES.name: "created_at",
    JOB_RUNS.name: "started_at",
    BILLING_USAGE.name: "usage_date",
    LIST_PRICES.name: None,
}
CONTEXT_TABLES: tuple[Table, ...] = (KNOWN_UPDATES, JOB_RUNS, BILLING_USAGE, LIST_PRICES)
#: What every cycle needs.
BOOKS: tuple[Table, ...] = (LANDING, UNION, QUARANTINE, PIPELINES, LOGS, PROGRESS)
STANDING: tuple[Table, ...] = (*BOOKS, *CONTEXT_TABLES, CONTEXT_READS)
