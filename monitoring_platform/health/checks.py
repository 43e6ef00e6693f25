"""Checks on union and marts: pure questions to the tables, no engine. Each lists the offenders.

WARN is trouble in a pipeline, ERROR trouble in the monitoring itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.marts import registry
from monitoring_platform.marts.refresh import behind
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


#: The newest request of each pipeline that somebody asked for (internal runs are none of its business).
LATEST_REQUESTS = """
    SELECT * FROM requests WHERE run_kind = 'normal'
    QUALIFY row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, request_id DESC) = 1
"""


def _failing_requests(warehouse: Warehouse, _: datetime) -> pa.Table:
    return _ask(
        warehouse,
        f"""
        SELECT pipeline_id, pipeline_name, request_id, outcome, attempts, start_ts, end_ts,
               CASE WHEN is_open THEN 'retry after a failed attempt' ELSE 'failed' END AS trouble,
               (SELECT min_by(left(f.message, 200), (a.attempt_number, f.start_ts))
                FROM failures f JOIN pipeline_runs a USING (pipeline_id, update_id)
                WHERE a.pipeline_id = r.pipeline_id AND a.request_id = r.request_id AND f.message IS NOT NULL) AS error
        FROM ({LATEST_REQUESTS}) r
        WHERE outcome = 'FAILED' OR (is_open AND previous_attempt_status = 'FAILED')
        ORDER BY start_ts DESC, pipeline_id
        """,
        registry.REQUESTS,
        registry.PIPELINE_RUNS,
        registry.FAILURES,
    )


def _low_pass_rates(warehouse: Warehouse, _: datetime) -> pa.Table:
    return _ask(
        warehouse,
        """
        WITH latest AS (
          SELECT e.*, r.pipeline_name, r.start_ts
          FROM expectation_results e JOIN pipeline_runs r USING (pipeline_id, update_id)
          WHERE r.run_kind = 'normal'
          QUALIFY row_number() OVER (PARTITION BY e.pipeline_id, e.dataset, e.expectation
                                     ORDER BY r.start_ts DESC, e.update_id DESC) = 1
        )
        SELECT pipeline_id, pipeline_name, update_id, dataset, expectation, passed_records, failed_records,
               round(pass_rate_pct, 2) AS pass_rate_pct
        FROM latest WHERE pass_rate_pct < $threshold ORDER BY pass_rate_pct, pipeline_id, expectation
        """,
        registry.EXPECTATION_RESULTS,
        registry.PIPELINE_RUNS,
        threshold=warehouse.settings.checks.min_pass_rate_pct,
    )


#: Rows are usual where at least 3 of the last 10 finished runs before reported rows, and 4 of 5 of them wrote some.
_USUAL_RUNS, _USUAL_MINIMUM, _USUAL_SHARE = 10, 3, 0.8


def _zero_rows(warehouse: Warehouse, _: datetime) -> pa.Table:
    return _ask(
        warehouse,
        """
        WITH finished AS (
          SELECT *, row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, update_id DESC) AS age
          FROM pipeline_runs WHERE run_kind = 'normal' AND status = 'COMPLETED'
        ),
        usual AS (
          SELECT pipeline_id, median(rows_written) AS usual_rows, count(rows_written) AS runs,
                 avg(CASE WHEN rows_written > 0 THEN 1.0 WHEN rows_written = 0 THEN 0.0 END) AS share
          FROM finished WHERE age BETWEEN 2 AND $runs + 1 GROUP BY pipeline_id
        )
        SELECT pipeline_id, f.pipeline_name, f.update_id, f.start_ts, u.usual_rows
        FROM finished f JOIN usual u USING (pipeline_id)
        WHERE f.age = 1 AND f.rows_written = 0 AND u.runs >= $minimum AND u.share >= $share
        ORDER BY pipeline_id
        """,
        registry.PIPELINE_RUNS,
        runs=_USUAL_RUNS,
        minimum=_USUAL_MINIMUM,
        share=_USUAL_SHARE,
    )


def _stalled(warehouse: Warehouse, now: datetime) -> pa.Table:
    return _ask(
        warehouse,
        """
        SELECT pipeline_id, pipeline_name, flow_name, last_batch_ts,
               coalesce(last_backlog_bytes, last_backlog_records, last_backlog_files, last_backlog_seconds) AS backlog
        FROM flow_liveness
        WHERE state = 'working' AND last_batch_ts < $limit ORDER BY last_batch_ts, pipeline_id, flow_name
        """,
        registry.FLOW_LIVENESS,
        limit=now - timedelta(minutes=warehouse.settings.checks.stalled_after_minutes),
    )


def _recomputed(warehouse: Warehouse, _: datetime) -> pa.Table:
    return _ask(
        warehouse,
        """
        SELECT w.pipeline_id, h.pipeline_name, w.flow_name, w.since_ts, w.full_runs, w.reasons, w.offending_tables,
               round(w.extra_minutes, 1) AS extra_minutes
        FROM recompute_watch w JOIN pipeline_health h USING (pipeline_id)
        WHERE w.is_current ORDER BY w.since_ts DESC, w.pipeline_id, w.flow_name
        """,
        registry.RECOMPUTE_WATCH,
        registry.PIPELINE_HEALTH,
    )


def _lost_rules(warehouse: Warehouse, _: datetime) -> pa.Table:
    return _ask(
        warehouse,
        """
        SELECT l.pipeline_id, h.pipeline_name, l.dataset, l.expectation, l.state, l.last_evaluated, l.gone_at
        FROM expectation_lifecycle l JOIN pipeline_health h USING (pipeline_id)
        WHERE l.state IN ('vanished', 'never_evaluated') ORDER BY l.pipeline_id, l.dataset, l.expectation
        """,
        registry.EXPECTATION_LIFECYCLE,
        registry.PIPELINE_HEALTH,
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
    Check(
        "latest_requests_succeeded",
        registry.REQUESTS.name,
        "WARN",
        "No pipeline's latest request failed or is being retried after a failure.",
        _failing_requests,
    ),
    Check(
        "expectation_pass_rates",
        registry.EXPECTATION_RESULTS.name,
        "WARN",
        "Every rule's latest result is at or above the configured pass rate.",
        _low_pass_rates,
    ),
    Check(
        "rows_where_usual",
        registry.PIPELINE_RUNS.name,
        "WARN",
        "No pipeline's latest finished run wrote 0 rows where rows are usual; not reported is not zero.",
        _zero_rows,
    ),
    Check(
        "no_stalled_flows",
        registry.FLOW_LIVENESS.name,
        "WARN",
        "No flow of an open update has records waiting and no finished batch for the configured time; unknown is not "
        "stalled.",
        _stalled,
    ),
    Check(
        "views_refresh_incrementally",
        registry.RECOMPUTE_WATCH.name,
        "WARN",
        "No view that used to refresh incrementally is recomputed in full now; a first build is none.",
        _recomputed,
    ),
    Check(
        "expectations_are_evaluated",
        registry.EXPECTATION_LIFECYCLE.name,
        "WARN",
        "No rule vanished without a successor, and none is defined but never evaluated.",
        _lost_rules,
    ),
)
