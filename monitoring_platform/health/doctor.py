"""What has to be right before a cycle can work, tried one by one: engine, write access, sources, channels, clock.

Of what is written only the folder of the warehouse stays (in a catalog nothing); sources are only read.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

from monitoring_platform.config import Settings
from monitoring_platform.event_log.redact import redact_text
from monitoring_platform.health.notify.channels import Channel
from monitoring_platform.sources import Look, Source, SourceError, configured
from monitoring_platform.sources.diagnosis import Diagnosis, failed, noted, passed
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.opening import open_warehouse
from monitoring_platform.warehouse.store import Warehouse

_LOOK_SECONDS = 20.0
_FREE_BYTES = 2 * 1024**3
_NAMED = 3  # unreadable logs that are named; the rest is counted
_AHEAD = timedelta(minutes=5)


def examine(settings: Settings, now: datetime) -> Iterator[Diagnosis]:
    """Each thing as it has been tried; what fails does not keep the next from being tried."""
    warehouse = open_warehouse(settings)
    yield _guarded("java", lambda: _java(settings))
    yield _guarded("engine", lambda: _engine(warehouse))
    yield _guarded("write access", lambda: _writing(settings, warehouse))
    yield _guarded("clock", lambda: _clock(warehouse, now))
    for source in configured(settings):
        yield from _source(source, now, warehouse)
    for name in settings.notifications.channels:
        yield _guarded(f"channel {name}", partial(_channel, settings, name))


def _guarded(what: str, look: Callable[[], Diagnosis]) -> Diagnosis:
    try:
        return look()
    except Exception as error:
        return failed(what, f"{type(error).__name__}: {error}", "see the message; if it looks like a bug, report it")


def _java(settings: Settings) -> Diagnosis:
    from monitoring_platform.warehouse.session import EngineUnavailable, java_version, require_java

    if settings.engine.name != "spark" or settings.engine.is_in_databricks:
        return noted("java", f"not needed by engine {settings.engine.name}")
    try:
        require_java()
    except EngineUnavailable as error:
        reason, _, remedy = str(error).partition(". ")
        return failed("java", reason, remedy)
    return passed("java", f"Java {java_version()}")


def _engine(warehouse: Warehouse) -> Diagnosis:
    from monitoring_platform.warehouse.session import EngineUnavailable

    started, name = time.monotonic(), warehouse.settings.engine.name
    try:
        warehouse.spark.sql("SELECT 1 AS one").toArrow()
    except EngineUnavailable as error:
        return failed("engine", str(error).splitlines()[0], f"correct `engine` in {warehouse.settings.config_path}")
    return passed("engine", f"{name} answers, {time.monotonic() - started:.1f} s after its start")


def _writing(settings: Settings, warehouse: Warehouse) -> Diagnosis:
    root = settings.warehouse.path
    if root is None:
        return _writing_into_catalog(settings, warehouse)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=root) as folder:
            for _ in range(2):  # the second commit has to find the first
                write_deltalake(folder, pa.table({"n": [1]}), mode="append")
            written = DeltaTable(folder).version()
    except OSError as error:
        return failed(
            "write access",
            f"{root} cannot be written: {error.strerror or error}",
            f"give this user write access to {root}, or set warehouse.path to a folder that it may write to",
        )
    free = shutil.disk_usage(root).free
    if written != 1 or free < _FREE_BYTES:
        return failed("write access", f"{root} has {free / 1024**3:.1f} GiB left", "make room on that disk")
    return passed("write access", f"{root} takes Delta commits, {free / 1024**3:.0f} GiB are free")


def _writing_into_catalog(settings: Settings, warehouse: Warehouse) -> Diagnosis:
    """A small table, made, filled and dropped; a schema that is not there is made for it as the first run would."""
    place = f"{settings.warehouse.catalog}.{settings.warehouse.schema_name}"
    spark, schema = warehouse.spark, _quoted(settings)
    table = f"{schema}.`doctor_{uuid4().hex}`"
    try:
        is_there = spark.catalog.databaseExists(schema)
        if not is_there:
            spark.sql(f"CREATE SCHEMA {schema}").collect()
        try:
            spark.sql(f"CREATE TABLE {table} (n INT) USING DELTA").collect()
            spark.sql(f"INSERT INTO {table} VALUES (1)").collect()
            spark.sql(f"DROP TABLE {table}").collect()
        finally:
            spark.sql(f"DROP TABLE IF EXISTS {table}" if is_there else f"DROP SCHEMA {schema} CASCADE").collect()
    except Exception as error:
        reason = " ".join(str(error).split("\n\n")[0].splitlines())
        return failed(
            "write access",
            f"{place} cannot be written: {redact_text(reason)}",
            f"grant USE CATALOG on the catalog and USE SCHEMA, CREATE TABLE, MODIFY, SELECT on {place}; "
            "CREATE SCHEMA on the catalog if the schema is not there yet",
        )
    return passed("write access", f"{place} takes tables" + ("" if is_there else "; the first run makes the schema"))


def _quoted(settings: Settings) -> str:
    names = (settings.warehouse.catalog or "", settings.warehouse.schema_name or "")
    return ".".join(f"`{name.replace('`', '``')}`" for name in names)


def _clock(warehouse: Warehouse, now: datetime) -> Diagnosis:
    """Events cannot be newer than now; the ledger leaves out those dated in the far future."""
    newest = pc.max(warehouse.arrow(contracts.PIPELINES, ["last_event_ts"])["last_event_ts"]).as_py()
    if newest is not None and newest - now > _AHEAD:
        late = newest - now
        return failed(
            "clock", f"{now:%Y-%m-%d %H:%M} UTC is {late} before the newest event", "set this machine's clock"
        )
    return passed("clock", f"{now:%Y-%m-%d %H:%M} UTC")


def _channel(settings: Settings, name: str) -> Diagnosis:
    """Nothing is sent: `notify test` does that."""
    kind = Channel(name, settings).kind
    if kind is None:
        written = settings.written("notifications", "channels", name)
        return failed(
            f"channel {name}", "Apprise does not understand its address", f"correct {written}: docs/notifications.md"
        )
    return passed(f"channel {name}", f"{kind}; `notify test` sends a message")


def _source(source: Source, now: datetime, warehouse: Warehouse) -> Iterator[Diagnosis]:
    what = f"source {source.name}"
    examined = getattr(source, "examine", None)
    if examined is not None:  # a workspace: there is more to it than logs
        yield from examined(now, lambda: warehouse.spark)
    try:
        logs = source.listing(Look(now, deadline=time.monotonic() + _LOOK_SECONDS)).logs
    except SourceError as error:
        yield failed(what, error.reason, error.remedy, error.remedy_sql)
        return
    if not logs:
        yield failed(what, "it matches nothing", "check its path or filters; `validate` lists what is found")
        return
    broken: list[tuple[str, SourceError]] = []
    for log in logs:
        try:
            source.position(log)
        except SourceError as error:
            broken.append((log.location, error))
    if broken:
        named = "; ".join(f"{location}: {error.reason}" for location, error in broken[:_NAMED])
        more = f" and {len(broken) - _NAMED} more" if len(broken) > _NAMED else ""
        yield failed(what, f"{len(broken)} of {len(logs)} logs cannot be read: {named}{more}", broken[0][1].remedy)
    else:
        yield passed(what, f"{len(logs):,} {'log' if len(logs) == 1 else 'logs'}")
