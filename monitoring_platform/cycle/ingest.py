"""Ingest: what is new in the logs of a set of pipelines, normalised and appended to landing in bounded batches.

For each batch, in this order: landing (one commit), quarantine, the ledger, the cursors. A kill in between only makes
the next run read again; landing may then hold rows twice, the union never does.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.config import Settings
from monitoring_platform.cycle import ledger, quarantine
from monitoring_platform.cycle.ahead import begun
from monitoring_platform.cycle.ledger import SOURCE
from monitoring_platform.cycle.reading import chunk_limit, normalised, packed, policy_of, read_chunk, unpacked, warm_up
from monitoring_platform.event_log.normalise import Normalised
from monitoring_platform.event_log.redact import Policy, redact_text, redact_value
from monitoring_platform.event_log.schema import EVENT, QUARANTINE
from monitoring_platform.sources import Chunk, Cursor, Log, Look, NeedsEngine, Source, SourceError, configured
from monitoring_platform.sources.base import GIVE_UP_AFTER, INTERRUPTED
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.session import inside_databricks
from monitoring_platform.warehouse.store import Warehouse

Row = dict[str, Any]
_MANY_LOGS = 8
_FIRST_RETRY, _LAST_RETRY = timedelta(minutes=1), timedelta(hours=6)
_FAILURES = frozenset({"unreadable", "rate_limited"})
_FINE: Row = dict.fromkeys(("error", "coverage", "remedy", "remedy_sql", "next_retry_at"), None) | {
    "consecutive_failures": 0
}


@dataclass
class Ingested:
    """What one ingest did. Counts are of rows read in this run, before the union drops repeats."""

    logs: int = 0  # logs that had something to read, failed ones included
    events: dict[str, int] = field(default_factory=dict)  # rows read by pipeline_id
    quarantined: int = 0  # rows new in quarantine
    succeeded: list[str] = field(default_factory=list)  # pipelines read, by name
    failed: dict[str, str] = field(default_factory=dict)  # log location -> reason
    closed: dict[str, str] = field(default_factory=dict)  # log location -> why nobody may read it yet
    new_pipelines: list[str] = field(default_factory=list)
    empty_sources: list[str] = field(default_factory=list)  # sources that match nothing


@dataclass
class Found:
    """What discovery found: the rows of `source_logs`, and the logs that can be read now with their sources."""

    rows: dict[str, Row]
    readable: list[tuple[Source, Log]]
    failed: dict[str, str]
    empty_sources: list[str]
    news: list[Any] = field(default_factory=list)  # what is there to read, as a fingerprint
    rest: dict[str, Any] = field(default_factory=dict)  # source -> where to go on with a listing that had no more time


def selection_of(settings: Settings) -> str:
    """Fingerprint of include and exclude: when it changes, logs are read again for what was left out."""
    chosen = repr((settings.pipelines.include, settings.pipelines.exclude))
    return hashlib.sha256(chosen.encode()).hexdigest()[:12]


def discover(
    warehouse: Warehouse,
    now: datetime,
    *,
    force: bool = True,
    deadline: float | None = None,
    resume: Mapping[str, Any] | None = None,
) -> Found:
    """Every log that the sources know and what it has to offer; nothing is read or written, no engine is started.

    With a deadline (of `time.monotonic`) sources do not ask for more than their listing, see `sources.base.Look`. What
    there was no time for is in `rest`, and comes first when that is given as `resume`.
    """
    settings = warehouse.settings
    rows = {row["location"]: row for row in warehouse.arrow(contracts.LOGS).to_pylist()}
    found = Found(rows, [], {}, [])
    listed: set[str] = set()
    resume = resume or {}
    for source in sorted(configured(settings), key=lambda source: source.name not in resume):
        if deadline is not None and time.monotonic() >= deadline:
            found.rest[source.name] = resume.get(source.name)
            continue
        mine = [row for row in rows.values() if row["source"] == source.name and row["state"] != "gone"]
        look = Look(
            now,
            {row["location"]: orjson.loads(row["facts"]) for row in mine if row["facts"]},
            {row["location"] for row in mine if row["error"] and _is_due(row, now, force)},
            deadline,
            resume.get(source.name),
        )
        try:
            listing = source.listing(look)
        except SourceError as error:
            listed |= _cannot_list(source, mine, error, found, now)
            continue
        if listing.rest is not None:
            found.rest[source.name] = listing.rest
        elif not listing.logs:
            found.empty_sources.append(source.name)
        for log in listing.logs:
            if log.location not in listed:
                listed.add(log.location)
                _consider(source, log, found, settings, now, force)
    if deadline is None:
        for location in rows.keys() - listed:
            rows[location]["state"] = "gone"
    return found


def _cannot_list(source: Source, rows: list[Row], error: SourceError, found: Found, now: datetime) -> set[str]:
    """Note that a source does not tell its logs: what is known of them stays. Returns their locations."""
    row = found.rows.setdefault(source.name, _new_row(Log(source.name, source.name, SOURCE)))
    row["source"] = source.name
    fail(row, error, now)
    found.failed[source.name] = row["error"]
    for other in rows:
        if other is not row:
            other.update(_trouble(error), state="unreachable")
    return {source.name, *(other["location"] for other in rows)}


def _consider(source: Source, log: Log, found: Found, settings: Settings, now: datetime, force: bool) -> None:
    """Bring the row of a listed log up to date and note whether there is something to read."""
    row = found.rows.setdefault(log.location, _new_row(log))
    row["source"] = log.source
    if log.facts is not None:
        kept = {name: value for name, value in log.facts.items() if name != "position"}
        row["facts"] = orjson.dumps(redact_value(kept, policy_of(settings)), option=orjson.OPT_SORT_KEYS).decode()
    problem = log.problem or _excluded(log, settings)
    if problem is not None:
        row.update(_trouble(problem), state="excluded" if problem.state == "excluded" else "unreadable")
        if is_failure(problem):
            found.failed[log.location] = row["error"]
        return
    if row["state"] in ("unreachable", "excluded"):
        row.update(_FINE)
    row["state"] = "unreadable" if row["error"] else "readable"
    if row["error"] and not _is_due(row, now, force):
        if row["coverage"] in _FAILURES:
            found.failed[log.location] = row["error"]
        return
    try:
        position, cursor = source.position(log), _cursor(row, settings)
        if row["error"] or cursor is None or cursor["position"] != position:
            found.readable.append((source, log))
            found.news.append([log.location, position, row["consecutive_failures"]])
    except SourceError as error:
        fail(row, error, now)
        found.failed[log.location] = row["error"]


def _is_due(row: Row, now: datetime, force: bool) -> bool:
    """Whether a log that failed is tried again now."""
    return force or not row["next_retry_at"] or now >= row["next_retry_at"]


def _excluded(log: Log, settings: Settings) -> SourceError | None:
    """Why the log of a pipeline that the configuration leaves out is not read."""
    if log.facts is None or log.pipeline_id is None or settings.is_included(log.pipeline_id, log.facts.get("name")):
        return None
    return SourceError("excluded by configuration", ledger.INCLUDE_AGAIN, "excluded")


def ingest(
    warehouse: Warehouse,
    now: datetime,
    *,
    pipeline_ids: list[str] | None = None,
    force: bool = True,
    progress: Callable[[str], None] = lambda text: None,
) -> Ingested:
    """Read what is new (of these pipelines only, if given) and land it. Failed logs are named, the others finish."""
    settings = warehouse.settings
    warehouse.create(contracts.BOOKS)
    previous = {row["pipeline_id"]: row for row in warehouse.arrow(contracts.PIPELINES).to_pylist()}
    found = discover(warehouse, now, force=force)
    chosen = [pair for pair in found.readable if _wanted(pair, found.rows, pipeline_ids, settings)]
    report = Ingested(logs=len(chosen) + len(found.failed), failed=found.failed, empty_sources=found.empty_sources)
    seen: dict[str, list[Row]] = {}
    if chosen:  # the engine starts while the logs are read
        threading.Thread(target=lambda: warehouse.spark, daemon=True).start()
    batch = _Batch(warehouse, now)
    for log, outcome in _read_all(chosen, found.rows, warehouse, now):
        row = found.rows[log.location]
        if isinstance(outcome, SourceError):
            fail(row, outcome, now)
            (report.failed if is_failure(outcome) else report.closed)[log.location] = row["error"]
            progress(f"cannot read {log.location}: {row['error']}")
            continue
        normalised, chunk = outcome
        events = _included(normalised.events, settings)
        for pipeline_id, facts in ledger.observe(normalised.events, now).items():
            seen.setdefault(pipeline_id, []).append(facts)
        _read_ok(row, log, chunk, normalised.events, settings, now)
        batch.add(log, events, normalised.quarantine)
        for entry in pc.value_counts(events["pipeline_id"]).to_pylist():
            report.events[entry["values"]] = report.events.get(entry["values"], 0) + entry["counts"]
        if batch.rows >= settings.ingest.batch_events:
            report.quarantined += batch.land()
            _keep_books(warehouse, previous, found.rows, seen, now)
            progress(f"{sum(report.events.values()):,} events read")
    report.quarantined += batch.land()
    rows = _keep_books(warehouse, previous, found.rows, seen, now)
    report.new_pipelines = sorted(
        r["pipeline_id"] for r in rows if r["pipeline_id"] not in previous and r["has_updates"]
    )
    names = {row["pipeline_id"]: row["pipeline_name"] or row["pipeline_id"] for row in rows}
    report.succeeded = sorted(names[pipeline_id] for pipeline_id in report.events)
    return report


def _new_row(log: Log) -> Row:
    row: Row = dict.fromkeys(contracts.LOGS.schema.names)
    row.update(location=log.location, pipeline_ids=[], consecutive_failures=0)
    if log.pipeline_id:
        row["pipeline_ids"] = [log.pipeline_id]
    return row


def _cursor(row: Row, settings: Settings) -> Cursor | None:
    if row["cursor"] is None or row["selection"] != _selection(row, settings):
        return None
    return dict(orjson.loads(row["cursor"]))


def _selection(row: Row, settings: Settings) -> str:
    """What decides which rows of a log are taken: all of one pipeline's, else those that are included."""
    return selection_of(settings) if row["facts"] is None else "all"


def _wanted(pair: tuple[Source, Log], rows: dict[str, Row], pipeline_ids: list[str] | None, settings: Settings) -> bool:
    """Whether a log with news may hold events of the selected pipelines."""
    source, log = pair
    row = rows[log.location]
    if pipeline_ids is None:
        return True
    if log.facts is not None:
        return log.pipeline_id in pipeline_ids
    if row["error"]:
        return True
    known = set(row["pipeline_ids"])
    if not known.intersection(pipeline_ids):
        try:
            known |= source.pipelines(log, _cursor(row, settings))
        except SourceError:
            return True  # reading it reports what is wrong
    return not known or bool(known.intersection(pipeline_ids))


def _read_ok(row: Row, log: Log, chunk: Chunk, events: pa.Table, settings: Settings, now: datetime) -> None:
    found = {*(row["pipeline_ids"] or ()), *pc.unique(events["pipeline_id"]).to_pylist()}
    row.update(
        _FINE,
        kind=chunk.kind or log.kind,
        pipeline_ids=sorted(found),
        cursor=orjson.dumps(chunk.cursor).decode(),
        selection=_selection(row, settings),
        state="readable",
        last_read_at=now,
    )


def is_failure(error: SourceError) -> bool:
    """Whether this is trouble of a run, which is to be repeated, rather than a state that somebody has to change."""
    return error.transient or error.state in _FAILURES


def fail(row: Row, error: SourceError, now: datetime) -> None:
    """Note a failed read: when to try again doubles with every failure in a row, unless somebody has to act first."""
    failures = (row["consecutive_failures"] or 0) + 1
    delay = min(_FIRST_RETRY * 2 ** min(failures - 1, 20), _LAST_RETRY) if is_failure(error) else _LAST_RETRY
    delay = max(delay, timedelta(seconds=error.wait))
    row.update(_trouble(error), state="unreadable", consecutive_failures=failures, next_retry_at=now + delay)


def _trouble(error: SourceError) -> Row:
    """An error as a row holds it."""
    return {
        "error": redact_text("".join(c for c in error.reason if c.isprintable())),
        "coverage": error.state,
        "remedy": redact_text(error.remedy),
        "remedy_sql": error.remedy_sql,
    }


def _included(events: pa.Table, settings: Settings) -> pa.Table:
    """Rows of pipelines that the configuration includes."""
    pairs = events.group_by(["pipeline_id", "pipeline_name"]).aggregate([]).to_pylist()
    left_out = {p["pipeline_id"] for p in pairs if not settings.is_included(p["pipeline_id"], p["pipeline_name"])}
    if not left_out:
        return events
    return events.filter(pc.invert(pc.is_in(events["pipeline_id"], pa.array(sorted(left_out)))))


def _keep_books(
    warehouse: Warehouse, previous: dict[str, Row], logs: dict[str, Row], seen: dict[str, list[Row]], now: datetime
) -> list[Row]:
    """Write the ledger, then the cursors."""
    rows = ledger.rows(previous, logs.values(), seen, warehouse.settings, now)
    warehouse.replace_rows(contracts.PIPELINES, pa.Table.from_pylist(rows, contracts.PIPELINES.schema))
    ordered = [logs[location] for location in sorted(logs)]
    warehouse.replace_rows(contracts.LOGS, pa.Table.from_pylist(ordered, contracts.LOGS.schema))
    return rows


# ---- reading ----

Outcome = tuple[Normalised, Chunk] | SourceError


def _read_all(
    chosen: list[tuple[Source, Log]], rows: dict[str, Row], warehouse: Warehouse, now: datetime
) -> Iterator[tuple[Log, Outcome]]:
    """Chunks of all logs as they come, at most `max_concurrent_streams` reads at once, each log in its own order."""
    settings = warehouse.settings
    streams, policy, limit = settings.ingest.max_concurrent_streams, policy_of(settings), chunk_limit(settings)
    ahead = begun(settings)
    waiting = [(source, log, _cursor(rows[log.location], settings)) for source, log in reversed(chosen)]
    running: dict[Future[Any], tuple[Source, Log, Cursor | None]] = {}
    unread = sum(cursor is None and log.facts is None for _, log, cursor in waiting)
    patience = _Patience()
    INTERRUPTED.clear()
    with ExitStack() as stack:
        readers = stack.enter_context(ahead.pool if ahead else _readers(unread, streams))
        waiters = stack.enter_context(ThreadPoolExecutor(streams, "wait"))  # a workspace is waited for, not computed
        engine = stack.enter_context(ThreadPoolExecutor(_engine_reads(settings), "engine"))
        stack.push(lambda kind, *_: INTERRUPTED.set() if kind else None)
        # Processes have their next logs at hand, so that they go on while what they read is landed here.
        most = 2 * streams if isinstance(readers, ProcessPoolExecutor) else streams
        while waiting or running:
            while waiting and len(running) < most:
                source, log, cursor = waiting.pop()
                if tired := patience.lost_with(source):
                    yield log, tired
                    continue
                begun_read = ahead.take(log) if ahead and cursor is None else None
                pool = readers if log.facts is None else waiters
                read: Callable[..., Any] = packed if isinstance(pool, ProcessPoolExecutor) else read_chunk
                future = begun_read or pool.submit(read, source, log, cursor, limit, policy, now)
                running[future] = (source, log, cursor)
            done, _ = wait(running, return_when=FIRST_COMPLETED) if running else ((), None)
            for future in done:
                source, log, cursor = task = running.pop(future)
                outcome = _outcome(future)
                if outcome is None:
                    running[engine.submit(_with_engine, *task, limit, policy, now, warehouse)] = task
                    continue
                patience.note(source, outcome)
                if not isinstance(outcome, SourceError) and outcome[1].more:
                    waiting.append((source, log, outcome[1].cursor))
                yield log, outcome


class _Patience:
    """A source that fails again and again for a passing reason is left alone until the next run."""

    def __init__(self) -> None:
        self._in_a_row: Counter[str] = Counter()
        self._last: dict[str, SourceError] = {}

    def note(self, source: Source, outcome: Outcome) -> None:
        if isinstance(outcome, SourceError) and outcome.transient:
            self._in_a_row[source.name] += 1
            self._last[source.name] = outcome
        else:
            self._in_a_row[source.name] = 0

    def lost_with(self, source: Source) -> SourceError | None:
        """Why a log of this source is not even tried."""
        if self._in_a_row[source.name] < GIVE_UP_AFTER:
            return None
        last = self._last[source.name]
        reason = f"not tried: {GIVE_UP_AFTER} reads in a row failed, the last one because {last.reason}"
        return SourceError(reason, last.remedy, last.state, transient=True, wait=last.wait)


def _readers(unread: int, streams: int) -> Executor:
    """Threads; processes where many logs were never read, because then parsing is most of the work.

    A task of Databricks runs in an interpreter that is not ours to start again in other processes.
    """
    workers = min(streams, os.cpu_count() or 1)
    if unread >= _MANY_LOGS and workers > 1 and not inside_databricks():
        warm_up()
        return ProcessPoolExecutor(workers, multiprocessing.get_context("forkserver"))
    return ThreadPoolExecutor(streams, "read")


def _engine_reads(settings: Settings) -> int:
    """How many logs the engine reads at a time: the embedded one is in this process and has its memory."""
    return 1 if settings.engine.name == "embedded" else 4


def _outcome(future: Future[Any]) -> Outcome | None:
    """What a read came to; None if it needs the engine."""
    try:
        result: Any = future.result()
        return unpacked(result) if isinstance(result, tuple) and isinstance(result[0], list) else result
    except NeedsEngine:
        return None
    except SourceError as error:
        return error
    except BrokenExecutor:
        raise
    except Exception as error:  # one log's surprise must not stop the others
        return SourceError(f"{type(error).__name__}: {error}", "this looks like a bug: please report it")


def _with_engine(
    source: Source, log: Log, cursor: Cursor | None, limit: int, policy: Policy, now: datetime, warehouse: Warehouse
) -> Outcome:
    try:
        return normalised(source.read(log, cursor, limit, lambda: warehouse.spark), log, policy, now)
    except SourceError as error:
        return error
    except Exception as error:
        reason = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        return SourceError(f"{type(error).__name__}: {reason}", f"check that the engine can read {log.location}")


class _Batch:
    """Rows waiting for one landing commit."""

    def __init__(self, warehouse: Warehouse, now: datetime) -> None:
        self.warehouse, self.now = warehouse, now
        self._clear()

    def _clear(self) -> None:
        self.rows = 0
        self.events: list[pa.Table] = []
        self.quarantine: list[pa.Table] = []
        self.logs: set[str] = set()

    def add(self, log: Log, events: pa.Table, rejected: pa.Table) -> None:
        self.rows += events.num_rows + rejected.num_rows
        self.events.append(events)
        self.quarantine.append(rejected)
        self.logs.add(log.location)

    def land(self) -> int:
        """Commit the batch; returns how many rows are new in quarantine."""
        events = pa.concat_tables(self.events) if self.events else EVENT.empty_table()
        rejected = pa.concat_tables(self.quarantine) if self.quarantine else QUARANTINE.empty_table()
        if events.num_rows:
            rows = events.append_column("_ingest_id", pa.repeat(pa.scalar(uuid.uuid4().hex), events.num_rows))
            rows = rows.append_column("_row", pa.array(range(events.num_rows), pa.int64()))
            self.warehouse.append_rows(contracts.LANDING, rows)
        added = quarantine.keep(self.warehouse, rejected, sorted(self.logs))
        self._clear()
        return added
