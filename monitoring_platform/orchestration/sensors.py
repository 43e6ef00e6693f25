"""`pipeline_updates` asks for runs, `alerts` delivers messages, `job_…` tell of the runs themselves.

`pipeline_updates` finds pipelines with new events, starting no engine, and asks for one run for all of them.

What is to be read is told by the logs and their cursors, not by this sensor's memory: a run that failed leaves its work
to the next request. The sensor only remembers what it asked for last, so that the same work is not asked for at every
tick: a repeat waits twice as long each time and has a run key of its own (run keys deduplicate for ever). It also
remembers where the listing of a large or slow workspace goes on: a tick has a budget of time, Dagster ends it at 60 s.

What was told is told by the table `alert_deliveries`, not by Dagster.
"""

import hashlib
import logging
import time
from datetime import datetime, timedelta
from typing import Any

import dagster as dg
import orjson

from monitoring_platform.cycle.clock import clock
from monitoring_platform.cycle.ingest import Found, discover
from monitoring_platform.health.notify.channels import beat
from monitoring_platform.health.notify.delivering import Delivered, notify, tell_job
from monitoring_platform.orchestration.jobs import REFRESH, failure_text
from monitoring_platform.orchestration.partitions import PIPELINES
from monitoring_platform.orchestration.resources import Platform
from monitoring_platform.sources import SourceError
from monitoring_platform.sources.waiting import within

_log = logging.getLogger("monitoring_platform")
_FIRST_REPEAT, _LAST_REPEAT = timedelta(minutes=1), timedelta(hours=1)
_BUDGET_SECONDS = 15.0  # for the listing, which resumes where it stopped
_PATIENCE_SECONDS = 35.0  # for a call that hangs, such as a login, whose own limits are minutes
_ALIVE = timedelta(minutes=15)
_ALERT_SECONDS = 30
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


def make_pipeline_updates(interval_seconds: int, running: bool) -> dg.SensorDefinition:
    """The sensor with the configured cadence."""

    @dg.sensor(
        name="pipeline_updates",
        job_name=REFRESH,
        minimum_interval_seconds=interval_seconds,
        default_status=_status(running),
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


def make_alerts(running: bool) -> dg.SensorDefinition:
    """The sensor that delivers: it asks for no run, so what it did is the reason that it gives."""

    @dg.sensor(
        name="alerts",
        minimum_interval_seconds=_ALERT_SECONDS,
        default_status=_status(running),
        description="Sends what is due to the configured channels, each message once.",
    )
    def alerts(platform: Platform) -> dg.SkipReason:
        warehouse = platform.warehouse()
        if not warehouse.settings.notifications.channels:
            return dg.SkipReason("no channel is configured")
        done = notify(warehouse, clock(None))
        if done == Delivered():
            return dg.SkipReason("nothing is due")
        return dg.SkipReason(f"{done.sent} sent, {done.failed} failed, {done.waiting} wait for their next try")

    return alerts


#: What is told of a run that came into a state.
_TRANSITIONS = {
    dg.DagsterRunStatus.STARTED: "job_started",
    dg.DagsterRunStatus.SUCCESS: "job_succeeded",
    dg.DagsterRunStatus.FAILURE: "job_failed",
}


def make_job_messages(job: Any, running: bool) -> list[dg.SensorDefinition]:
    """Sensors that plan the messages about runs of the job, crashed ones too; `alerts` delivers them.

    After a success the watchdog elsewhere hears of it.
    """
    return [_job_message(job, status, transition, running) for status, transition in _TRANSITIONS.items()]


def _job_message(job: Any, status: dg.DagsterRunStatus, transition: str, running: bool) -> dg.SensorDefinition:
    @dg.run_status_sensor(
        run_status=status,
        name=transition,
        monitored_jobs=[job],
        minimum_interval_seconds=_ALERT_SECONDS,
        default_status=_status(running),
        description=f"Plans the message about a run of {REFRESH}: {transition.replace('_', ' ')}.",
    )
    def tell(context: dg.RunStatusSensorContext, platform: Platform) -> None:
        warehouse, error = platform.warehouse(), None
        if status == dg.DagsterRunStatus.FAILURE:
            steps = context.for_run_failure().get_step_failure_events()
            error = "; ".join(map(failure_text, steps)) or context.dagster_event.message
        tell_job(warehouse, transition, context.dagster_run.run_id, clock(None), error)
        if status == dg.DagsterRunStatus.SUCCESS and (problem := beat(warehouse.settings)):
            _log.warning(problem)

    return tell


def _status(running: bool) -> dg.DefaultSensorStatus:
    return dg.DefaultSensorStatus.RUNNING if running else dg.DefaultSensorStatus.STOPPED


def _is_running(instance: dg.DagsterInstance, now: datetime) -> bool:
    """Whether a refresh is queued or at work. One that has been silent for long was killed and does not count."""
    records = instance.get_run_records(dg.RunsFilter(job_name=REFRESH, statuses=_ACTIVE), limit=20)
    return any(now - record.update_timestamp.astimezone(now.tzinfo) < _ALIVE for record in records)
