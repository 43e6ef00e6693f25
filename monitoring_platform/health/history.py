"""The tables as they were known at a time, in DuckDB: what rules read, so that a rehearsal sees what a live cycle saw.

An update is known from its start; what it did is known when it has ended. Later events never leak in: an update that
was open at the time has no end, no rows and no results. What was loaded when a log was first read counts as known when
it happened, what came later as known from the cycle that read it.

Tables that say how things are now and keep no history (coverage, context of workspaces) are seen as they are: rules
that read them cannot be rehearsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

import duckdb

from monitoring_platform.marts.registry import STOCK
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.duck import opened
from monitoring_platform.warehouse.store import Warehouse

LOOKBACK = timedelta(days=70)  # what baselines and weekly comparisons reach back to

#: Columns of pipeline_runs that are known from the start of an update.
_KNOWN_FROM_START = frozenset(
    """
    pipeline_id update_id pipeline_name pipeline_type cause run_as started_by run_kind request_id own_request_id
    failed_attempts attempt_number is_full_refresh start_ts serverless continuous development photon edition channel
    catalog target dbr_version
    """.split()  # noqa: SIM905
)
#: Tables by the time at which a row of them is known.
_BY_EVENT = {
    "pipeline_errors": "event_ts",
    "refresh_decisions": "event_ts",
    "operation_progress": "event_ts",
    "stream_progress": "event_ts",
    "cluster_resources": "event_ts",
    "user_actions": "event_ts",
    "dataset_definitions": "event_ts",
    "dataset_schemas": "event_ts",
    "flow_definitions": "event_ts",
    "flow_lineage": "event_ts",
    "schema_changes": "changed_at",
    "slo_results": '"at"',
    "flow_hours": "hour_ts + INTERVAL 1 HOUR",
    "gateway_progress": "hour_ts + INTERVAL 1 HOUR",
    "expectation_days": "CAST(day AS TIMESTAMPTZ) + INTERVAL 1 DAY",
    "pipeline_costs": "CAST(usage_date AS TIMESTAMPTZ) + INTERVAL 1 DAY",
}
#: Tables whose rows are known when their update has ended.
_BY_UPDATE = ("flow_metrics", "expectation_results", "flow_durations", "failures")

_RAW = frozenset([contracts.LANDING.name, contracts.UNION.name, contracts.QUARANTINE.name])  # not for rules
_BASE = ("pipeline_runs", "requests")  # what others are shown by, and nearly all rules ask: worked out once
_REQUESTS = """
WITH ordered AS (
  SELECT *, row_number() OVER (PARTITION BY pipeline_id, request_id
                               ORDER BY attempt_number DESC, start_ts DESC, update_id DESC) AS from_last,
         lag(status) OVER (PARTITION BY pipeline_id, request_id ORDER BY attempt_number, start_ts, update_id)
           AS previous_status
  FROM pipeline_runs
)
SELECT pipeline_id, request_id,
       max(pipeline_name) FILTER (from_last = 1) AS pipeline_name,
       max(run_kind) FILTER (from_last = 1) AS run_kind,
       max(attempt_number) AS attempts,
       count(*) FILTER (status = 'FAILED') AS failed_attempts,
       max(update_id) FILTER (from_last = 1) AS last_update_id,
       max(status) FILTER (from_last = 1) AS outcome,
       max(previous_status) FILTER (from_last = 1) AS previous_attempt_status,
       bool_or(is_full_refresh) AS is_full_refresh,
       bool_or(continuous) AS continuous,
       NOT coalesce(bool_or(from_last = 1 AND end_ts IS NOT NULL), false) AS is_open,
       min(start_ts) AS start_ts,
       max(start_ts) FILTER (from_last = 1) AS last_start_ts,
       max(end_ts) FILTER (from_last = 1) AS end_ts,
       epoch(max(end_ts) FILTER (from_last = 1) - min(start_ts)) AS duration_seconds
FROM ordered
GROUP BY pipeline_id, request_id
"""

_KNOWN = """
WITH first_read AS (SELECT pipeline_id, min(_ingested_at) AS at FROM all_pipelines_event_log GROUP BY ALL),
events AS (
  SELECT u.pipeline_id, u.update_id, u.event_ts,
         CASE WHEN u._ingested_at = f.at THEN u.event_ts ELSE greatest(u.event_ts, u._ingested_at) END AS known_at
  FROM all_pipelines_event_log u JOIN first_read f USING (pipeline_id)
  WHERE u.update_id IS NOT NULL AND u.event_date >= $since
)
SELECT r.pipeline_id, r.update_id, min(e.known_at) AS start_known_at,
       min(e.known_at) FILTER (e.event_ts = r.end_ts) AS end_known_at
FROM stored_pipeline_runs r JOIN events e USING (pipeline_id, update_id)
GROUP BY ALL
"""


class History:
    """A DuckDB connection whose tables are those of the warehouse as known at the time last asked for."""

    def __init__(
        self, warehouse: Warehouse, queries: Iterable[str], now: datetime, since: datetime | None = None
    ) -> None:
        """The tables that these queries name, for evaluations at `now`, or, to rehearse, at times from `since` on."""
        self.con = opened()
        self._is_rehearsal = since is not None
        begin = (since or now) - LOOKBACK
        words = {word for query in queries for word in re.findall(r"\w+", query.lower())}
        words |= set(_BASE)
        words -= _RAW | ({"incidents", "slo_results"} if self._is_rehearsal else set())  # a rehearsal has its own
        self._names = [name for name in sorted(STOCK, key=_base_first) if name in words]
        for name in self._names:
            warehouse.show(self.con, STOCK[name], f"stored_{name}")
        self.con.execute(
            f"CREATE TEMP TABLE clock AS SELECT {_literal(now)} AS now, ? AS time_zone", [warehouse.settings.time_zone]
        )
        if self._is_rehearsal:
            self._remember(warehouse, begin)
        for name in self._names:
            self._show(name, now)

    def at(self, now: datetime) -> duckdb.DuckDBPyConnection:
        """The connection, its tables as known then."""
        self.con.execute(f"UPDATE clock SET now = {_literal(now)}")
        for name in self._names:
            if name in (*_BASE, *_BY_EVENT):
                self._show(name, now)
        return self.con

    def _remember(self, warehouse: Warehouse, begin: datetime) -> None:
        """Read once what is asked for at many times."""
        warehouse.show(self.con, contracts.UNION)
        self.con.execute(f"CREATE TEMP TABLE known AS {_KNOWN}", {"since": begin.date()})
        for name in self._names:
            if name not in ("pipeline_runs", *_BY_UPDATE, *_BY_EVENT):
                continue
            self.con.execute(f"CREATE TEMP TABLE remembered AS SELECT * FROM stored_{name}")
            self.con.execute(f"DROP VIEW stored_{name}; ALTER TABLE remembered RENAME TO stored_{name}")

    def _show(self, name: str, now: datetime) -> None:
        stored, at, begin = f"stored_{name}", _literal(now), _literal(now - LOOKBACK)
        if name == "pipeline_runs":
            sql = self._runs(at, begin)
        elif name == "requests":
            sql = _REQUESTS
        elif name in _BY_UPDATE:
            ended = "SELECT pipeline_id, update_id FROM pipeline_runs WHERE end_ts IS NOT NULL"
            sql = f"SELECT * FROM {stored} SEMI JOIN ({ended}) USING (pipeline_id, update_id)"
        elif name in _BY_EVENT:
            sql = f"SELECT * FROM {stored} WHERE {_BY_EVENT[name]} BETWEEN {begin} AND {at}"
        else:
            sql = f"SELECT * FROM {stored}"
        kind = "TABLE" if name in _BASE else "VIEW"  # many rules read these
        self.con.execute(f"CREATE OR REPLACE TEMP {kind} {name} AS {sql}")

    def _runs(self, at: str, begin: str) -> str:
        known = "s.end_ts <= " + at
        join, started = "", f"s.start_ts BETWEEN {begin} AND {at}"
        if self._is_rehearsal:
            join = "JOIN known k USING (pipeline_id, update_id)"
            started += f" AND k.start_known_at <= {at}"
            known += f" AND k.end_known_at <= {at}"
        columns = []
        for column in STOCK["pipeline_runs"].columns:
            if column.name in _KNOWN_FROM_START:
                columns.append(f"s.{column.name}")
            elif column.name == "status":
                columns.append(f"CASE WHEN {known} THEN s.status ELSE 'RUNNING' END AS status")
            else:
                columns.append(f"CASE WHEN {known} THEN s.{column.name} END AS {column.name}")
        return f"SELECT {', '.join(columns)} FROM stored_pipeline_runs s {join} WHERE {started}"


def _base_first(name: str) -> tuple[int, str]:
    return (_BASE.index(name) if name in _BASE else len(_BASE)), name


def _literal(at: datetime) -> str:
    return f"TIMESTAMPTZ '{at.isoformat()}'"
