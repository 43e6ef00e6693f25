"""The logs of a workspace's pipelines as a source: each is read by the best way that is open to us.

A way that is refused is left for the next one and tried again another day, or with other settings of the pipeline; the
cursor holds for every way. Trouble that passes ends the read without changing the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from monitoring_platform.config import PlumberProject, Settings, WorkspaceSource
from monitoring_platform.event_log.normalise import Delivered
from monitoring_platform.sources.base import Chunk, Cursor, Facts, Listing, Log, Look, SourceError
from monitoring_platform.sources.delta import DeltaLogs
from monitoring_platform.sources.diagnosis import Diagnosis
from monitoring_platform.sources.workspace import paths, refusals, remedies
from monitoring_platform.sources.workspace.by_time import advance
from monitoring_platform.sources.workspace.client import Workspace
from monitoring_platform.sources.workspace.discovery import discover
from monitoring_platform.sources.workspace.examine import examine
from monitoring_platform.sources.workspace.filters import Filter
from monitoring_platform.sources.workspace.paths import Ask, SqlLog
from monitoring_platform.sources.workspace.statements import NoSql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Callable[[], "SparkSession"] | None
_SQL = frozenset({"table", "function", "system_table", "storage"})
_SENSOR_PATIENCE = 10


class WorkspaceLogs(NamedTuple):
    """One workspace of the configuration."""

    workspace: Workspace
    filter: Filter
    access: tuple[str, ...]
    tables: Mapping[str, str]
    datasets: Mapping[str, str]
    pipelines_table: str
    settings_every: timedelta
    pipeline_events: str
    columns: Mapping[str, str]
    overlap_hours: float
    plumber: PlumberProject | None = None
    system_tables: Mapping[str, tuple[str, bool]] = {}  # by purpose: the name, and whether something needs it

    @classmethod
    def from_settings(cls, entry: WorkspaceSource, settings: Settings) -> WorkspaceLogs:
        return cls(
            Workspace.from_settings(entry, settings.engine),
            Filter.from_settings(entry),
            entry.access,
            entry.tables,
            entry.datasets,
            entry.system_tables.pipelines,
            timedelta(hours=entry.every.settings_hours),
            entry.system_tables.pipeline_events,
            entry.columns,
            entry.overlap_hours,
            settings.plumber,
            _system_tables(entry, settings),
        )

    @property
    def name(self) -> str:
        return self.workspace.name

    def listing(self, look: Look) -> Listing:
        prefix = f"{self.name}/"
        known = {at.removeprefix(prefix): facts for at, facts in look.known.items() if at.startswith(prefix)}
        failing = frozenset(at.removeprefix(prefix) for at in look.failing)
        workspace = self.workspace if look.deadline is None else self.workspace._replace(patience=_SENSOR_PATIENCE)
        found, rest = discover(workspace, self.pipelines_table, known, failing, look, self.settings_every)
        return Listing([self._log(id_, facts) for id_, facts in sorted(found.items())], rest)

    def _log(self, pipeline_id: str, facts: Facts) -> Log:
        return Log(f"{self.name}/{pipeline_id}", self.name, "workspace", pipeline_id, facts, self._problem(facts))

    def _problem(self, facts: Facts) -> SourceError | None:
        """Why a pipeline is not to be read, if that can be told without trying."""
        if facts["spec"] is None and facts.get("undescribed"):
            return SourceError(facts["undescribed"], "it is tried again by itself", transient=True)
        setting = self.filter.left_out_by(facts)
        if setting is None:
            return None
        remedy = f"change {setting} of source {self.name} to read it"
        return SourceError(f"left out by {setting} of source {self.name}", remedy, "excluded")

    def examine(self, now: datetime, engine: Callable[[], SparkSession]) -> Iterator[Diagnosis]:
        """What the workspace lets us do, for `doctor`."""
        ask = partial(self.workspace.sql, engine=engine)
        return examine(self.workspace, ask, self.access, self.system_tables, now)

    def position(self, log: Log) -> Any:
        return _facts(log)["position"]

    def pipelines(self, log: Log, cursor: Cursor | None) -> set[str]:
        return {_pipeline(log)}

    def read(
        self, log: Log, cursor: Cursor | None, limit: int, engine: Callable[[], SparkSession] | None = None
    ) -> Chunk:
        refused: dict[str, SourceError] = {}
        late = _refused_before(log, cursor)
        for path in self._order(cursor, late):
            try:
                chunk = self._by(path, log, cursor, limit, engine)
            except SourceError as error:
                if error.transient:
                    raise
                refused[path] = error
                continue
            chunk.cursor.update(path=path, refused=sorted({*late, *refused} - {path}), tried=_tried(log))
            return chunk._replace(kind=path)
        if _facts(log).get("deleted"):  # what could be had was had
            return Chunk([], {**(cursor or {}), "position": _facts(log)["position"]}, more=False)
        raise refusals.worst(refused, _facts(log))

    def _order(self, cursor: Cursor | None, late: frozenset[str]) -> list[str]:
        """Ways in order of preference; those that were refused come last. A read that is under way goes on as it is."""
        under_way = (cursor or {}).get("path") if (cursor or {}).get("spans") else None
        return sorted(self.access, key=lambda path: (path != under_way, path in late))

    def _by(self, path: str, log: Log, cursor: Cursor | None, limit: int, engine: Engine) -> Chunk:
        pipeline_id, facts = _pipeline(log), _facts(log)
        ask: Ask = partial(self.workspace.sql, engine=engine)
        if path == "api":
            whole = partial(self._whole, log, cursor, engine)
            fetch = partial(paths.fetch_api, self.workspace, pipeline_id, whole)
            try:
                return advance(facts, cursor, path, self.overlap_hours, fetch, None, limit)
            except SourceError as error:
                raise self._refused(path, error, log) from error
        if path == "storage" and (folder := _local(_storage_of(pipeline_id, facts))):
            return self._in_folder(folder, log, cursor, limit, engine)
        refusal: SourceError | None = None
        for place in self._places(path, pipeline_id, facts):
            try:
                return self._by_sql(place, path, ask, log, cursor, limit)
            except SourceError as error:
                if error.transient or isinstance(error, NoSql):
                    raise
                refusal = refusal or error
        assert refusal is not None
        raise self._refused(path, refusal, log) from refusal

    def _by_sql(self, place: SqlLog, path: str, ask: Ask, log: Log, cursor: Cursor | None, limit: int) -> Chunk:
        fetch = partial(place.fetch, ask)
        return advance(_facts(log), cursor, path, self.overlap_hours, fetch, partial(place.months, ask), limit)

    def _in_folder(self, folder: Path, log: Log, cursor: Cursor | None, limit: int, engine: Engine) -> Chunk:
        """A legacy log in a folder that is reached as such: exactly the files added since."""
        delta = DeltaLogs(self.name, str(folder), _pipeline(log), self.overlap_hours)
        chunk = delta.read(
            Log(str(folder), self.name, "delta", _pipeline(log)), (cursor or {}).get("delta"), limit, engine
        )
        position = None if chunk.more else _facts(log)["position"]
        return chunk._replace(cursor={"position": position, "delta": chunk.cursor})

    def _places(self, path: str, pipeline_id: str, facts: Facts) -> list[SqlLog]:
        """What SQL reads on this way, the first that may be read. Raises SourceError if there is no such way."""
        if path == "function":
            dataset, hidden = _by_glob(self.datasets, pipeline_id, facts), _hidden_table(pipeline_id, facts)
            others = [paths.function_of(dataset)] * bool(dataset) + [paths.table(hidden)] * bool(hidden)
            return [paths.function(pipeline_id), *others]
        if path == "system_table":
            return [paths.system_table(self.pipeline_events, self.columns, pipeline_id)]
        if path == "storage":
            if folder := _storage_of(pipeline_id, facts):
                return [paths.storage(folder)]
            raise SourceError("it has no storage folder: it keeps its log in Unity Catalog", "read it in another way")
        if table := self._table_of(pipeline_id, facts):
            return [paths.table(table)]
        raise refusals.not_published(facts.get("name"), pipeline_id)

    def _table_of(self, pipeline_id: str, facts: Facts) -> tuple[str, ...]:
        """The published log: as configured, as the pipeline's settings say, by Lakehouse Plumber's rule; or none."""
        if configured := _by_glob(self.tables, pipeline_id, facts):
            return configured
        spec, name = facts.get("spec") or {}, facts.get("name")
        setting = spec.get("event_log") or {}
        if setting.get("name"):
            catalog, schema = setting.get("catalog") or spec.get("catalog"), setting.get("schema") or _schema(spec)
            return tuple(filter(None, (catalog, schema, setting["name"])))
        place = self.plumber.log_place(name) if self.plumber and name else None
        return tuple(place) if place else ()

    def _whole(self, log: Log, cursor: Cursor | None, engine: Engine, ids: list[str]) -> dict[str, Delivered]:
        """Events that the API cut, by the first way of SQL that is open; none if no way is.

        Raises SourceError where a way may be open again soon: what was delivered cut stays cut.
        """
        shut, ask = set((cursor or {}).get("refused") or ()), partial(self.workspace.sql, engine=engine)
        for path in (path for path in self.access if path in _SQL and path not in shut):
            try:
                places = self._places(path, _pipeline(log), _facts(log))
            except SourceError:  # there is no such way to this pipeline
                continue
            for place in places:
                try:
                    return place.by_id(ask, ids)
                except SourceError as error:
                    if error.transient:
                        raise
        return {}

    def _refused(self, path: str, error: SourceError, log: Log) -> SourceError:
        """An error of one way as the state of the pipeline that follows, with what opens the way."""
        if error.transient or isinstance(error, NoSql):
            return error
        pipeline_id, facts = _pipeline(log), _facts(log)
        if path == "table":
            return refusals.of_table(error, self._table_of(pipeline_id, facts), self.name, self._principal)
        if path == "function":
            return refusals.of_function(error, facts.get("name"), pipeline_id)
        if path == "system_table":
            return refusals.of_system_table(error, remedies.parts_of(self.pipeline_events), self._principal)
        return refusals.of_api(error, bool(facts.get("hidden")), self._principal) if path == "api" else error

    def _principal(self) -> str:
        try:
            return self.workspace.principal
        except SourceError:
            return "<the platform's user or service principal>"


def _system_tables(entry: WorkspaceSource, settings: Settings) -> dict[str, tuple[str, bool]]:
    """What is read of the workspace beside logs, by purpose: the table, and whether nothing else can stand for it."""
    named, costs = entry.system_tables, settings.costs
    return {
        "pipeline events": (named.pipeline_events, entry.access == ("system_table",)),
        "pipelines": (named.pipelines, False),
        "updates": (named.update_timeline, False),
        "usage": (named.usage, costs.enabled and costs.usage is None),
        "list prices": (named.list_prices, costs.enabled and costs.list_prices is None),
    }


def _facts(log: Log) -> Facts:
    assert log.facts is not None
    return log.facts


def _pipeline(log: Log) -> str:
    assert log.pipeline_id is not None
    return log.pipeline_id


def _tried(log: Log) -> list[Any]:
    """On another day, and with other settings, ways that were refused are tried again."""
    settled = _facts(log)["position"][0]
    return [settled.get("day"), settled.get("spec")]


def _refused_before(log: Log, cursor: Cursor | None) -> frozenset[str]:
    """Ways that were refused already since then."""
    return frozenset(cursor["refused"]) if cursor and cursor.get("tried") == _tried(log) else frozenset()


def _schema(spec: Mapping[str, Any]) -> str | None:
    return spec.get("schema") or spec.get("target")


def _by_glob(named: Mapping[str, str], pipeline_id: str, facts: Facts) -> tuple[str, ...]:
    """The table that the first matching glob names for a pipeline."""
    name = facts.get("name") or ""
    for glob, table in named.items():
        if fnmatchcase(name, glob) or fnmatchcase(pipeline_id, glob):
            return tuple(part.replace("{pipeline_name}", name) for part in remedies.parts_of(table))
    return ()


def _hidden_table(pipeline_id: str, facts: Facts) -> tuple[str, ...]:
    """Where the log is that is not published: for the user that the pipeline runs as; none in the legacy mode."""
    spec = facts.get("spec") or {}
    catalog, schema = spec.get("catalog"), spec.get("schema")
    return (catalog, schema, f"event_log_{pipeline_id.replace('-', '_')}") if catalog and schema else ()


def _storage_of(pipeline_id: str, facts: Facts) -> str | None:
    """Where a legacy pipeline keeps its log; None for one in Unity Catalog."""
    spec = facts.get("spec")
    if spec is None or spec.get("catalog"):
        return None
    return f"{(spec.get('storage') or f'dbfs:/pipelines/{pipeline_id}').rstrip('/')}/system/events"


def _local(folder: str | None) -> Path | None:
    """The folder as a path of this machine, if it is there; /dbfs is where a cluster has DBFS."""
    if folder is None:
        return None
    path = Path(folder.removeprefix("file:")) if "://" not in folder else Path("")
    if folder.startswith("dbfs:/"):
        path = Path("/dbfs") / folder.removeprefix("dbfs:/")
    return path if path.is_absolute() and (path / "_delta_log").is_dir() else None
