"""What a pipeline lives through: its schedule, the usual accidents, and the problem that was planted in it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from monitoring_platform.demo.endless import play_continuous, play_gateway
from monitoring_platform.demo.events import DAY, HOUR, MINUTE, SECOND, new_id
from monitoring_platform.demo.journal import Journal
from monitoring_platform.demo.model import Pipeline
from monitoring_platform.demo.scenarios import (
    NIGHT_HOUR,
    STALLED_FOR,
    planted_history,
    troubled_backlogs,
    with_accidents,
)
from monitoring_platform.demo.timeline import Attempt, History, Request, Window
from monitoring_platform.demo.updates import play, play_maintenance

STALE_DAYS = 6
MARGIN = 80 * MINUTE  # nothing is begun so late that it could not end before the log does


def live(pipeline: Pipeline, window: Window, seed: int) -> Journal:
    """The whole log of a pipeline."""
    rng = Random(f"life of {pipeline.name} {seed}")
    journal = Journal(pipeline, rng)
    journal.troubled_backlogs |= troubled_backlogs(pipeline, window)
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
    rng, kind = journal.rng, journal.pipeline.kind
    start = window.start + rng.randint(1, 90) * MINUTE
    journal.user_action(start - 700, "START")
    first = Attempt("USER_ACTION", "RUNNING")
    if kind == "gateway":
        play_gateway(journal, first, start, window.end, _request_id(journal))
        return
    if rng.random() < 0.4:
        upgrade = start + (window.end - start) // 2
        stopped = replace(first, outcome="CANCELED", cancelled_by="SERVICE_UPGRADE")
        play_continuous(journal, stopped, start, upgrade, _request_id(journal))
        first, start = Attempt("SERVICE_UPGRADE", "RUNNING"), upgrade + 40 * SECOND
    stalls_at = window.end - STALLED_FOR if journal.pipeline.plant == "stalled" else None
    play_continuous(journal, first, start, window.end, _request_id(journal), stalls_at)


def _live_by_requests(journal: Journal, window: Window) -> None:
    """Scheduled requests, with accidents in the middle and the plant at the end."""
    pipeline, rng = journal.pipeline, journal.rng
    if pipeline.plant == "stale":
        window = Window(window.start - STALE_DAYS * DAY, window.end - STALE_DAYS * DAY)
    ordinary = [Request(at, (_usual_attempt(rng),)) for at in _slots(pipeline, window, rng)]
    history = planted_history(pipeline, ordinary, window) if pipeline.plant else with_accidents(pipeline, ordinary, rng)
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
            t for t in range(midnight - DAY, midnight + DAY, period) if t + NIGHT_HOUR * HOUR < window.end - MARGIN
        )
        last += NIGHT_HOUR * HOUR
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
