"""What is promised about pipelines, and whether it holds: objectives, deadlines, results, error budgets, forecasts.

`prepare` puts tables into a connection that shows the warehouse as known at a time: `targets` (what is promised of
whom), `deadlines` (local days as instants), and after them one table for each .sql file here, in the order of `_STEPS`.
Rules read them, and so do `results` and `status`, the rows that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pyarrow as pa

from monitoring_platform.config import Calendar, Settings, Slo
from monitoring_platform.health.calendars import in_maintenance, local_instant
from monitoring_platform.health.rules import Pipeline
from monitoring_platform.marts.refresh import write_difference
from monitoring_platform.marts.tables.health import SLO_RESULTS, SLO_STATUS
from monitoring_platform.warehouse.duck import hold
from monitoring_platform.warehouse.store import Warehouse

PERIOD = timedelta(days=28)  # four weeks: each weekday counts as often
_AHEAD = timedelta(days=2)
_BY_DEFAULT = Slo(duration_minutes=45.0, success=True, ready_within_hours=12.0, goal_pct=99.0)
_STEPS = ("successes", "backlogs", "refreshed", "unmet", "expected", "slo_since", "slo_news", "budgets")
_STATUS = "status"

_CONTINUOUS = """
SELECT pipeline_id FROM pipeline_runs WHERE run_kind = 'normal'
GROUP BY pipeline_id HAVING max_by(continuous, (start_ts, update_id))
"""
_TARGETS = pa.schema(
    [
        ("pipeline_id", pa.string()),
        ("pipeline_name", pa.string()),
        ("owner", pa.string()),
        ("objective", pa.string()),
        ("target", pa.float64()),
        ("unit", pa.string()),
        ("goal_pct", pa.float64()),
    ]
)
_DEADLINES = pa.schema(
    [
        ("pipeline_id", pa.string()),
        ("pipeline_name", pa.string()),
        ("day", pa.date32()),
        ("window_start", pa.timestamp("us", "UTC")),
        ("due_at", pa.timestamp("us", "UTC")),
        ("time_zone", pa.string()),
        ("due", pa.string()),
    ]
)


def objectives(slos: Sequence[Slo], pipeline: Pipeline) -> Slo:
    """What is promised of a pipeline: each objective from the nearest entry that sets it."""
    found: dict[str, Any] = {}
    for entry in sorted(slos, key=lambda entry: entry.nearness):
        if pipeline.suits(entry):
            found |= {name: value for name in Slo.model_fields if (value := getattr(entry, name)) is not None}
    return _BY_DEFAULT.model_copy(update=found)


def queries() -> list[str]:
    """The SQL of this room: what it names has to be shown."""
    return [_sql(name) for name in (*_STEPS, _STATUS)]


def prepare(con: duckdb.DuckDBPyConnection, settings: Settings, watched: Sequence[Pipeline], now: datetime) -> None:
    """The tables that rules on objectives read, for the time that the tables of the connection show.

    The views that rules share are there, and `slo_results`: what was judged before, and is kept.
    """
    chosen = [(pipeline, objectives(settings.slos, pipeline)) for pipeline in watched]
    endless = {row[0] for row in con.execute(_CONTINUOUS).fetchall()}
    targets = [row for pipeline, slo in chosen for row in _targets(pipeline, slo, pipeline.pipeline_id in endless)]
    deadlines = [row for pipeline, slo in chosen for row in _deadlines(pipeline, slo, settings, now)]
    hold(con, "targets", pa.Table.from_pylist(targets, _TARGETS))
    hold(con, "deadlines", pa.Table.from_pylist(deadlines, _DEADLINES))
    for name in _STEPS:
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {_sql(name)}")


def results(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """Rows of `slo_results` that are new or may have changed."""
    names = ", ".join(f'"{name}"' for name in SLO_RESULTS.schema.names)
    return con.execute(f"SELECT {names} FROM slo_news").to_arrow_table().cast(SLO_RESULTS.schema)


def status(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """Rows of `slo_status`."""
    names = ", ".join(SLO_STATUS.schema.names)
    return con.execute(f"SELECT {names} FROM ({_sql(_STATUS)})").to_arrow_table().cast(SLO_STATUS.schema)


def write(warehouse: Warehouse, con: duckdb.DuckDBPyConnection) -> None:
    """Write what was judged, and how things stand. Of what was judged earlier the rows stay as they are."""
    old = con.execute(
        """
        SELECT r.* FROM slo_results r JOIN slo_since s USING (pipeline_id, objective)
        LEFT JOIN slo_news n USING (pipeline_id, objective, occurrence_id)
        WHERE r.at > s.since OR n.at IS NOT NULL
        """
    ).to_arrow_table()
    write_difference(warehouse, SLO_RESULTS, results(con), old.cast(SLO_RESULTS.schema))
    warehouse.replace_rows(SLO_STATUS, status(con))


@cache
def _sql(name: str) -> str:
    return (files(__package__) / f"{name}.sql").read_text(encoding="utf-8")


def _targets(pipeline: Pipeline, slo: Slo, is_endless: bool) -> Iterator[dict[str, Any]]:
    """Rows of `targets`; ready_by has its targets in `deadlines`, backlog may have several units."""
    wanted: list[tuple[str, float | None, str]] = []
    if slo.duration_minutes is not None and not is_endless:
        wanted.append(("duration", slo.duration_minutes, "minutes"))
    if slo.success:
        wanted.append(("success", 1.0, "success"))
    if slo.fresh_hours is not None:
        wanted.append(("fresh", slo.fresh_hours, "hours"))
    if slo.ready_by is not None:
        wanted.append(("ready_by", None, "epoch seconds"))
    if slo.pass_rate_pct is not None:
        wanted.append(("pass_rate", slo.pass_rate_pct, "percent"))
    if slo.backlog is not None:
        limits = slo.backlog.model_dump(exclude_none=True)
        wanted += [("backlog", float(limit), unit) for unit, limit in limits.items()]
    for objective, target, unit in wanted:
        yield {
            "pipeline_id": pipeline.pipeline_id,
            "pipeline_name": pipeline.name,
            "owner": pipeline.owner,
            "objective": objective,
            "target": target,
            "unit": unit,
            "goal_pct": slo.goal_pct,
        }


def _deadlines(pipeline: Pipeline, slo: Slo, settings: Settings, now: datetime) -> Iterator[dict[str, Any]]:
    """Rows of `deadlines`: due days of the period and of the next two days; those in maintenance do not count."""
    if slo.ready_by is None:
        return
    assert slo.ready_within_hours is not None
    zone = slo.time_zone or settings.time_zone
    calendar = next((entry for entry in settings.calendars if entry.name == slo.calendar), Calendar(name="every day"))
    first, last = ((now + span).astimezone(ZoneInfo(zone)).date() for span in (-PERIOD, _AHEAD))
    for day in (first + timedelta(days=place) for place in range((last - first).days + 1)):
        due_at = _due_at(day, slo.ready_by, zone)
        if not calendar.has(day) or not now - PERIOD < due_at <= now + _AHEAD:
            continue
        if any(in_maintenance(entry, settings.time_zone, pipeline, due_at) for entry in settings.maintenance):
            continue
        yield {
            "pipeline_id": pipeline.pipeline_id,
            "pipeline_name": pipeline.name,
            "day": day,
            "window_start": due_at - timedelta(hours=slo.ready_within_hours),
            "due_at": due_at,
            "time_zone": zone,
            "due": f"{slo.ready_by:%H:%M} {zone}",
        }


@lru_cache(maxsize=10_000)
def _due_at(day: date, at: time, zone: str) -> datetime:
    return local_instant(day, at, zone)
