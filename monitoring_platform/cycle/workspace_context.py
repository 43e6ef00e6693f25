"""The context of one workspace: updates that it knows, runs of jobs, usage and prices."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from functools import partial
from typing import NamedTuple

import orjson
import pyarrow as pa

from monitoring_platform.config import WorkspaceSource
from monitoring_platform.cycle.context import Part, Reading, Row, Task
from monitoring_platform.cycle.reading import policy_of
from monitoring_platform.sources import SourceError
from monitoring_platform.sources.workspace import billing, jobs, timeline
from monitoring_platform.sources.workspace.client import Workspace
from monitoring_platform.sources.workspace.paths import Ask
from monitoring_platform.sources.workspace.timeline import Update
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.store import Warehouse

_LATE = timedelta(days=3)  # how far back they are read again, for what was published late
_FIRST_UPDATES = timedelta(days=35)
_FIRST_USAGE = timedelta(days=395)  # more than the system table keeps
_USAGE_STEP, _USAGE_STEPS = timedelta(days=7), 15
_RUNS_AGAIN = timedelta(hours=1)
_LISTED = 5  # updates that the listing of pipelines names at most
_GAPS, _PARALLEL = 100, 8  # pipelines whose updates are listed in one cycle, and at a time


def tasks(warehouse: Warehouse, entry: WorkspaceSource, now: datetime) -> list[Task]:
    """What there is to ask of a workspace: its updates always, jobs and money if they are wanted."""
    settings = warehouse.settings
    workspace = Workspace.from_settings(entry, settings.engine)
    context = _Context(warehouse, entry, workspace, partial(workspace.sql, engine=lambda: warehouse.spark), now)
    kinds = (
        ("updates", True, context.updates),
        ("job_runs", settings.jobs.enabled, context.job_runs),
        ("usage", settings.costs.enabled and not settings.costs.usage, context.usage),
        ("list_prices", settings.costs.enabled and not settings.costs.list_prices, context.list_prices),
    )
    return [Task(entry.name, kind, read) for kind, is_wanted, read in kinds if is_wanted]


class _Context(NamedTuple):
    warehouse: Warehouse
    entry: WorkspaceSource
    workspace: Workspace
    ask: Ask
    now: datetime

    # ---- updates ----

    def updates(self, reading: Reading) -> Iterator[Part]:
        """Updates that the listing of pipelines names, and those that the timeline, or else the API, has besides."""
        position, pipelines = reading.position, self._pipelines()
        seen = position.get("listed", {})
        listed = {id_: _digest(facts) for id_, facts in pipelines.items()}
        told = {id_: timeline.listed(id_, pipelines[id_]) for id_ in sorted(listed) if listed[id_] != seen.get(id_)}
        more, trouble = self._in_timeline(reading, sorted(pipelines))
        if reading.note and told:
            between, postponed, trouble = self._in_api(told, trouble)
            more += between
            told = {id_: updates for id_, updates in told.items() if id_ not in postponed}
        yield contracts.KNOWN_UPDATES, self._with_known([*(u for updates in told.values() for u in updates), *more])
        position["listed"] = {**seen, **{id_: listed[id_] for id_ in told}}
        if trouble:
            raise trouble

    def _pipelines(self) -> dict[str, Row]:
        """What the workspace said of each pipeline that is watched."""
        rows = self.warehouse.arrow(contracts.LOGS, None, {"source": [self.entry.name]}).to_pylist()
        watched = [row for row in rows if row["facts"] and row["state"] not in ("excluded", "gone")]
        return {row["pipeline_ids"][0]: orjson.loads(row["facts"]) for row in watched}

    def _is_due(self, reading: Reading, hours: float) -> bool:
        """Whether to ask: so long after the last time, at once after a failure."""
        asked_at, every = reading.position.get("asked_at"), timedelta(hours=hours)
        return reading.failed_before or asked_at is None or self.now - datetime.fromisoformat(asked_at) >= every

    def _in_timeline(self, reading: Reading, pipeline_ids: list[str]) -> tuple[list[Update], SourceError | None]:
        """What the timeline tells that is new, or a note of why it tells nothing; an error that will pass."""
        position = reading.position
        reading.note = position.get("note")
        if not pipeline_ids or not self._is_due(reading, self.entry.every.system_tables_hours):
            return [], None
        since = _time(position.get("read_at"), self.now - _FIRST_UPDATES + _LATE) - _LATE
        position["asked_at"] = self.now.isoformat()
        try:
            found = timeline.timeline(self.ask, self.entry.system_tables.update_timeline, pipeline_ids, since)
        except SourceError as error:
            position["note"] = reading.note = f"without the timeline ({error.reason}). To have it: {error.remedy}"
            return [], error if error.transient else None
        position["note"] = reading.note = None
        position["read_at"] = self.now.isoformat()
        return found, None

    def _in_api(
        self, told: dict[str, list[Update]], trouble: SourceError | None
    ) -> tuple[list[Update], set[str], SourceError | None]:
        """Updates between two listings, of pipelines that had more than a listing names.

        Those of too many pipelines are postponed: what is not kept of their listing leaves the gap for the next cycle.
        """
        wanted = pa.table({"pipeline_id": pa.array(list(told), pa.string())})
        known: dict[str, set[str]] = {id_: set() for id_ in told}
        for row in self.warehouse.stored(contracts.KNOWN_UPDATES, ["pipeline_id", "update_id"], wanted).to_pylist():
            known[row["pipeline_id"]].add(row["update_id"])
        gaps = [
            id_
            for id_, updates in told.items()
            if len(updates) >= _LISTED and known[id_].isdisjoint(update["update_id"] for update in updates)
        ]
        found: list[Update] = []
        postponed = set(gaps[_GAPS:])
        with ThreadPoolExecutor(_PARALLEL, "updates") as pool:
            answers = pool.map(lambda id_: self._of_pipeline(id_, known[id_]), gaps[:_GAPS])
            for id_, answer in zip(gaps, answers):
                if isinstance(answer, SourceError):
                    postponed.add(id_)
                    trouble = answer
                else:
                    found += answer
        return found, postponed, trouble

    def _of_pipeline(self, pipeline_id: str, known: set[str]) -> list[Update] | SourceError:
        try:
            return list(timeline.updates(self.workspace, pipeline_id, self.now - _FIRST_UPDATES, known))
        except SourceError as error:
            return error if error.transient else []  # the ledger says that the pipeline may not be looked into

    def _with_known(self, told: list[Update]) -> pa.Table:
        """Updates as they are told, each together with what was known of it."""
        table = contracts.KNOWN_UPDATES
        if not told:
            return table.schema.empty_table()
        keys = pa.Table.from_pylist(told, pa.schema([table.schema.field(key) for key in table.keys]))
        found: dict[tuple[str, str], Update] = {}
        for row in self.warehouse.stored(table, None, keys).to_pylist():
            found[row["pipeline_id"], row["update_id"]] = row
        for update in told:
            key = update["pipeline_id"], update["update_id"]
            found[key] = timeline.combined(found.get(key), update)
        new: Row = {"source": self.entry.name, "first_known_at": self.now}
        rows = [{**new, **update, "created_at": update.get("created_at") or self.now} for update in found.values()]
        return pa.Table.from_pylist(rows, table.schema)

    # ---- jobs ----

    def job_runs(self, reading: Reading) -> Iterator[Part]:
        """Runs that started since the last look, and what became of those that had not ended then."""
        if not self._is_due(reading, self.entry.every.job_runs_hours):
            return
        position, oldest = reading.position, self.now - timedelta(hours=self.warehouse.settings.jobs.lookback_hours)
        since = max(oldest, _time(position.get("until"), oldest) - _RUNS_AGAIN)
        opened = {id_: at for id_, at in position.get("open", {}).items() if datetime.fromisoformat(at) >= oldest}
        again = jobs.again(self.workspace, opened)
        yield contracts.JOB_RUNS, self._job_rows(again)
        position["open"] = _still_open({}, again)
        for runs, reached in jobs.started(self.workspace, since, self.now):
            yield contracts.JOB_RUNS, self._job_rows(runs)
            position["open"] = _still_open(position["open"], runs)
            position["until"] = max(reached, _time(position.get("until"), reached)).isoformat()
        position["asked_at"] = self.now.isoformat()

    def _job_rows(self, runs: list[Row]) -> pa.Table:
        known = jobs.jobs(self.workspace, {str(run["job_id"]) for run in runs})
        ledger = self.warehouse.arrow(contracts.PIPELINES, ["pipeline_id", "tags"]).to_pylist() if runs else []
        tags = {row["pipeline_id"]: dict(row["tags"] or ()) for row in ledger}
        policy = policy_of(self.warehouse.settings)
        rows = [row for run in runs for row in jobs.rows(run, known, tags, policy)]
        return pa.Table.from_pylist(rows, contracts.JOB_RUNS.schema)

    # ---- money ----

    def usage(self, reading: Reading) -> Iterator[Part]:
        """Usage that billing published since the last look and somewhat before, a week at a time."""
        pipelines = sorted(self._pipelines())
        if not pipelines or not self._is_due(reading, self.entry.every.system_tables_hours):
            return
        today, table = self.now.date(), self.entry.system_tables.usage
        first, begun = self._first_day(), reading.position.get("first_day")
        if begun is not None and date.fromisoformat(begun) <= first:
            first = date.fromisoformat(begun)
        else:  # also where an older log came later
            reading.position["first_day"] = first.isoformat()
            reading.position.pop("read_to", None)
            reading.complete_to = None
        billed_in = billing.workspaces(self.ask, table, pipelines, first)
        if not billed_in:
            reading.position["asked_at"], reading.complete_to = self.now.isoformat(), self.now
            return
        read_to = reading.position.get("read_to")
        since = date.fromisoformat(read_to) - _LATE if read_to else first
        last = since + _USAGE_STEP * _USAGE_STEPS  # more history comes with the next cycle
        while since <= today and since < last:
            until = since + _USAGE_STEP
            yield contracts.BILLING_USAGE, billing.usage(self.ask, table, billed_in, since, until)
            reading.position["read_to"] = min(until, today).isoformat()
            since = until
        if since > today:
            reading.position["asked_at"], reading.complete_to = self.now.isoformat(), self.now

    def _first_day(self) -> date:
        """Day of the oldest event of this source: what came before has no updates here."""
        times = self.warehouse.arrow(contracts.PIPELINES, ["first_event_ts"], {"source": [self.entry.name]})
        known = [time for time in times["first_event_ts"].to_pylist() if time]
        return max(min(known, default=self.now), self.now - _FIRST_USAGE).date()

    def list_prices(self, reading: Reading) -> Iterator[Part]:
        """All prices: those of the past may get an end."""
        if self._is_due(reading, self.entry.every.system_tables_hours):
            yield contracts.LIST_PRICES, billing.list_prices(self.ask, self.entry.system_tables.list_prices)
            reading.position["asked_at"] = self.now.isoformat()


def _digest(facts: Row) -> str:
    """Changes with the latest updates and their states."""
    told = [[update["update_id"], update["state"]] for update in facts.get("updates") or ()]
    return hashlib.sha256(orjson.dumps(told)).hexdigest()[:12]


def _still_open(before: dict[str, str], runs: list[Row]) -> dict[str, str]:
    """Runs that have not ended, with their start: those from before that are not among `runs`, and those of `runs`."""
    named = {str(run["run_id"]) for run in runs}
    opened = {id_: at for id_, at in before.items() if id_ not in named}
    return opened | {
        str(run["run_id"]): start.isoformat() for run in runs if jobs.is_open(run) and (start := jobs.start(run))
    }


def _time(text: str | None, otherwise: datetime) -> datetime:
    return datetime.fromisoformat(text) if text else otherwise
