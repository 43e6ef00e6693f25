"""The rules: questions in DuckDB's SQL to the tables as known at a time, each giving offenders.

A row is one thing that is wrong: `pipeline_id`; optional `subject` (flow, dataset, expectation), `cause` (trouble of
several pipelines with the same cause is one incident), `since`, `title` and `severity`; every other column is evidence.
A ready-made rule reads its limits, which may differ between pipelines, from the table `limits`: one row for each
pipeline that the rule is on for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from itertools import takewhile
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from monitoring_platform.config import READY_RULES, UNSTABLE_RULES, Chosen, Rule, Settings, Severity
from monitoring_platform.warehouse.duck import hold

RANK: dict[str, int] = {"info": 0, "warning": 1, "error": 2}


class Kind(NamedTuple):
    """What is fixed about a ready-made rule."""

    severity: Severity = "warning"
    folds: bool = False
    """Whether it can be the mere consequence of trouble upstream, which it is then part of."""
    is_cause: bool = False
    """Whether trouble downstream can be its consequence."""
    restates: frozenset[str] = frozenset()
    """Rules that say the same of a pipeline more exactly: beside one of them it is no trouble of its own."""
    now_only: bool = False
    """It reads what is kept only as it is now, and cannot be rehearsed."""


_EXACT = frozenset(
    """
    request_failed failure_rate_high deadline_missed run_slow duration_over_target pass_rate_low pass_rate_falling
    rows_dropped backlog_high backlog_growing flow_stalled
    """.split()  # noqa: SIM905
)
KINDS: dict[str, Kind] = {
    "request_failed": Kind("error", folds=True, is_cause=True),
    "failure_rate_high": Kind(restates=frozenset(["request_failed"])),
    "deadline_missed": Kind("error", folds=True),
    "deadline_at_risk": Kind(folds=True),
    "not_fresh": Kind("error", folds=True, is_cause=True),
    "duration_over_target": Kind(restates=frozenset(["run_slow"])),
    "budget_burning": Kind(restates=_EXACT),
    "run_slow": Kind(),
    "duration_growing": Kind(),
    "rows_zero": Kind(folds=True, is_cause=True),
    "rows_changed": Kind(folds=True, is_cause=True, restates=frozenset(["rows_zero"])),
    "pass_rate_low": Kind(),
    "pass_rate_falling": Kind(restates=frozenset(["pass_rate_low"])),
    "rows_dropped": Kind(restates=frozenset(["pass_rate_low", "pass_rate_falling"])),
    "backlog_high": Kind(),
    "backlog_growing": Kind(restates=frozenset(["backlog_high", "flow_stalled"])),
    "flow_stalled": Kind("error", is_cause=True),
    "recomputed_in_full": Kind(),
    "expectation_lost": Kind(),
    "cost_high": Kind(),
    "pipeline_silent": Kind("error", folds=True, is_cause=True),
    "pipeline_not_seen": Kind("error", now_only=True),
    "update_missing": Kind("error", now_only=True),
    "stream_lagging": Kind(),
}
OWN = Kind()
_VIEWS = ("judged", "troubled", "usual", "ended_requests")
_NAMED = frozenset(["pipeline_id", "subject", "cause", "since", "title", "severity"])


class Found(NamedTuple):
    """One thing that a rule finds wrong."""

    rule: str
    pipeline_id: str
    subject: str
    cause: str | None
    since: datetime | None
    title: str
    severity: str
    evidence: dict[str, Any]


class Evaluation(NamedTuple):
    """What one rule found, or why it could not be evaluated."""

    rule: str
    found: list[Found]
    error: str | None = None


class Pipeline(NamedTuple):
    """What rules and routes know of a pipeline beside its numbers."""

    pipeline_id: str
    name: str | None
    owner: str | None
    tags: dict[str, str]

    def suits(self, entry: Chosen) -> bool:
        """Whether an entry of the configuration is about it."""
        return entry.fits(self.pipeline_id, self.name, self.tags)


def pipelines(con: duckdb.DuckDBPyConnection) -> list[Pipeline]:
    """All pipelines of the ledger that are watched."""
    rows = con.execute(
        "SELECT pipeline_id, pipeline_name, owner, tags FROM pipelines "
        "WHERE state NOT IN ('excluded', 'retired', 'deleted') AND NOT list_contains(coalesce(logs, []), pipeline_id)"
    ).fetchall()
    return [Pipeline(key, name, owner, dict(tags or {})) for key, name, owner, tags in rows]


def names(settings: Settings) -> list[str]:
    """Rules that are on, the ready-made ones first."""
    own = [name for name, rule in settings.rules.items() if rule.sql is not None]
    return [name for name in (*READY_RULES, *own) if is_on(settings, name)]


def is_on(settings: Settings, name: str) -> bool:
    """Whether the rule opens incidents at all."""
    enabled = settings.rule(name).enabled
    return name not in UNSTABLE_RULES if enabled is None else enabled


def kind(name: str) -> Kind:
    """What is fixed about a rule."""
    return KINDS.get(name, OWN)


@cache
def _shipped(path: str) -> str:
    return (files(__package__) / f"{path}.sql").read_text(encoding="utf-8")


def sql_of(settings: Settings, name: str) -> str:
    """The SQL of a rule, ready-made or one's own."""
    return settings.rule(name).sql or _shipped(name)


def description(name: str, settings: Settings) -> str:
    """What a rule finds, in words."""
    own = settings.rule(name)
    if own.sql is not None:
        return own.description or "A rule of one's own."
    return " ".join(line[3:] for line in takewhile(lambda line: line.startswith("--"), _shipped(name).splitlines()))


def queries(settings: Settings, rules: Iterable[str]) -> list[str]:
    """The SQL of these rules, and of the views that rules share."""
    return [*(_shipped(f"views/{name}") for name in _VIEWS), *(sql_of(settings, name) for name in rules)]


def prepare(con: duckdb.DuckDBPyConnection) -> None:
    """The tables that rules share, for the time that the tables of the connection show. Each is read more than once."""
    for name in _VIEWS:
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {_shipped(f'views/{name}')}")


def evaluate(
    con: duckdb.DuckDBPyConnection, settings: Settings, watched: Sequence[Pipeline], rules: Iterable[str]
) -> list[Evaluation]:
    """What each rule finds; one that fails says why and does not keep others from being evaluated."""
    return [_evaluated(con, settings, watched, name) for name in rules]


def _evaluated(
    con: duckdb.DuckDBPyConnection, settings: Settings, watched: Sequence[Pipeline], name: str
) -> Evaluation:
    rule = settings.rule(name)
    on = {pipeline.pipeline_id: _settings(rule, name, pipeline) for pipeline in watched}
    on = {key: found for key, found in on.items() if found is not None}
    limits: dict[str, list[Any]] = {"pipeline_id": list(on)}
    for limit in READY_RULES.get(name, ()):
        limits[limit] = [found[1][limit] for found in on.values() if found]
    hold(con, "limits", pa.table({key: pa.array(values, _kind(key)) for key, values in limits.items()}))
    try:
        rows = con.execute(sql_of(settings, name)).to_arrow_table().to_pylist()
    except duckdb.Error as error:
        return Evaluation(name, [], str(error).splitlines()[0])
    found = []
    for row in rows:
        given = on.get(str(row.get("pipeline_id")))
        if given is None:  # off for it, or not watched
            continue
        severity = given[0] or (row.get("severity") if row.get("severity") in RANK else None) or kind(name).severity
        found.append(
            Found(
                name,
                str(row["pipeline_id"]),
                str(row.get("subject") or ""),
                row.get("cause"),
                row.get("since"),
                str(row.get("title") or name.replace("_", " ")),
                severity,
                {key: value for key, value in row.items() if key not in _NAMED and value is not None},
            )
        )
    return Evaluation(name, found)


def _kind(column: str) -> pa.DataType:
    return pa.string() if column == "pipeline_id" else pa.float64()


def _settings(rule: Rule, name: str, pipeline: Pipeline) -> tuple[Severity | None, dict[str, float]] | None:
    """Severity, if the configuration sets one, and limits of a rule for a pipeline; None = it is off for it."""
    severity, limits = rule.severity, {**READY_RULES.get(name, {}), **rule.limits}
    for override in sorted(rule.overrides, key=lambda entry: entry.nearness):
        if not pipeline.suits(override):
            continue
        if override.enabled is False:
            return None
        severity = override.severity or severity
        limits |= override.limits
    return severity, limits
