"""One evaluation of a cycle: rules over the tables as known now, and what follows for findings and incidents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

import duckdb
import pyarrow as pa

from monitoring_platform.config import Settings
from monitoring_platform.cycle.context import keep
from monitoring_platform.health import rules, slo
from monitoring_platform.health.history import LOOKBACK, History
from monitoring_platform.health.incidents import State, Step, lately, step
from monitoring_platform.marts.tables.health import FINDINGS, INCIDENT_EVENTS, INCIDENTS, RULE_RESULTS, TABLES
from monitoring_platform.warehouse.store import Warehouse

UPSTREAM = """
WITH newest AS (
  SELECT * FROM flow_lineage
  QUALIFY rank() OVER (PARTITION BY pipeline_id, flow_name ORDER BY event_ts DESC, update_id DESC) = 1
)
SELECT DISTINCT r.pipeline_id, w.pipeline_id AS upstream_id
FROM newest r JOIN newest w ON w.qualified_output = r.qualified_input AND w.pipeline_id <> r.pipeline_id
"""


def watch(warehouse: Warehouse, now: datetime) -> Step:
    """Evaluate all rules and write what follows. Redoing it at the same time changes nothing."""
    warehouse.create(TABLES)
    settings = warehouse.settings
    names = rules.names(settings)
    queries = [*rules.queries(settings, names), *slo.queries(), UPSTREAM, "pipelines incidents findings"]
    history = History(warehouse, queries, now)
    con = history.con
    incidents = con.execute(
        "SELECT * FROM incidents WHERE resolved_at IS NULL OR resolved_at >= $since", {"since": now - LOOKBACK}
    )
    recent = lately(incidents.to_arrow_table().to_pylist(), settings, now)
    findings = con.execute("SELECT * FROM findings").to_arrow_table().to_pylist()
    made = judge(con, settings, State(findings, recent), now, _unread(con), names)
    slo.write(warehouse, con)
    _write(warehouse, made)
    return made


def judge(
    con: duckdb.DuckDBPyConnection,
    settings: Settings,
    state: State,
    now: datetime,
    not_processed: frozenset[str],
    names: Sequence[str],
) -> Step:
    """One evaluation of these rules on tables that show the time `now`; nothing is written."""
    rules.prepare(con)
    watched = rules.pipelines(con)
    slo.prepare(con, settings, watched, now)
    evaluations = rules.evaluate(con, settings, watched, names)
    return step(state, evaluations, settings, watched, now, _upstream(con), not_processed)


def _upstream(con: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for pipeline_id, upstream_id in con.execute(UPSTREAM).fetchall():
        found[pipeline_id].add(upstream_id)
    return found


def _unread(con: duckdb.DuckDBPyConnection) -> frozenset[str]:
    rows = con.execute("SELECT pipeline_id FROM pipelines WHERE consecutive_failures > 0").fetchall()
    return frozenset(row[0] for row in rows)


def _write(warehouse: Warehouse, made: Step) -> None:
    """Events before incidents: a kill between them makes the next evaluation write the same ones again."""
    keep(warehouse, INCIDENT_EVENTS, pa.Table.from_pylist(made.events, INCIDENT_EVENTS.schema))
    keep(warehouse, INCIDENTS, pa.Table.from_pylist(made.incidents, INCIDENTS.schema))
    warehouse.replace_rows(FINDINGS, pa.Table.from_pylist(made.findings, FINDINGS.schema))
    warehouse.replace_rows(RULE_RESULTS, pa.Table.from_pylist(made.results, RULE_RESULTS.schema))
