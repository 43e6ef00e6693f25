"""The logs of a workspace's pipelines as a source: each is read by the best way that is open to us.

The cursor goes by time, so it holds for every way, and it remembers what was delivered (`tally`). A log is read from
the newest event on while its pipeline is at work; when an update began or ended, when the settings changed, and once a
day the overlap is looked at again; once a day SQL also counts all months, and those that grew are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from monitoring_platform.config import PlumberProject, Settings, WorkspaceSource
from monitoring_platform.event_log.normalise import Delivered
from monitoring_platform.sources.base import Chunk, Cursor, Facts, Listing, Log, Look, SourceError
from monitoring_platform.sources.delta import DeltaLogs
from monitoring_platform.sources.diagnosis import Diagnosis
from monitoring_platform.sources.workspace import paths, remedies
from monitoring_platform.sources.workspace.client import NoSql, Workspace
from monitoring_platform.sources.workspace.discovery import discover
from monitoring_platform.sources.workspace.examine import examine
from monitoring_platform.sources.workspace.filters import Filter
from monitoring_platform.sources.workspace.paths import Ask, Batch, Span, Spot, SqlLog
from monitoring_platform.sources.workspace.tally import HOUR, MONTH, Stamps, Tally

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
        found, rest = discover(workspace, self.pipelines_table, known, failing, look)
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

    def examine(self, now: datetime) -> Iterator[Diagnosis]:
        """What the workspace lets us do, for `doctor`."""
        return examine(self.workspace, self.access, self.system_tables, now)

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
        raise worst(refused, _facts(log))

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
                return _advance(log, cursor, path, self.overlap_hours, fetch, None, limit)
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
        return _advance(log, cursor, path, self.overlap_hours, fetch, partial(place.months, ask), limit)

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
        raise SourceError(
            "its event log is not published",
            "publish it: add this to the pipeline's settings; then grant SELECT on the table, or on a view over it",
            "log_not_published",
            remedy_sql=remedies.publish(facts.get("name"), pipeline_id),
        )

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
        is_denied = error.state == "no_grant"
        if path == "table":
            table = self._table_of(_pipeline(log), _facts(log))
            name = remedies.qualified(table)
            if is_denied:
                return SourceError(
                    f"its published log {name} may not be read: {error.reason}",
                    "run these statements as an owner of the table; or put a view over it, grant on that, and name the "
                    f"view under tables of source {self.name}",
                    "no_grant",
                    remedy_sql=remedies.grant_select(table, self._principal),
                )
            if error.state == "log_not_published":
                return SourceError(
                    f"its log should be in {name}, which does not exist: {error.reason}",
                    "run an update, which makes the table; check the name if it ran",
                    error.state,
                )
        if path == "function":
            if is_denied:
                return SourceError(
                    f"event_log() is for the owner of the pipeline only: {error.reason}",
                    "publish the log (add this to the pipeline's settings, then grant SELECT on the table), or sign in "
                    "as the owner. A permission on the pipeline or a view over the function does not help",
                    "not_owner",
                    remedy_sql=remedies.publish(_facts(log).get("name"), _pipeline(log)),
                )
            if "EVENT_LOG_" in error.reason:
                return SourceError(f"event_log() has nothing: {error.reason}", "publish the log", "log_not_published")
        if path == "system_table" and is_denied:
            events = remedies.parts_of(self.pipeline_events)
            return SourceError(
                f"the system table may not be read: {error.reason}",
                "run these statements as an account admin who is a metastore admin",
                "no_grant",
                remedy_sql=remedies.grant_select(events, self._principal),
            )
        if path == "api" and is_denied:
            why, when = "its events may not be read", ""
            if _facts(log).get("hidden"):  # the service says the same of what it never had
                why, when = "it was deleted, or shown to us no longer", ", if it is still there"
            return SourceError(
                f"{why}: {error.reason}",
                f"give {self._principal} the permission CAN VIEW on the pipeline{when}",
                "no_grant",
                remedy_sql=remedies.view_permission(self._principal),
            )
        return error

    @property
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


def worst(refused: Mapping[str, SourceError], facts: Facts) -> SourceError:
    """The refusal whose remedy helps most: of the published log if there is one, else of the way that would be open.

    A pipeline that publishes in the legacy mode (`target`) is read by its owner through event_log(); any other has to
    publish its log.
    """
    spec = facts.get("spec") or {}
    is_legacy = "schema" not in spec and bool(spec.get("catalog"))

    def rank(entry: tuple[str, SourceError]) -> int:
        path, error = entry
        tests = (
            error.state == "deleted",
            path == "api" and error.state == "no_grant" and bool(facts.get("hidden")),
            path == "table" and error.state == "no_grant",
            path == "function" and error.state == "not_owner" and is_legacy,
            path == "table" and error.state == "log_not_published",
            error.state != "unreadable",
        )
        return tests.index(True) if True in tests else len(tests)

    path, chosen = min(refused.items(), key=rank)
    others = ", ".join(f"{other} {error.state}" for other, error in refused.items() if other != path)
    reason = f"{chosen.reason} (also tried: {others})" if others else chosen.reason
    return SourceError(reason, chosen.remedy, chosen.state, remedy_sql=chosen.remedy_sql)


def _advance(
    log: Log,
    cursor: Cursor | None,
    path: str,
    overlap_hours: float,
    fetch: Callable[[Span, Spot | None, int], Batch],
    months: Callable[[], dict[int, int]] | None,
    limit: int,
) -> Chunk:
    """One chunk of a log that is read by time, and the cursor after it."""
    facts, before = _facts(log), cursor or {}
    tally, day, overlap = Tally(before.get("tally")), facts["day"], int(overlap_hours * HOUR)
    high = _spot(before.get("high"))
    counted = before.get("counted")
    spans = before.get("spans")
    if not spans:
        spans = _plan(before, facts["position"], path, high, overlap)
        if months is not None and counted != day:
            if high is not None:
                spans = [*_grown(tally, months()), *spans]
            counted = day
    kind, since, until = spans[0]
    spot = _spot(before.get("at"))
    if kind == "month" and spot is None:
        tally.forget(since // MONTH)
    if kind == "new" and spot is None:
        spot = high
    batch = fetch(Span(since, until), spot, limit)
    if kind == "new":
        tally.add(batch.stamps)
        kept = [True] * len(batch.stamps)
    else:
        kept = tally.again(batch.stamps, batch.is_end)
    high = _highest(batch.stamps, high, day)
    if high is not None:
        tally.prune(_window(high, overlap))
    spans = spans[1:] if batch.is_end else spans
    spot = None if batch.is_end else _last(batch.stamps, spot)
    return Chunk(
        batch.chosen(kept),
        {
            "position": None if spans else facts["position"],
            "tally": tally.stored(),
            "counted": counted,
            "high": _stored(high),
            "spans": spans,
            "at": _stored(spot),
        },
        more=bool(spans),
    )


def _plan(before: Cursor, position: Any, path: str, high: Spot | None, overlap: int) -> list[list[Any]]:
    """The stretches to read: all of it, what came after the newest event, or the overlap again."""
    if high is None:
        return [["all", None, None]]
    done = before.get("position")
    if done and done[0] == position[0] and before.get("path") == path:
        return [["new", None, None]]
    return [["again", _window(high, overlap), None]]


def _grown(tally: Tally, months: Mapping[int, int]) -> list[list[Any]]:
    """Months that have more events than were delivered; of those that have fewer, that many count from now on."""
    grown = []
    for month, events in sorted(months.items()):
        if events > tally.months.get(month, 0):
            grown.append(["month", month * MONTH, (month + 1) * MONTH])
        else:
            tally.months[month] = events
    return grown


def _window(high: Spot, overlap: int) -> int:
    """Where the overlap begins: at a full hour, so that hours can be compared."""
    return (high.micros - overlap) // HOUR * HOUR


def _highest(rows: Stamps, high: Spot | None, day: str) -> Spot | None:
    """The newest event so far; those dated in the future do not count."""
    future = datetime.combine(date.fromisoformat(day) + timedelta(days=2), datetime.min.time(), timezone.utc)
    limit = int(future.timestamp()) * 1_000_000
    return _last([(micros, id_) for micros, id_ in rows if micros is not None and micros < limit], high)


def _last(rows: Stamps, spot: Spot | None) -> Spot | None:
    """The spot after these rows. Rows without a time come first and leave it where the epoch begins."""
    timed = [(micros, id_ or "") for micros, id_ in rows if micros is not None]
    if not timed:
        return spot or (Spot(0, "") if rows else None)
    micros, id_ = timed[-1]
    if spot is not None and micros < spot.micros:
        return spot
    ids = {other for time, other in timed if time == micros}
    return Spot(micros, id_, frozenset(ids | spot.ids if spot and spot.micros == micros else ids))


def _spot(stored: list[Any] | None) -> Spot | None:
    return Spot(stored[0], stored[1], frozenset(stored[2])) if stored else None


def _stored(spot: Spot | None) -> list[Any] | None:
    return [spot.micros, spot.id, sorted(spot.ids)] if spot else None


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
