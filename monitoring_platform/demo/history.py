"""What a pipeline lives through: its schedule, the usual accidents, and the problem that was planted in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from random import Random

from monitoring_platform.demo.events import DAY, HOUR, MINUTE, SECOND, new_id
from monitoring_platform.demo.fleet import NIGHT_FLOW, Pipeline
from monitoring_platform.demo.journal import Journal
from monitoring_platform.demo.updates import (
    Attempt,
    Failure,
    play,
    play_continuous,
    play_gateway,
    play_maintenance,
)

STALE_DAYS = 6
MARGIN = 80 * MINUTE  # nothing is begun so late that it could not end before the log does
_NIGHT_HOUR = 3

SCHEMA_MISMATCH = "DELTA_SCHEMA_MISMATCH.COLUMN"
NIGHT_ERROR = "SCHEMA_MISMATCH"
_ANALYSIS, _SPARK = "org.apache.spark.sql.AnalysisException", "org.apache.spark.SparkException"


@dataclass(frozen=True)
class Window:
    """From when to when a log is made, in milliseconds."""

    start: int
    end: int


@dataclass(frozen=True)
class Request:
    """Something that was asked for at a time, and the attempts that it takes."""

    at: int
    attempts: tuple[Attempt, ...]


History = list[Request]


def live(pipeline: Pipeline, window: Window, seed: int) -> Journal:
    """The whole log of a pipeline."""
    rng = Random(f"life of {pipeline.name} {seed}")
    journal = Journal(pipeline, rng)
    if pipeline.plant == "never_ran":
        journal.user_action(window.end - min(3 * DAY, (window.end - window.start) // 2), "CREATE")
    elif pipeline.runs_without_end:
        _live_without_end(journal, window)
    else:
        _live_by_requests(journal, window)
    journal.runs.sort(key=lambda run: run.first_event)
    journal.events.sort(key=lambda event: (event.ts, event.sequence["control_plane_seq_no"]))
    return journal


def _live_without_end(journal: Journal, window: Window) -> None:
    """One update for the whole time, or two when the platform was upgraded in between."""
    rng = journal.rng
    start = window.start + rng.randint(1, 90) * MINUTE
    journal.user_action(start - 700, "START")
    run = play_gateway if journal.pipeline.kind == "gateway" else play_continuous
    first = Attempt("USER_ACTION", "RUNNING")
    if journal.pipeline.kind == "continuous" and rng.random() < 0.4:
        upgrade = start + (window.end - start) // 2
        stopped = replace(first, outcome="CANCELED", cancelled_by="SERVICE_UPGRADE")
        run(journal, stopped, start, upgrade, _request_id(journal))
        first, start = Attempt("SERVICE_UPGRADE", "RUNNING"), upgrade + 40 * SECOND
    run(journal, first, start, window.end, _request_id(journal))


def _live_by_requests(journal: Journal, window: Window) -> None:
    """Scheduled requests, with accidents in the middle and the plant at the end."""
    pipeline, rng = journal.pipeline, journal.rng
    if pipeline.plant == "stale":
        window = Window(window.start - STALE_DAYS * DAY, window.end - STALE_DAYS * DAY)
    ordinary = [Request(at, (_usual_attempt(rng),)) for at in _slots(pipeline, window, rng)]
    history = ordinary if pipeline.plant else _with_accidents(pipeline, ordinary, rng)
    if pipeline.plant in _PLANTED_HISTORIES:
        history = _PLANTED_HISTORIES[pipeline.plant](pipeline, history, window)
    for request in history:
        _play_request(journal, request)
    if not pipeline.plant:
        _play_internal_runs(journal, ordinary)


def _slots(pipeline: Pipeline, window: Window, rng: Random) -> list[int]:
    """The times of the schedule, the same every day, the last one a good while before the end."""
    period = DAY // pipeline.per_day
    if pipeline.plant == "night_errors":
        midnight = window.end - window.end % DAY
        last = max(
            t for t in range(midnight - DAY, midnight + DAY, period) if t + _NIGHT_HOUR * HOUR < window.end - MARGIN
        )
        last += _NIGHT_HOUR * HOUR
    elif pipeline.plant == "stale":
        last = window.end - 20 * MINUTE
    else:
        last = window.end - MARGIN - rng.randint(0, (period - 2 * HOUR) // MINUTE) * MINUTE
    times = range(last, window.start, -period)
    return sorted(t + rng.randint(0, 3_000) for t in times)


def _usual_attempt(rng: Random) -> Attempt:
    return Attempt(rng.choices(("JOB_TASK", "API_CALL", "USER_ACTION", "SCHEMA_CHANGE"), (85, 6, 6, 3))[0])


def _request_id(journal: Journal) -> str | None:
    return None if "no_request_ids" in journal.pipeline.quirks else new_id(journal.rng)


def _play_request(journal: Journal, request: Request) -> None:
    """The attempts of a request, each a little after the one before it failed."""
    request_id, at = _request_id(journal), request.at
    head: str | None = None
    for number, attempt in enumerate(request.attempts, 1):
        if attempt.cause == "USER_ACTION":
            journal.user_action(at - journal.rng.randint(300, 900), "START")
        run = play(journal, attempt, at, number, request_id)
        head = head or run.request_id
        run.request_id = head
        if run.ended_at is not None:
            at = run.ended_at + journal.rng.randint(15, 90) * SECOND


def _play_internal_runs(journal: Journal, history: History) -> None:
    """Now and then somebody validates or looks at the graph, and the platform does its maintenance."""
    rng, half_period = journal.rng, DAY // journal.pipeline.per_day // 2
    for request in history[:-1]:
        at = request.at + half_period
        chance = rng.random()
        if chance < 0.02:
            play(journal, Attempt("USER_ACTION", kind="validate"), at, 1, _request_id(journal))
        elif chance < 0.03:
            play(journal, Attempt("API_CALL", kind="explore"), at, 1, _request_id(journal))
        elif chance < 0.06:
            play_maintenance(journal, at)


# Accidents: what happens to every pipeline at times, and is over before the end


def _with_accidents(pipeline: Pipeline, ordinary: History, rng: Random) -> History:
    """Exchange some requests; the first one and the last two stay as they are."""
    history = list(ordinary)
    for place in range(1, len(history) - 2):
        if rng.random() < 0.05 or (pipeline.secrets and place == 1):
            history[place] = Request(history[place].at, _accident(pipeline, rng))
    return history


def _accident(pipeline: Pipeline, rng: Random) -> tuple[Attempt, ...]:
    usual, flow = Attempt("JOB_TASK"), rng.randrange(len(pipeline.flows))
    retry = Attempt("RETRY_ON_FAILURE")
    broken = replace(usual, outcome="FAILED", failure=_failure(pipeline, rng), stops_at=flow)
    cancelled = replace(usual, outcome="CANCELED", stops_at=flow)
    if pipeline.secrets:
        return broken, retry
    return rng.choices(
        (
            (broken, retry),
            (replace(usual, cause="USER_ACTION", full_refresh=True, rows_factor=6.0),),
            (cancelled,),
            (replace(cancelled, cancelled_by="WORKFLOW_CANCELLATION"),),
            (broken, replace(cancelled, cause="RETRY_ON_FAILURE")),
        ),
        (5, 3, 2, 1, 1),
    )[0]


def _failure(pipeline: Pipeline, rng: Random) -> Failure:
    if pipeline.secrets:
        address = f"jdbc:sqlserver://erp-db:1433;user=etl;password={pipeline.secrets.password}"
        return Failure(_SPARK, f"[FAILED_JDBC.CONNECTION] Could not connect to {address}")
    choices = [
        Failure(_SPARK, "[TASK_WRITE_FAILED] Task failed while writing rows. SQLSTATE: 58030"),
        Failure(_ANALYSIS, "[PATH_NOT_FOUND] Path does not exist: /Volumes/main/landing/files. SQLSTATE: 42K03"),
        Failure("java.util.concurrent.TimeoutException", "Futures timed out after [300 seconds]"),
    ]
    if not pipeline.serverless:
        choices.append(
            Failure("ClusterError", "Cluster launch failed: no instances of this type", before_any_flow=True)
        )
    return rng.choice(choices)


# Planted histories


def _failed(cause: str, failure: Failure, stops_at: int = -1) -> Attempt:
    return Attempt(cause, "FAILED", failure=failure, stops_at=stops_at)


def _still_failing_cause(pipeline: Pipeline) -> Failure:
    """Two pipelines share the same root cause, the third has its own."""
    if pipeline.plant_number == 2:
        return Failure(_SPARK, "[CANNOT_READ_FILE] Could not read a file of the source table. SQLSTATE: 58030")
    column = f"{pipeline.flows[-1].dataset}.discount_code"
    return Failure(_ANALYSIS, f"[{SCHEMA_MISMATCH}] The column {column} is not in the target schema. SQLSTATE: 42KDG")


_PASSING = Failure(_ANALYSIS, "[PATH_NOT_FOUND] Path does not exist: /Volumes/main/landing/today. SQLSTATE: 42K03")


def _with_last(history: History, *attempts: Attempt) -> History:
    return [*history[:-1], replace(history[-1], attempts=attempts)]


def _still_failing(pipeline: Pipeline, history: History, window: Window) -> History:
    failure = _still_failing_cause(pipeline)
    retry = _failed("RETRY_ON_FAILURE", failure)
    return _with_last(history, _failed("JOB_TASK", failure), retry, retry)


def _recovered(pipeline: Pipeline, history: History, window: Window) -> History:
    attempts = _failed("JOB_TASK", _PASSING), _failed("RETRY_ON_FAILURE", _PASSING), Attempt("RETRY_ON_FAILURE")
    return _with_last(history, *attempts)


def _retry_running(pipeline: Pipeline, history: History, window: Window) -> History:
    running = Attempt("RETRY_ON_FAILURE", "RUNNING")
    now = Request(window.end - 11 * MINUTE, (_failed("JOB_TASK", _PASSING), running))
    return [*history, now]


def _low_pass_rate(pipeline: Pipeline, history: History, window: Window) -> History:
    rate = (0.964, 0.982)[pipeline.plant_number % 2]
    return _with_last(history, Attempt("JOB_TASK", pass_rates={"valid_id": rate}))


def _decaying_rule(pipeline: Pipeline, history: History, window: Window) -> History:
    rates = (0.999, 0.995, 0.95)
    return [
        Request(request.at, (Attempt("JOB_TASK", pass_rates={"valid_id": rates[3 * place // len(history)]}),))
        for place, request in enumerate(history)
    ]


def _zero_rows(pipeline: Pipeline, history: History, window: Window) -> History:
    return _with_last(history, Attempt("JOB_TASK", rows_factor=0.0))


def _slow(pipeline: Pipeline, history: History, window: Window) -> History:
    return _with_last(history, Attempt("JOB_TASK", slow_flow=0, extra_ms=7 * MINUTE))


def _night_errors(pipeline: Pipeline, history: History, window: Window) -> History:
    """Every third night, but not the last one: by day the pipeline is well."""
    failure = Failure(_ANALYSIS, f"[{NIGHT_ERROR}] Data of {NIGHT_FLOW} does not fit its schema: quantity is text")
    broken = (_failed("JOB_TASK", failure, stops_at=0),)
    last = history[-1].at // DAY
    return [
        replace(request, attempts=broken)
        if _hour(request.at) == _NIGHT_HOUR and (last - request.at // DAY) % 3 == 1
        else request
        for request in history
    ]


def _hour(ms: int) -> int:
    return datetime.fromtimestamp(ms // 1000, tz=timezone.utc).hour


_PLANTED_HISTORIES: dict[str, Callable[[Pipeline, History, Window], History]] = {
    "still_failing": _still_failing,
    "recovered": _recovered,
    "retry_running": _retry_running,
    "low_pass_rate": _low_pass_rate,
    "decaying_rule": _decaying_rule,
    "zero_rows": _zero_rows,
    "slow": _slow,
    "night_errors": _night_errors,
}
