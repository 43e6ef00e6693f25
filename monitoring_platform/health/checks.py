"""Checks of the monitoring itself: pure questions to the tables, no engine. Each lists the offenders.

ERROR is trouble in the monitoring. What is wrong with pipelines the rules say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.marts import registry
from monitoring_platform.marts.refresh import behind
from monitoring_platform.marts.tables.health import INCIDENTS
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.looking import connect
from monitoring_platform.warehouse.store import Warehouse

OFFENDERS_SHOWN = 50


class Finding(NamedTuple):
    """The result of one check. `offenders` holds at most OFFENDERS_SHOWN rows, `total` is the true number."""

    check: str
    table: str
    severity: Literal["WARN", "ERROR"]
    total: int
    offenders: list[dict[str, Any]]

    @property
    def passed(self) -> bool:
        return self.total == 0


class Check(NamedTuple):
    """A check: the table it sits on, what it asserts, and the rows that break it."""

    name: str
    table: str
    severity: Literal["WARN", "ERROR"]
    description: str
    offenders: Callable[[Warehouse, datetime], pa.Table]


def run(warehouse: Warehouse, check: Check, now: datetime) -> Finding:
    """Evaluate one check; `now` is the clock of what depends on one."""
    rows = check.offenders(warehouse, now)
    return Finding(check.name, check.table, check.severity, rows.num_rows, rows.slice(0, OFFENDERS_SHOWN).to_pylist())


def of_rule(rule: str, rows: Sequence[dict[str, Any]]) -> Finding:
    """What a rule found, as a check tells it: from its rows of `findings`."""
    is_bad = any(row["severity"] == "error" for row in rows)
    shown = [_shown(row) for row in rows[:OFFENDERS_SHOWN]]
    return Finding(rule, INCIDENTS.name, "ERROR" if is_bad else "WARN", len(rows), shown)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    names = ("pipeline_name", "title", "since", "severity", "state", "incident_id", "owner", "pipeline_id", "subject")
    shown = {name: row[name] for name in names}
    return {**shown, "first_error": orjson.loads(row["evidence"]).get("first_error")}


def _ask(warehouse: Warehouse, sql: str, *tables: contracts.Table, **values: Any) -> pa.Table:
    return connect(warehouse, *tables).execute(sql, values or None).to_arrow_table()


def _newest(warehouse: Warehouse, table: contracts.Table, columns: list[str]) -> pa.Table:
    """Key columns of what was added last: what a cycle wrote, so that a check costs the same at any age."""
    if not warehouse.exists(table):
        return table.schema.empty_table().select(columns)
    return warehouse.newest(table).columns(columns)


def _union_keys(warehouse: Warehouse, dates: pa.Array) -> pa.Table:
    return warehouse.arrow(contracts.UNION, ["pipeline_id", "event_id"], {"event_date": dates.to_pylist()})


def _duplicates(warehouse: Warehouse, _: datetime) -> pa.Table:
    newest = _newest(warehouse, contracts.UNION, ["event_date"])
    keys = _union_keys(warehouse, pc.unique(newest["event_date"]))
    counted = keys.group_by(["pipeline_id", "event_id"]).aggregate([([], "count_all")])
    return counted.filter(pc.greater(counted["count_all"], 1)).rename_columns(["pipeline_id", "event_id", "copies"])


def _missing_downstream(warehouse: Warehouse, _: datetime) -> pa.Table:
    landed = _newest(warehouse, contracts.LANDING, ["pipeline_id", "event_id", "event_date"])
    union = _union_keys(warehouse, pc.unique(landed["event_date"]))
    lost = landed.join(union, ["pipeline_id", "event_id"], join_type="left anti")
    parts = [_missing(lost["pipeline_id"], lost["event_id"], contracts.UNION.name)]
    late = behind(warehouse)
    parts.append(_missing(pa.array([None] * len(late), pa.string()), pa.array(late, pa.string()), "not refreshed yet"))
    updates = _newest(warehouse, contracts.UNION, ["pipeline_id", "update_id"])
    updates = updates.filter(pc.is_valid(updates["update_id"])).group_by(["pipeline_id", "update_id"]).aggregate([])
    runs = warehouse.arrow(registry.PIPELINE_RUNS, ["pipeline_id", "update_id"])
    gone = updates.join(runs, ["pipeline_id", "update_id"], join_type="left anti")
    parts.append(_missing(gone["pipeline_id"], gone["update_id"], registry.PIPELINE_RUNS.name))
    return pa.concat_tables(parts)


def _missing(pipelines: Any, ids: Any, where: str) -> pa.Table:
    return pa.table(
        {"pipeline_id": pipelines, "missing": ids, "where": pa.repeat(pa.scalar(where), len(ids))},
        schema=pa.schema([("pipeline_id", pa.string()), ("missing", pa.string()), ("where", pa.string())]),
    )


def _unreachable(warehouse: Warehouse, _: datetime) -> pa.Table:
    return _ask(
        warehouse,
        """
        SELECT location, source, error, remedy, consecutive_failures, next_retry_at
        FROM source_logs
        WHERE state = 'unreadable' AND coalesce(coverage, 'unreadable') IN ('unreadable', 'rate_limited')
        UNION ALL
        SELECT kind, source, error, remedy, consecutive_failures, next_retry_at
        FROM context_reads WHERE error IS NOT NULL
        ORDER BY location, source
        """,
        contracts.LOGS,
        contracts.CONTEXT_READS,
    )


#: A log shows an update after a while; what is older than the log cannot be in it.
_GRACE = timedelta(hours=1)


def _missing_updates(warehouse: Warehouse, now: datetime) -> pa.Table:
    return _ask(
        warehouse,
        """
        SELECT m.pipeline_id, p.pipeline_name, m.update_id, m.created_at, m.state, m.reason, m.known_from,
               p.state AS log_state,
               coalesce(p.remedy, 'its log is looked through daily; if it stays missing, see the runbook') AS remedy
        FROM missing_updates m LEFT JOIN pipelines p USING (pipeline_id)
        WHERE m.reason <> 'before_log' AND coalesce(p.state, '') NOT IN ('excluded', 'deleted')
          AND greatest(coalesce(m.ended_at, m.created_at), m.first_known_at) < $limit
        ORDER BY m.created_at DESC, m.pipeline_id, m.update_id
        """,
        registry.MISSING_UPDATES,
        contracts.PIPELINES,
        limit=now - _GRACE,
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "no_duplicate_events",
        contracts.UNION.name,
        "ERROR",
        "Each (pipeline_id, event_id) is there once, on the days that the newest files hold.",
        _duplicates,
    ),
    Check(
        "nothing_missing_downstream",
        contracts.UNION.name,
        "ERROR",
        "What landed last is in the union, every update is in pipeline_runs, every mart is up to date.",
        _missing_downstream,
    ),
    Check(
        "sources_reachable",
        contracts.PIPELINES.name,
        "ERROR",
        "Every log, and all that is asked for beside logs, could be read the last time it was tried.",
        _unreachable,
    ),
    Check(
        "no_update_is_missing",
        contracts.PIPELINES.name,
        "WARN",
        "Every update that a workspace knows is in a log that was read, an hour after it ended; what is older than its "
        "log does not count.",
        _missing_updates,
    ),
)
