"""The morning questions, answered from the tables alone: no engine, about a second."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

from monitoring_platform.config import PlumberProject
from monitoring_platform.cycle.ingest import discover
from monitoring_platform.cycle.ledger import told_by_workspace
from monitoring_platform.health.checks import CHECKS, Finding, of_rule, run
from monitoring_platform.marts.registry import EXPECTATION_RESULTS, PIPELINE_RUNS
from monitoring_platform.marts.tables.health import FINDINGS
from monitoring_platform.sources import SourceError
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.looking import connect
from monitoring_platform.warehouse.store import Warehouse

Row = dict[str, Any]


@dataclass
class Overview:
    """`attention`: what checks find now and rules found last; `pipelines`: the morning answers for each pipeline."""

    pipelines: list[Row]
    attention: list[Finding]
    unseen: list[Row]
    quarantined: int
    events: int

    def as_dict(self) -> dict[str, Any]:
        """The overview as JSON can hold it."""
        return {**asdict(self), "attention": [f._asdict() for f in self.attention if not f.passed]}


_PIPELINES = """
WITH runs AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, update_id DESC) AS age
  FROM pipeline_runs WHERE run_kind = 'normal'
),
finished AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id ORDER BY start_ts DESC, update_id DESC) AS age
  FROM pipeline_runs WHERE run_kind = 'normal' AND end_ts IS NOT NULL
),
quality AS (
  SELECT pipeline_id, update_id, min(pass_rate_pct) AS worst_pass_rate_pct FROM expectation_results GROUP BY 1, 2
)
SELECT p.pipeline_id, p.pipeline_name, p.owner, p.state, p.reason, p.remedy, p.remedy_sql, p.last_event_ts,
       p.logs,
       r.update_id AS latest_update_id, r.status AS latest_status, r.cause, r.start_ts, r.end_ts, r.duration_seconds,
       CASE WHEN r.end_ts IS NULL THEN epoch(r.last_event_ts - r.start_ts) END AS running_seconds,
       f.update_id AS finished_update_id, f.status AS finished_status, f.end_ts AS finished_at,
       r.rows_written, r.rows_dropped, r.error_count, q.worst_pass_rate_pct, r.attempt_number
FROM pipelines p
LEFT JOIN runs r ON r.pipeline_id = p.pipeline_id AND r.age = 1
LEFT JOIN finished f ON f.pipeline_id = p.pipeline_id AND f.age = 1
LEFT JOIN quality q ON q.pipeline_id = p.pipeline_id AND q.update_id = r.update_id
ORDER BY p.pipeline_name NULLS LAST, p.pipeline_id
"""
_UNSEEN = """
SELECT pipeline_id, pipeline_name, owner, state, reason, remedy, remedy_sql FROM pipelines
WHERE state NOT IN ('seen', 'excluded') ORDER BY state, pipeline_name NULLS LAST, pipeline_id
"""


_OPEN = """
SELECT * FROM findings WHERE state = 'open' ORDER BY rule, since DESC NULLS LAST, pipeline_id, subject
"""


def overview(warehouse: Warehouse, now: datetime) -> Overview:
    """Everything that `status` shows."""
    con = connect(warehouse, contracts.PIPELINES, contracts.QUARANTINE, PIPELINE_RUNS, EXPECTATION_RESULTS, FINDINGS)
    checks = [run(warehouse, check, now) for check in CHECKS if check.name not in _LOOKS_AT_EVENTS]
    found = groupby(_rows(con, _OPEN), itemgetter("rule"))
    return Overview(
        pipelines=_rows(con, _PIPELINES),
        attention=[*checks, *(of_rule(rule, list(rows)) for rule, rows in found)],
        unseen=_rows(con, _UNSEEN),
        quarantined=_rows(con, "SELECT count(*) AS n FROM quarantine")[0]["n"],
        events=warehouse.rows(contracts.UNION),
    )


#: These two read events; a cycle runs them, a look at the state need not.
_LOOKS_AT_EVENTS = frozenset({"no_duplicate_events", "nothing_missing_downstream"})


def preview(warehouse: Warehouse, now: datetime) -> list[Row]:
    """What the next run would read: each log with its pipelines, and whether it has news. Writes nothing."""
    found = discover(warehouse, now)
    readable = {log.location: (source, log) for source, log in found.readable}
    rows = []
    for location, row in sorted(found.rows.items()):
        if row["state"] in ("gone", "unreachable"):  # of a source that cannot be listed its own row says so
            continue
        ids = set(row["pipeline_ids"] or ())
        problem = found.failed.get(location)
        if not ids and location in readable:
            source, log = readable[location]
            try:
                ids = source.pipelines(log, None)
            except SourceError as error:
                problem = error.reason
        told = told_by_workspace(row)
        names = [told["pipeline_name"]] if told.get("pipeline_name") else sorted(ids)
        result = problem or ("new events" if location in readable else row["error"] or "up to date")
        if table := told.get("event_log_table"):
            result += f"; published as {table}"
        rows.append(
            {"log": location, "source": row["source"], "pipelines": names, "result": result, "ok": problem is None}
        )
    rows += [
        {
            "log": None,
            "source": name,
            "pipelines": [],
            "result": "matches nothing: check its path, or what its credentials may see",
            "ok": True,
        }
        for name in found.empty_sources
    ]
    return rows + _plumber_logs(warehouse.settings.plumber)


def _plumber_logs(project: PlumberProject | None) -> list[Row]:
    """The logs of a Lakehouse Plumber project, one for each of its pipelines, by name."""
    if project is None:
        return []
    source = f"lakehouse_plumber:{project.environment}"
    if not project.monitoring_enabled:
        result = "switched off by the project: monitoring.enabled is false"
        return [{"log": None, "source": source, "pipelines": [], "result": result, "ok": True}]
    rows = []
    for name in project.pipelines():
        table = project.log_table(name)
        if name in project.opted_out:
            result = "excluded by configuration: event_log is false"
        elif table is None:
            result = "publishes no log: event_log is off in the project"
        else:
            result = "named by the project; a source of type workspace reads it"
        rows.append({"log": table, "source": source, "pipelines": [name], "result": result, "ok": True})
    return rows


def _rows(con: Any, sql: str) -> list[Row]:
    return list(con.execute(sql).to_arrow_table().to_pylist())
