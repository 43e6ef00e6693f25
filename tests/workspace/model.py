"""What a workspace consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from tests.workspace import shapes
from tests.workspace.refusal import SqlError
from tests.workspace.shapes import Json

if TYPE_CHECKING:
    from tests.workspace.world import Workspace

LEVELS = ("CAN_VIEW", "CAN_RUN", "CAN_MANAGE", "IS_OWNER")
TERMINAL = ("COMPLETED", "FAILED", "CANCELED")


@dataclass(frozen=True)
class Principal:
    """A user (with a personal access token) or a service principal (with a client secret)."""

    name: str
    token: str | None = None
    client_id: str | None = None
    client_secret: str | None = None
    is_admin: bool = False


@dataclass
class Update:
    """An update as the service's own records have it, whether or not the log has it."""

    update_id: str
    created: datetime
    state: str
    ended: datetime | None = None
    cause: str = "API_CALL"
    request_id: str | None = None
    full_refresh: bool = False
    validate_only: bool = False
    job_task: tuple[str, str] | None = None  # job_id, id of the task's run


@dataclass
class Relation:
    """A table or view of the catalog. A view is computed with its owner's rights."""

    name: str  # catalog.schema.name
    owner: str
    rows: Callable[[], pa.Table]
    definition: str | None = None
    is_hidden: bool = False  # the log of a pipeline that does not publish it

    @property
    def parts(self) -> tuple[str, str, str]:
        catalog, schema, name = self.name.split(".", 2)
        return catalog, schema, name


@dataclass
class Pipeline:
    """A pipeline with its settings, who may do what with it, and the one history of its events."""

    workspace: Workspace
    id: str
    name: str
    owner: str
    run_as: str
    spec: Json
    events: list[Json] = field(default_factory=list)
    declared: dict[str, Update] = field(default_factory=dict)
    permissions: dict[str, str] = field(default_factory=dict)
    state: str = "IDLE"
    health: str = "HEALTHY"
    cluster_id: str | None = None
    created: datetime = datetime(2025, 1, 1, tzinfo=timezone.utc)
    last_modified: datetime = datetime(2025, 1, 1, tzinfo=timezone.utc)
    deleted: datetime | None = None
    truncated: dict[str, list[str]] = field(default_factory=dict)  # event id -> fields that REST cuts
    job_tasks: dict[str, tuple[str, str]] = field(default_factory=dict)  # update id -> job and task that started it
    stored_at: dict[str, Path] = field(default_factory=dict)  # path as the service has it -> folder
    while_reading: Callable[[], None] | None = None  # called after each page of events
    trouble: int | None = None  # HTTP status with which its events are answered, such as 429 or 500
    damage: SqlError | None = None  # with what reading its table fails
    _tables: dict[Path, int] = field(default_factory=dict)
    _read: tuple[int, pa.Table] | None = None
    _updates: list[Update] | None = None

    # What it is

    @property
    def is_legacy(self) -> bool:
        """Published in the legacy mode (`target`): `event_log()` works, there is no hidden table."""
        return "schema" not in self.spec

    @property
    def schema(self) -> str | None:
        """Where its tables are, inside the catalog."""
        return self.spec.get("schema") or self.spec.get("target")

    @property
    def published_name(self) -> str | None:
        """Full name of the published event log table; what its setting leaves out comes from the pipeline."""
        setting = self.spec.get("event_log")
        if setting is None:
            return None
        return ".".join(
            str(part)
            for part in (
                setting.get("catalog") or self.spec["catalog"],
                setting.get("schema") or self.schema,
                setting["name"],
            )
        )

    @property
    def hidden_name(self) -> str | None:
        """Full name of the table that the log is in when it is not published."""
        if self.is_legacy or self.spec.get("event_log") or not self.spec.get("catalog"):
            return None
        return f"{self.spec['catalog']}.{self.schema}.event_log_{self.id.replace('-', '_')}"

    @property
    def updates(self) -> list[Update]:
        """What the service knows of its updates, newest first: those of the log and those declared."""
        if self._updates is None:
            self._updates = self._known_updates()
        return self._updates

    def _known_updates(self) -> list[Update]:
        found: dict[str, Update] = {}
        for event in self.events:
            origin, at = event.get("origin") or {}, shapes.instant(event["timestamp"])
            update_id = origin.get("update_id")
            if update_id is None:
                continue
            update = found.setdefault(update_id, Update(update_id, at, "CREATED", request_id=origin.get("request_id")))
            update.created = min(update.created, at)
            details = event.get("details") or {}
            if not isinstance(details, dict):
                continue
            created, progress = details.get("create_update"), details.get("update_progress")
            if isinstance(created, dict):
                update.cause = created.get("cause") or update.cause
                update.full_refresh = bool(created.get("full_refresh"))
                update.validate_only = bool(created.get("validate_only"))
            if isinstance(progress, dict) and progress.get("state"):
                update.state = progress["state"]
                update.ended = at if update.state in TERMINAL else None
        found.update(self.declared)
        for update_id, job_task in self.job_tasks.items():
            if update_id in found:
                found[update_id].job_task = job_task
        return sorted(found.values(), key=lambda update: update.created, reverse=True)

    # How tests set it up

    def add(self, *events: Json) -> Pipeline:
        """More events, in either shape. Every place where they lie already gets them too."""
        self.events += [shapes.as_event(event) for event in events]
        for path in self._tables:
            self._write(path)
        return self._changed()

    def update(self, update_id: str, created: datetime, state: str, **more: Any) -> Pipeline:
        """An update that the service knows; the log need not have it."""
        self.declared[update_id] = Update(update_id, created, state, **more)
        return self._changed()

    def started_by(self, update_id: str, job_id: int | str, task_run_id: int | str) -> Pipeline:
        """The job task that asked for an update. The service has texts such as SQL_SCHEDULE for jobs of its own."""
        self.job_tasks[update_id] = (str(job_id), str(task_run_id))
        return self._changed()

    def _changed(self) -> Pipeline:
        self._updates = None
        self.workspace.changed()
        return self

    def grant(self, principal: Principal | str, level: str) -> Pipeline:
        """CAN_VIEW, CAN_RUN or CAN_MANAGE on the pipeline."""
        assert level in LEVELS
        self.permissions[_name(principal)] = level
        return self

    def publish(
        self, name: str, catalog: str | None = None, schema: str | None = None, to: Principal | str | None = None
    ) -> Pipeline:
        """Set `event_log`; `to` may read the table."""
        setting = {"name": name, "catalog": catalog, "schema": schema}
        self.spec["event_log"] = {key: value for key, value in setting.items() if value}
        self.modified()
        if to is not None and self.published_name:
            self.workspace.grant_table(to, self.published_name)
        return self

    def modified(self, at: datetime | None = None, **settings: Any) -> Pipeline:
        """Its settings changed: owner, run_as, name, or anything of the spec (None takes it out)."""
        for key, value in settings.items():
            if key in ("owner", "run_as", "name"):
                setattr(self, key, value)
            elif value is None:
                self.spec.pop(key, None)
            else:
                self.spec[key] = value
        self.last_modified = at or self.last_modified + timedelta(seconds=1)
        return self._changed()

    def store(self, folder: Path, written: str | None = None) -> Pipeline:
        """A storage folder with the log under system/events, as pipelines without Unity Catalog have it.

        `written`: the storage setting, by default the folder itself; "" leaves it out, the place is then the
        service's own, /pipelines/<id>.
        """
        setting = str(folder) if written is None else written
        if setting:
            self.spec["storage"] = setting
        self.stored_at[f"{setting or f'/pipelines/{self.id}'}/system/events"] = folder / "system" / "events"
        self._write(folder / "system" / "events")
        return self._changed()

    def delete(self, at: datetime = datetime(2026, 1, 1, tzinfo=timezone.utc)) -> Pipeline:
        """The pipeline is gone; system tables remember it."""
        self.deleted = at
        return self._changed()

    def truncate(self, event_id: str, *fields: str) -> Pipeline:
        """REST leaves out these fields of an event."""
        self.truncated[event_id] = list(fields)
        return self

    # What it gives

    def table(self) -> pa.Table:
        """The log as a table, read from a real Delta table."""
        if self.damage:
            raise self.damage
        path = self.workspace.folder / "tables" / self.id
        with self.workspace.lock:
            self._write(path)
            if self._read is None or self._read[0] != len(self.events):
                self._read = len(self.events), DeltaTable(path).to_pyarrow_table()
            return self._read[1]

    def _write(self, path: Path) -> None:
        done = self._tables.get(path, 0)
        if done < len(self.events) or path not in self._tables:
            write_deltalake(path, shapes.table(self.events[done:]), mode="append")
            self._tables[path] = len(self.events)

    def may(self, principal: Principal, level: str) -> bool:
        """Whether somebody has this permission level or a higher one."""
        if principal.is_admin or principal.name == self.owner:
            return True
        granted = self.permissions.get(principal.name)
        return granted is not None and LEVELS.index(granted) >= LEVELS.index(level)


@dataclass
class JobRun:
    """A run of a job with its pipeline tasks."""

    run_id: int
    start: datetime
    end: datetime | None
    result: str | None
    tasks: list[Json]
    trigger: str = "PERIODIC"
    number: int = 1


@dataclass
class Job:
    """A job and its runs."""

    job_id: int
    name: str
    creator: str
    tags: dict[str, str] = field(default_factory=dict)
    runs: list[JobRun] = field(default_factory=list)
    viewers: set[str] | None = None  # None: everybody

    def run(
        self,
        run_id: int,
        start: datetime,
        end: datetime | None,
        pipelines: Iterable[str] = (),
        result: str | None = "SUCCESS",
        trigger: str = "PERIODIC",
    ) -> JobRun:
        """A run whose tasks refresh these pipelines; the task's own run id is the run's plus 1, 2, …"""
        tasks = [
            {"run_id": run_id + number, "task_key": f"refresh_{number}", "pipeline_id": pipeline_id}
            for number, pipeline_id in enumerate(pipelines, 1)
        ]
        made = JobRun(run_id, start, end, result if end else None, tasks, trigger, len(self.runs) + 1)
        self.runs.append(made)
        return made


@dataclass
class Warehouse:
    """A SQL warehouse.

    `seconds`: how long a statement takes. `chunk_rows`: how many rows are in one chunk of a result. `complex_types`:
    structs, arrays and maps arrive as JSON text, as Databricks sends them to clients of this API, or as Arrow types.
    """

    id: str
    name: str
    users: set[str]
    state: str = "RUNNING"
    seconds: float = 0.0
    chunk_rows: int = 100_000
    complex_types: str = "json"
    link_seconds: float = 900.0
    statements: list[str] = field(default_factory=list)


def hours(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The slices of a time by full hours, as the timelines of the system tables have them."""
    while start < end:
        stop = min(end, start.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1))
        yield start, stop
        start = stop


def _name(principal: Principal | str) -> str:
    return principal if isinstance(principal, str) else principal.name
