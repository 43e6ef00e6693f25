"""What goes wrong: accidents that happen to any pipeline and are over before the end, and the planted problems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from random import Random

from monitoring_platform.demo.events import DAY, HOUR, MINUTE
from monitoring_platform.demo.model import Flow, Pipeline
from monitoring_platform.demo.planning import Obstacle, back_ticked
from monitoring_platform.demo.planting import AFTER_THE_CHANGE, FULL_RECOMPUTE_EXPRESSION, NIGHT_FLOW
from monitoring_platform.demo.timeline import Attempt, Failure, History, Request, Window, turning_point

NIGHT_HOUR = 3
STALLED_FOR = 9 * HOUR
_GROWING_FOR, _STUCK_FOR = 2 * DAY, 8 * DAY

SCHEMA_MISMATCH = "DELTA_SCHEMA_MISMATCH.COLUMN"
NIGHT_ERROR = "SCHEMA_MISMATCH"
LOST_FILE = "DELTA_FILE_NOT_FOUND_DETAILED"
_ANALYSIS, _SPARK = "org.apache.spark.sql.AnalysisException", "org.apache.spark.SparkException"
_STREAMING = "org.apache.spark.sql.streaming.StreamingQueryException"


# Accidents: what happens to every pipeline at times, and is over before the end


def with_accidents(pipeline: Pipeline, ordinary: History, rng: Random) -> History:
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
    column = back_ticked(f"{pipeline.flows[-1].dataset}.discount_code")
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
        if _hour(request.at) == NIGHT_HOUR and (last - request.at // DAY) % 3 == 1
        else request
        for request in history
    ]


def _hour(ms: int) -> int:
    return datetime.fromtimestamp(ms // 1000, tz=timezone.utc).hour


def _shared_error(pipeline: Pipeline, history: History, window: Window) -> History:
    """The same root cause in several pipelines; files, ids and numbers differ. The retry goes through."""
    rng = Random(f"lost file of {pipeline.name}")
    part = f"part-{rng.randint(0, 199):05}-{rng.getrandbits(32):08x}-5a1e-4c0f-9a51-{rng.getrandbits(48):012x}-c000"
    folder = pipeline.flows[0].inputs[0].replace(".", "/")
    lost = f"s3://acme-lake/{folder}/{part}.snappy.parquet"
    query = f"{rng.getrandbits(32):08x}-77aa-4b3e-8d10-{rng.getrandbits(48):012x}"
    failure = Failure(
        _SPARK,
        f"[{LOST_FILE}] File {lost} referenced in the transaction log cannot be found at version "
        f"{rng.randint(90, 4_000)}. SQLSTATE: 58030",
        outer=(_STREAMING, f"Query [id = {query}] terminated with exception: Job aborted due to stage failure"),
    )
    place = max(1, len(history) - 2 - pipeline.plant_number)
    attempts = _failed("JOB_TASK", failure, stops_at=0), Attempt("RETRY_ON_FAILURE")
    return [replace(r, attempts=attempts) if number == place else r for number, r in enumerate(history)]


def _refused(pipeline: Pipeline, history: History, window: Window) -> History:
    """Somebody asks for an update while another one is at work."""
    place = turning_point(len(history))
    text = f"An active update {Random(pipeline.id).getrandbits(24):06x} already exists: an update is already running."
    failure = Failure("com.databricks.pipelines.ConflictException", text)
    asked = Request(history[place].at + MINUTE, (replace(_failed("API_CALL", failure), is_refused=True),))
    return [*history[: place + 1], asked, *history[place + 1 :]]


def _changed(history: History, **changes: object) -> History:
    """From the turning point on every attempt has something special."""
    place = turning_point(len(history))
    special = Attempt("JOB_TASK", **changes)  # type: ignore[arg-type]
    return [*history[:place], *(replace(request, attempts=(special,)) for request in history[place:])]


def _full_recompute(pipeline: Pipeline, history: History, window: Window) -> History:
    """A view got an expression that cannot be maintained incrementally: from then on it is computed as a whole."""
    table = back_ticked(pipeline.flows[0].inputs[0])
    obstacle = Obstacle("PLAN_NOT_INCREMENTALIZABLE", "AGGREGATE_WITH_DISTINCT", FULL_RECOMPUTE_EXPRESSION, table)
    return _changed(history, obstacle=obstacle, slow_flow=0, extra_ms=6 * MINUTE)


def _lost_checkpoint(pipeline: Pipeline, history: History, window: Window) -> History:
    """Once a flow begins anew, although nobody asked for it."""
    place = turning_point(len(history))
    lost = Attempt("JOB_TASK", loses_checkpoint=True, slow_flow=0, extra_ms=3 * MINUTE)
    return [*history[:place], replace(history[place], attempts=(lost,)), *history[place + 1 :]]


def _redeployed(change: Callable[[Flow], Flow]) -> Callable[[Pipeline, History, Window], History]:
    """The first flow is another one from the turning point on."""

    def lived(pipeline: Pipeline, history: History, window: Window) -> History:
        return _changed(history, flows=(change(pipeline.flows[0]), *pipeline.flows[1:]))

    return lived


def _with_new_schema(flow: Flow) -> Flow:
    return replace(flow, columns=AFTER_THE_CHANGE)


def _without_last_rule(flow: Flow) -> Flow:
    return replace(flow, rules=flow.rules[:-1])


def _with_renamed_rule(flow: Flow) -> Flow:
    return replace(flow, rules=(*flow.rules[:-1], replace(flow.rules[-1], name="timestamp_is_fresh")))


def _with_dropping_rule(flow: Flow) -> Flow:
    return replace(flow, rules=(*flow.rules[:-1], replace(flow.rules[-1], drops=True)))


def _stuck_backlog(pipeline: Pipeline, history: History, window: Window) -> History:
    """The last flow has read nothing for days."""
    stuck = Attempt("JOB_TASK", is_stuck=True)
    return [replace(r, attempts=(stuck,)) if r.at >= window.end - _STUCK_FOR else r for r in history]


_PLANTED_HISTORIES: dict[str, Callable[[Pipeline, History, Window], History]] = {
    "still_failing": _still_failing,
    "recovered": _recovered,
    "retry_running": _retry_running,
    "low_pass_rate": _low_pass_rate,
    "decaying_rule": _decaying_rule,
    "zero_rows": _zero_rows,
    "slow": _slow,
    "night_errors": _night_errors,
    "shared_error": _shared_error,
    "refused": _refused,
    "full_recompute": _full_recompute,
    "lost_checkpoint": _lost_checkpoint,
    "schema_change": _redeployed(_with_new_schema),
    "rule_vanished": _redeployed(_without_last_rule),
    "rule_renamed": _redeployed(_with_renamed_rule),
    "rule_action_changed": _redeployed(_with_dropping_rule),
    "stuck_backlog": _stuck_backlog,
}


def planted_history(pipeline: Pipeline, ordinary: History, window: Window) -> History:
    """The history of a pipeline with a plant; not every plant changes what is asked for."""
    lived = _PLANTED_HISTORIES.get(pipeline.plant or "")
    return lived(pipeline, ordinary, window) if lived else ordinary


# Planted backlogs


def troubled_backlogs(pipeline: Pipeline, window: Window) -> dict[str, Callable[[int], int | None]]:
    """By flow: how many records wait at a time; None = as many as usual."""
    if pipeline.plant == "growing_backlog":
        return {pipeline.flows[0].name: lambda ts: _growing(ts - window.end + _GROWING_FOR)}
    if pipeline.plant == "stalled":
        return {flow.name: _much for flow in pipeline.flows}
    if pipeline.plant == "stuck_backlog":
        return {pipeline.flows[-1].name: lambda ts: 41_500 if ts >= window.end - _STUCK_FOR else None}
    return {}


def _growing(since: int) -> int:
    return int(8_000 * 1.09 ** (max(0, since) / HOUR))


def _much(ts: int) -> int:
    """Something always waits, now a little more, now a little less."""
    return 27_000 + ts // HOUR * 7_919 % 1_500
