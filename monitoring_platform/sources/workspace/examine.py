"""What a workspace lets us do, tried in the smallest way: sign in, list, run SQL, read each system table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from monitoring_platform.sources.base import SourceError
from monitoring_platform.sources.diagnosis import Diagnosis, failed, noted, passed
from monitoring_platform.sources.workspace import remedies
from monitoring_platform.sources.workspace.client import Workspace
from monitoring_platform.sources.workspace.paths import Ask

_CLOCKS_APART = timedelta(minutes=2)
_SQL_WAYS = ("table", "function", "system_table")


def examine(
    workspace: Workspace, ask: Ask, access: tuple[str, ...], tables: Mapping[str, tuple[str, bool]], now: datetime
) -> Iterator[Diagnosis]:
    """`ask` runs SQL. `tables`: the system tables by what they are read for, each with its name and whether something
    needs it."""
    what = f"source {workspace.name}"
    try:
        yield passed(f"{what}: credentials", f"signed in to {workspace.url} as {workspace.principal}")
    except SourceError as error:
        yield failed(f"{what}: credentials", error.reason, error.remedy)
        return
    yield _clock(workspace, what, now)
    wanted = [way for way in access if way in _SQL_WAYS] or [name for name, (_, needed) in tables.items() if needed]
    try:
        ask("SELECT 1 AS one", {})
    except SourceError as error:
        only = [way for way in access if way not in _SQL_WAYS]
        if only or not wanted:
            yield noted(f"{what}: SQL", f"{error.reason}; logs are read by {', '.join(only)} alone", error.remedy)
        else:
            yield failed(f"{what}: SQL", error.reason, error.remedy, error.remedy_sql)
        return
    by = "the engine" if workspace.by_engine else f"SQL warehouse {workspace.sql_warehouse}"
    yield passed(f"{what}: SQL", f"{by} answers")
    for purpose, (name, needed) in tables.items():
        yield _table(workspace, ask, f"{what}: {purpose}", name, needed)


def _table(workspace: Workspace, ask: Ask, what: str, name: str, needed: bool) -> Diagnosis:
    parts = remedies.parts_of(name)
    try:
        ask(f"SELECT 1 AS one FROM {remedies.qualified(parts)} LIMIT 1", {})
    except SourceError as error:
        remedy, statements = error.remedy, error.remedy_sql
        if error.state == "no_grant":
            remedy = "run these statements as an account admin who is a metastore admin"
            statements = remedies.grant_select(parts, workspace.principal)
        return (failed if needed else noted)(what, f"{name} cannot be read: {error.reason}", remedy, statements)
    return passed(what, f"{name} can be read")


def _clock(workspace: Workspace, what: str, now: datetime) -> Diagnosis:
    """This machine's clock beside that of the service: SQL, tokens and deadlines depend on it."""
    try:
        told = workspace.time()
    except SourceError as error:
        return noted(f"{what}: clock", error.reason)
    if told is None:
        return noted(f"{what}: clock", "the service does not say what time it is")
    apart = abs(told - now)
    if apart > _CLOCKS_APART:
        return failed(
            f"{what}: clock", f"{apart.total_seconds():,.0f} s apart from this machine", "set this machine's clock"
        )
    return passed(f"{what}: clock", f"{apart.total_seconds():.0f} s apart from this machine")
