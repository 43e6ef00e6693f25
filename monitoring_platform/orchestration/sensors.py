"""`pipeline_updates`: finds pipelines with new events, starting no engine, and asks for one run for all of them.

What is to be read is told by the logs and their cursors, not by this sensor's memory: a run that failed leaves its work
to the next request. The sensor only remembers what it asked for last, so that the same work is not asked for at every
tick: a repeat waits twice as long each time and has a run key of its own (run keys deduplicate for ever). It also
remembers where the listing of a large or slow workspace goes on: a tick has a budget of time, Dagster ends it at 60 s.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from datetime import datetime, timedelta
from typing import Any, TypeVar

import dagster as dg
import orjson

from monitoring_platform.cycle.clock import clock
from monitoring_platform.cycle.ingest import Found, discover
from monitoring_platform.orchestration.jobs import REFRESH
from monitoring_platform.orchestration.partitions import PIPELINES
from monitoring_platform.orchestration.resources import Platform
from monitoring_platform.sources import SourceError

_FIRST_REPEAT, _LAST_REPEAT = timedelta(minutes=1), timedelta(hours=1)
_BUDGET_SECONDS = 15.0  # for the listing, which resumes where it stopped
_PATIENCE_SECONDS = 35.0  # for a call that hangs, such as a login, whose own limits are minutes
_ALIVE = timedelta(minutes=15)
_Found = TypeVar("_Found")
_ACTIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def fingerprint(news: list[Any]) -> str:
    """Identity of a piece of work: which logs end where."""
    return hashlib.sha256(orjson.dumps(sorted(news, key=lambda entry: str(entry[0])))).hexdigest()[:16]


def due(memory: dict[str, Any], work: str, now: datetime) -> int | None:
    """The number of the request for this work, or None if the last one for the same work is too recent."""
    if memory.get("work") != work:
        return 1
    attempt = int(memory["attempt"])
    wait = min(_FIRST_REPEAT * 2 ** min(attempt - 1, 20), _LAST_REPEAT)
    return attempt + 1 if now >= datetime.fromisoformat(memory["asked_at"]) + wait else None


def pipelines_with_news(found: Found, deadline: float) -> list[str]:
    """Ids of the pipelines whose logs have news: from the ledger, and a look into logs that were never read.

    The look stops at the deadline: what is not looked into is read by the run all the same, or found next time.
    """
    ids: set[str] = set()
    for source, log in found.readable:
        known = found.rows[log.location]["pipeline_ids"] or []
        ids.update(known)
        if not known and time.monotonic() < deadline:
            try:
                ids |= source.pipelines(log, None)
            except SourceError:
                continue  # the run reports it
    return sorted(ids)


def within(seconds: float, work: Callable[[], _Found]) -> _Found | None:
    """What the work gives, or None if it takes longer: then it is left to itself. Raises what it raises in time."""
    done: Future[_Found] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return done.result(seconds)
    except FutureTimeout:
        return None


def make_pipeline_updates(interval_seconds: int, running: bool) -> dg.SensorDefinition:
    """The sensor with the configured cadence."""

    @dg.sensor(
        name="pipeline_updates",
        job_name=REFRESH,
        minimum_interval_seconds=interval_seconds,
        default_status=dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED,
        description="One run for all pipelines with new events; none while a run is under way.",
    )
    def pipeline_updates(context: dg.SensorEvaluationContext, platform: Platform) -> dg.SensorResult | dg.SkipReason:
        warehouse, now = platform.warehouse(), clock(None)
        if warehouse.is_busy() or _is_running(context.instance, now):
            return dg.SkipReason("a run is under way")
        deadline = time.monotonic() + _BUDGET_SECONDS
        memory = orjson.loads(context.cursor) if context.cursor else {}
        found = within(
            _PATIENCE_SECONDS,
            lambda: discover(warehouse, now, force=False, deadline=deadline, resume=memory.get("rest")),
        )
        if found is None:
            return dg.SkipReason("a source does not answer: nothing was found out; `doctor` says which")
        memory["rest"] = found.rest
        if not found.news:
            return dg.SensorResult(skip_reason="no new events", cursor=orjson.dumps(memory).decode())
        work = fingerprint(found.news)
        attempt = due(memory, work, now)
        if attempt is None:
            reason = f"asked for this work at {memory['asked_at']} already; repeated later if it stays undone"
            return dg.SensorResult(skip_reason=reason, cursor=orjson.dumps(memory).decode())
        ids = pipelines_with_news(found, deadline)
        known = set(context.instance.get_dynamic_partitions(str(PIPELINES.name)))
        new = sorted(set(ids) - known)
        ops: dict[str, Any] = {"pipelines": {"config": {"pipeline_ids": ids or None, "force": False}}}
        if warehouse.settings.has_context:
            ops["workspace_context"] = {"config": {"force": False}}
        request = dg.RunRequest(
            run_key=f"{work}-{attempt}",
            run_config=dg.RunConfig(ops=ops),
            tags={"monitoring/pipelines": str(len(ids)), "monitoring/attempt": str(attempt)},
        )
        memory.update(work=work, attempt=attempt, asked_at=now.isoformat())
        return dg.SensorResult(
            run_requests=[request],
            dynamic_partitions_requests=[PIPELINES.build_add_request(new)] if new else [],
            cursor=orjson.dumps(memory).decode(),
        )

    return pipeline_updates


def _is_running(instance: dg.DagsterInstance, now: datetime) -> bool:
    """Whether a refresh is queued or at work. One that has been silent for long was killed and does not count."""
    records = instance.get_run_records(dg.RunsFilter(job_name=REFRESH, statuses=_ACTIVE), limit=20)
    return any(now - record.update_timestamp.astimezone(now.tzinfo) < _ALIVE for record in records)
