"""The marts: contract, grain and what each one is computed from.

A new table is one .sql file, one contract in `tables/` with an entry here, and one test.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Literal, NamedTuple

from monitoring_platform.config import Settings
from monitoring_platform.marts.tables import activity, context, definitions, flows, health, platform, quality, runs
from monitoring_platform.warehouse.contracts import (
    BILLING_USAGE,
    CONTEXT,
    JOB_RUNS,
    KNOWN_UPDATES,
    LIST_PRICES,
    PIPELINES,
    STANDING,
    Table,
)

FLOW_METRICS, PIPELINE_RUNS, REQUESTS = flows.FLOW_METRICS, runs.PIPELINE_RUNS, runs.REQUESTS
EXPECTATION_RESULTS, PIPELINE_ERRORS, EVENTS_SUMMARY = (
    quality.EXPECTATION_RESULTS,
    runs.PIPELINE_ERRORS,
    runs.EVENTS_SUMMARY,
)
FAILURES, FLOW_LIVENESS = runs.FAILURES, flows.FLOW_LIVENESS
RECOMPUTE_WATCH, EXPECTATION_LIFECYCLE = definitions.RECOMPUTE_WATCH, quality.EXPECTATION_LIFECYCLE
PIPELINE_HEALTH, MISSING_UPDATES = activity.PIPELINE_HEALTH, context.MISSING_UPDATES


class Mart(NamedTuple):
    """A table computed by its .sql file.

    scope     the SQL reads                                     recomputed
    event     `events`: the new events                          rows of these events
    update    `events`: all events of the touched updates       rows of these updates
    day       `events`: all events of the touched days          rows of these days of these pipelines
    pipeline  its inputs, only rows of the touched pipelines    rows of these pipelines
    whole     its inputs                                        all rows, when an input has a new version

    `inputs` are the tables that the SQL reads beside `events`, under their own names; they come before it in MARTS.
    `event_types` are the types that its `events` matter for, empty = all: without new events of them nothing is done.
    `chained` columns depend on the other updates of the pipeline: the SQL gets those rows as `siblings`, without them.
    `window` is the time by which rows are told apart: of a mart of scope pipeline only rows from the first touched week
    on are recomputed, out of inputs that reach 35 days further back. None = all rows of the pipeline.
    """

    table: Table
    scope: Literal["event", "update", "day", "pipeline", "whole"]
    inputs: tuple[str, ...] = ()
    event_types: tuple[str, ...] = ()
    chained: tuple[str, ...] = ()
    window: str | None = None
    uncut: tuple[str, ...] = ()

    @property
    def context(self) -> tuple[str, ...]:
        """Tables of the context that it and its inputs are computed from. While the first has no rows, it has none."""
        found: dict[str, None] = {}
        for name in self.inputs:
            upstream = BY_NAME[name].context if name in BY_NAME else ()
            found.update(dict.fromkeys((name,) if name in CONTEXT else upstream))
        return tuple(found)

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def sql(self) -> str:
        return (files(__package__) / f"{self.name}.sql").read_text(encoding="utf-8")


def view(name: str) -> str:
    """SQL of a view that marts share, see `views/`."""
    return (files(__package__) / "views" / f"{name}.sql").read_text(encoding="utf-8")


_FLOW = ("flow_progress", "flow_definition")
_RULES = ("flow_progress", "flow_definition", "create_update")

#: In the order of a cycle: what others are computed from comes first.
MARTS: tuple[Mart, ...] = (
    # from events
    Mart(FLOW_METRICS, "update", event_types=_FLOW, window="start_ts"),
    Mart(PIPELINE_RUNS, "update", (FLOW_METRICS.name,), chained=("request_id", "attempt_number"), window="start_ts"),
    Mart(EXPECTATION_RESULTS, "update", event_types=_RULES, window="last_event_ts"),
    Mart(quality.EXPECTATION_DAYS, "update", event_types=_RULES, window="day"),
    Mart(flows.FLOW_HOURS, "update", event_types=("flow_progress",), window="hour_ts"),
    Mart(flows.GATEWAY_PROGRESS, "update", event_types=("flow_progress",), window="hour_ts"),
    Mart(definitions.FLOW_DEFINITIONS, "update", event_types=("flow_definition", "create_update"), window="event_ts"),
    Mart(
        definitions.FLOW_LINEAGE,
        "update",
        ("flow_definitions",),
        ("flow_definition", "create_update"),
        window="event_ts",
    ),
    Mart(definitions.DATASET_DEFINITIONS, "update", event_types=("dataset_definition",), window="event_ts"),
    Mart(
        definitions.DATASET_SCHEMAS,
        "update",
        ("dataset_definitions", "flow_definitions"),
        ("dataset_definition", "flow_definition", "create_update"),
        window="event_ts",
    ),
    Mart(runs.RUNTIME_DETAILS, "update", event_types=("runtime_details", "create_update")),
    Mart(runs.FAILURES, "update", (PIPELINE_RUNS.name,), window="start_ts"),
    Mart(PIPELINE_ERRORS, "event", window="event_ts"),
    Mart(definitions.REFRESH_DECISIONS, "event", event_types=("planning_information",), window="event_ts"),
    Mart(flows.OPERATION_PROGRESS, "event", event_types=("operation_progress",), window="event_ts"),
    Mart(flows.STREAM_PROGRESS, "event", event_types=("stream_progress",), window="event_ts"),
    Mart(
        flows.CLUSTER_RESOURCES,
        "event",
        event_types=("cluster_resources", "cluster_utilization", "autoscale"),
        window="event_ts",
    ),
    Mart(runs.USER_ACTIONS, "event", event_types=("user_action",), window="event_ts"),
    Mart(definitions.DEPRECATIONS, "event", event_types=("deprecation", "behavior_change_in_spark_connect")),
    Mart(definitions.HOOKS, "event", event_types=("hook_progress",)),
    Mart(definitions.DRIFT_DAYS, "day"),
    # from other marts
    Mart(REQUESTS, "pipeline", (PIPELINE_RUNS.name,), window="last_start_ts"),
    Mart(EVENTS_SUMMARY, "pipeline", (PIPELINE_RUNS.name,), window="run_start_time"),
    Mart(activity.DAILY_TRENDS, "pipeline", ("pipeline_runs", "requests", "flow_hours"), window="day"),
    Mart(quality.WEEKLY_QUALITY, "pipeline", ("expectation_days", "pipeline_runs"), window="week_start"),
    Mart(quality.QUARANTINE_TRENDS, "pipeline", ("flow_hours", "expectation_days", "pipeline_runs"), window="day"),
    Mart(
        flows.FLOW_DURATIONS,
        "pipeline",
        ("flow_metrics", "pipeline_runs", "operation_progress"),
        window="run_start_ts",
    ),
    Mart(flows.BACKLOG_TRENDS, "pipeline", ("flow_hours", "pipeline_runs"), window="last_hour_ts"),
    Mart(flows.FLOW_LIVENESS, "pipeline", ("flow_metrics", "pipeline_runs")),
    Mart(definitions.SCHEMA_CHANGES, "pipeline", ("dataset_schemas", "pipeline_runs"), window="changed_at"),
    Mart(
        definitions.FLOW_RESETS,
        "pipeline",
        ("flow_metrics", "pipeline_runs", "refresh_decisions"),
        window="reset_at",
    ),
    Mart(definitions.RECOMPUTE_WATCH, "pipeline", ("refresh_decisions", "pipeline_runs", "flow_metrics")),
    Mart(
        quality.EXPECTATION_LIFECYCLE,
        "pipeline",
        ("dataset_definitions", "expectation_results", "pipeline_runs"),
    ),
    Mart(runs.FAILURE_HOURS, "pipeline", ("failures",)),
    Mart(definitions.SCHEMA_DRIFT, "pipeline", ("drift_days",)),
    Mart(activity.TABLE_STATUS, "pipeline", ("flow_metrics", "pipeline_runs")),
    Mart(activity.PIPELINE_ACTIVITY, "pipeline", ("requests", "failures", "pipeline_runs", "expectation_results")),
    # from what workspaces and billing say
    Mart(context.JOB_MATCHES, "pipeline", (JOB_RUNS.name, KNOWN_UPDATES.name, "pipeline_runs"), window="start_ts"),
    Mart(context.JOBS_STATS, "pipeline", ("job_matches",)),
    Mart(
        context.PIPELINE_COSTS,
        "pipeline",
        (BILLING_USAGE.name, LIST_PRICES.name, "pipeline_runs"),
        window="usage_date",
        uncut=("pipeline_runs",),
    ),
    Mart(MISSING_UPDATES, "pipeline", (KNOWN_UPDATES.name, "pipeline_runs", PIPELINES.name), window="created_at"),
    # from everything
    Mart(runs.ERROR_GROUPS, "whole", ("failures",)),
    Mart(
        activity.PIPELINE_HEALTH,
        "whole",
        (PIPELINES.name, "pipeline_activity", "recompute_watch", "backlog_trends", "expectation_lifecycle"),
    ),
)
BY_NAME: dict[str, Mart] = {mart.name: mart for mart in MARTS}
TABLES: tuple[Table, ...] = tuple(mart.table for mart in MARTS)


def refreshed_marts(settings: Settings) -> list[Mart]:
    """The marts that a cycle of this configuration refreshes: without context those that need it stay empty."""
    return [mart for mart in MARTS if settings.has_context or not mart.context]


#: Every table of the platform by its name.
STOCK: dict[str, Table] = {table.name: table for table in (*STANDING, *TABLES, *health.TABLES, platform.PLATFORM_RUNS)}
