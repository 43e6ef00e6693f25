"""Event logs of a fleet in which it is known what deserves an alarm, and what looks like it and does not.

Each pipeline keeps its schedule in local time and lives with noise, retries that heal, weekends, holidays, growth and
single odd runs. Into some of them a fault is planted, for a time. The logs are those of the demo's updates; truth.json
says of each fault whom it concerns, when it begins, from when on it can be known, when it ends, and which rules may
rightly announce it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from monitoring_platform.demo.drafting import drafts
from monitoring_platform.demo.endless import play_continuous, play_gateway
from monitoring_platform.demo.events import DAY, HOUR, MINUTE, SECOND, new_id
from monitoring_platform.demo.fleet import OWNERS
from monitoring_platform.demo.journal import Journal
from monitoring_platform.demo.lineage import wire
from monitoring_platform.demo.model import CATALOG, Pipeline, Rule
from monitoring_platform.demo.planning import Obstacle
from monitoring_platform.demo.timeline import Attempt, Failure, Window
from monitoring_platform.demo.truth import RunTruth
from monitoring_platform.demo.updates import play
from monitoring_platform.demo.writing import FileSet, write_files
from monitoring_platform.health.calendars import local_instant

ZONE = "Europe/Berlin"
DEADLINE, MAINTENANCE = "morning", "saturday_night"
WEEK = 7 * DAY
NAIVE_FAILED, NAIVE_SLOW, NAIVE_ZERO = "naive: failed update", "naive: twice the median", "naive: no rows"

_FAILING = ("request_failed", "failure_rate_high", "budget_burning", "not_fresh", NAIVE_FAILED)
_SLOW = ("run_slow", "duration_over_target", "budget_burning", NAIVE_SLOW)
_CODES = """
    DELTA_SCHEMA_MISMATCH CANNOT_READ_FILE DIVIDE_BY_ZERO CAST_INVALID_INPUT TABLE_OR_VIEW_NOT_FOUND UNRESOLVED_COLUMN
    DELTA_CONCURRENT_APPEND INVALID_PARAMETER MISSING_ATTRIBUTES DATATYPE_MISMATCH DELTA_MERGE_CONFLICT
    STATE_STORE_CORRUPT PERMISSION_DENIED QUOTA_EXCEEDED MALFORMED_RECORD CDC_KEY_IS_NULL
""".split()  # noqa: SIM905


@dataclass(frozen=True)
class Turn:
    """One scheduled request: its attempts, and how long they take and how much they write against the usual."""

    at: int
    attempts: tuple[Attempt, ...] = (Attempt("JOB_TASK"),)
    pace: float = 1.0
    rows: float = 1.0
    loses_rule: bool = False


@dataclass(frozen=True)
class Spell:
    """A time in which something is different; `change` makes of a turn what becomes of it, None = it is left out."""

    start: int
    end: int
    change: Callable[[Turn, Spell], Turn | None]
    code: str = ""  # of the error

    def holds(self, at: int) -> bool:
        return self.start <= at < self.end


@dataclass
class Life:
    """A pipeline with its schedule, its habits and what happens to it."""

    pipeline: Pipeline
    times: tuple[time, ...]
    begins: int
    flakiness: float
    weekend: float = 1.0
    weekly_growth: float = 0.0
    workdays_only: bool = False
    empty_share: float = 0.0
    tags: dict[str, str] = field(default_factory=dict)
    fault: Spell | None = None
    innocent: list[Spell] = field(default_factory=list)
    is_spoken_for: bool = False


class Fault(NamedTuple):
    """What was planted. Times in UTC; `known_at`: the first moment at which it can be known."""

    kind: str
    pipeline_ids: tuple[str, ...]
    began_at: datetime
    known_at: datetime
    ended_at: datetime
    rules: tuple[str, ...]


class Kind(NamedTuple):
    """A sort of fault: how often in a hundred pipelines, for how many days, where, and after how many runs it shows."""

    name: str
    rules: tuple[str, ...]
    often: int
    days: tuple[float, float]
    change: Callable[[Turn, Spell], Turn | None]
    shape: Callable[[Pipeline], Pipeline] = lambda pipeline: pipeline
    hosts: tuple[str, ...] = ("streaming", "cdc")
    runs: int = 1


# What faults do to a turn


def _attempts(turn: Turn, **changes: Any) -> Turn:
    return replace(turn, attempts=(Attempt("JOB_TASK", **changes),))


def _failure(code: str) -> Failure:
    return Failure("org.apache.spark.SparkException", f"[{code}] The update cannot go on. SQLSTATE: 58030")


def _fails(turn: Turn, spell: Spell) -> Turn:
    first = Attempt("JOB_TASK", "FAILED", failure=_failure(spell.code), stops_at=0)
    again = replace(first, cause="RETRY_ON_FAILURE")
    return replace(turn, attempts=(first, again, again))


def _fails_often(turn: Turn, spell: Spell) -> Turn:
    return turn if turn.at // HOUR % 4 == 3 else _fails(turn, spell)


def _hangs(turn: Turn, spell: Spell) -> Turn | None:
    """The first one hangs until somebody stops it; meanwhile no other begins."""
    if turn.at > spell.start + DAY:
        return None
    return _attempts(turn, outcome="CANCELED", stops_at=0, slow_flow=0, extra_ms=2 * (spell.end - turn.at))


def _silent(turn: Turn, spell: Spell) -> None:
    return None


def _grows(turn: Turn, spell: Spell) -> Turn:
    return replace(turn, pace=turn.pace * 1.06 ** ((turn.at - spell.start) / WEEK))


def _passes_less_and_less(turn: Turn, spell: Spell) -> Turn:
    rate = (0.999, 0.995, 0.95)[min(2, (turn.at - spell.start) // WEEK)]
    return _attempts(turn, pass_rates={_WATCHED: rate})


def _recomputes(turn: Turn, spell: Spell) -> Turn:
    obstacle = Obstacle("PLAN_NOT_INCREMENTALIZABLE", "AGGREGATE_WITH_DISTINCT", "count(DISTINCT customer_id)")
    return replace(_attempts(turn, obstacle=obstacle), pace=1.6 * turn.pace)


def _loses_rule(turn: Turn, spell: Spell) -> Turn:
    return replace(turn, loses_rule=True)


# What a pipeline must be like for a fault to show

_WATCHED = "amount is positive"


def _judged(pipeline: Pipeline, *, drops: bool = False) -> Pipeline:
    """The first flow has many records and two rules; nothing else is judged."""
    first, *others = pipeline.flows
    dataset = f"{CATALOG}.{pipeline.schema}.{first.dataset}"
    rules = (Rule("valid_id", dataset, drops=False, usual_rate=0.9998), Rule(_WATCHED, dataset, drops, 0.9995))
    judged = replace(first, rules=rules, reports="batches", usual_rows=max(first.usual_rows, 40_000))
    return replace(pipeline, flows=(judged, *(replace(flow, rules=()) for flow in others)))


def _long(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, serverless=True, run_seconds=pipeline.run_seconds + 500)


KINDS = (
    Kind("fails for good", _FAILING, 5, (1.5, 4), _fails),
    Kind("fails most of a day", _FAILING, 3, (1, 1), _fails_often),
    Kind("runs three times slower", _SLOW, 4, (3, 6), lambda turn, _: replace(turn, pace=3 * turn.pace), _long),
    Kind("hangs", (*_SLOW, "not_fresh", "pipeline_silent"), 4, (1.2, 3), _hangs),
    Kind("takes 6 % longer each week", ("duration_growing", NAIVE_SLOW), 4, (60, 60), _grows, _long),
    Kind("no rows", ("rows_zero", "rows_changed", NAIVE_ZERO), 4, (2, 5), lambda turn, _: replace(turn, rows=0.0)),
    Kind("half the rows", ("rows_changed",), 4, (4, 10), lambda turn, _: replace(turn, rows=0.5 * turn.rows)),
    Kind(
        "pass rate low",
        ("pass_rate_low", "budget_burning"),
        4,
        (2, 5),
        lambda turn, _: _attempts(turn, pass_rates={_WATCHED: 0.97}),
        _judged,
    ),
    Kind(
        "pass rate creeps down",
        ("pass_rate_falling", "pass_rate_low", "budget_burning"),
        4,
        (24, 24),
        _passes_less_and_less,
        _judged,
    ),
    Kind(
        "drops records",
        ("rows_dropped", "pass_rate_low", "budget_burning"),
        4,
        (2, 5),
        lambda turn, _: _attempts(turn, pass_rates={_WATCHED: 0.85}),
        lambda pipeline: _judged(pipeline, drops=True),
    ),
    Kind("recomputed in full", ("recomputed_in_full",), 4, (5, 9), _recomputes, hosts=("materialized_view",), runs=2),
    Kind("loses an expectation", ("expectation_lost",), 4, (5, 9), _loses_rule, _judged, runs=3),
    Kind("falls silent", ("pipeline_silent", "not_fresh"), 4, (5, 8), _silent),
)
_SHARED = Kind("one cause in ten pipelines", _FAILING, 2, (1, 1.5), _fails)
_LATE = Kind(
    "misses its deadline",
    ("deadline_missed", "deadline_at_risk", "not_fresh", "budget_burning", "pipeline_silent"),
    4,
    (0.9, 0.9),
    lambda turn, _: replace(turn, at=turn.at + 4 * HOUR),
)
_BACKLOG, _STALL = ("backlog_growing", "backlog_high", "budget_burning"), ("flow_stalled", "backlog_growing")


# The fleet


def lives(pipelines: int, window: Window, seed: int) -> tuple[list[Life], list[tuple[Kind, list[Life]]]]:
    """Every pipeline with what happens to it, and which of them a fault makes suffer."""
    rng = Random(f"alerts {seed}")
    fleet = wire([_plain(draft) for draft in drafts(pipelines, seed)], seed)
    found = [_life(pipeline, window, rng) for pipeline in fleet]
    faults = _plant(found, window, rng)
    for life in found:
        _live_with(life, window, rng)
    return found, faults


def _plain(draft: Pipeline) -> Pipeline:
    """Two flows are enough, and long runs are."""
    return replace(draft, flows=draft.flows[:2], run_seconds=draft.run_seconds + 100)


def _life(pipeline: Pipeline, window: Window, rng: Random) -> Life:
    per_day = rng.choices((1, 2, 4), (60, 30, 10))[0]
    first = rng.randrange(24 * 4 // per_day)
    times = tuple(_clock(first * 15 + number * 24 * 60 // per_day) for number in range(per_day))
    return Life(
        pipeline,
        times,
        begins=window.start,
        flakiness=rng.choices((0.03, 0.1, 0.25), (50, 30, 20))[0],  # of first attempts; published: 23 %
        weekend=rng.choice((1.0, 1.0, rng.uniform(0.35, 0.8))),
        weekly_growth=rng.choice((0.0, rng.uniform(0.01, 0.02))),
    )


def _clock(minutes: int) -> time:
    return time(minutes // 60 % 24, minutes % 60)


def _plant(fleet: list[Life], window: Window, rng: Random) -> list[tuple[Kind, list[Life]]]:
    """Each fault in a pipeline of its own, where it can show."""
    free = [life for life in fleet if not life.pipeline.runs_without_end]
    rng.shuffle(free)
    codes = iter(_CODES)
    planted = []

    def share(count: int) -> range:
        return range(max(1, round(count * len(fleet) / 100)))

    def take(kinds: tuple[str, ...], number: int = 1) -> list[Life]:
        chosen = [life for life in free if life.pipeline.kind in kinds and not life.is_spoken_for][:number]
        for life in chosen:
            life.is_spoken_for = True
        return chosen

    for number in share(2 * _LATE.often):
        for life in take(("streaming", "cdc")):
            life.times, life.tags["deadline"] = (time(4, 15),), DEADLINE
            if number % 2:
                life.fault = _spell(_LATE, window, rng)
                planted.append((_LATE, [life]))
    for kind in KINDS:
        for _ in share(kind.often):
            for life in take(kind.hosts):
                life.pipeline = kind.shape(life.pipeline)
                life.fault = _spell(kind, window, rng, next(codes) if kind.change in (_fails, _fails_often) else "")
                if kind.change is _fails_often:
                    life.times = tuple(_clock(number * 180 + 20) for number in range(8))
                if kind.change is _fails:
                    _starve_reader(life, fleet, window)
                planted.append((kind, [life]))
    for _ in share(_SHARED.often):
        spell = _spell(_SHARED, window, rng, next(codes))
        together = take(("streaming", "cdc", "materialized_view"), max(2, len(fleet) // 10))
        for life in together:
            life.fault = spell
        planted.append((_SHARED, together))
    return planted


def _spell(kind: Kind, window: Window, rng: Random, code: str = "") -> Spell:
    """At a time that leaves something to compare with before it, and an end before the log ends if it has one."""
    days = (window.end - window.start) / DAY
    lasts = rng.uniform(*kind.days)
    earliest = 0.2 if lasts > 14 else 0.45
    latest = max(earliest, (days - 2 - lasts) / days) if lasts < days else earliest + 0.1
    start = window.start + int(days * rng.uniform(earliest, latest) * DAY)
    if kind is _LATE:
        start = _midnight_of_workday(start, holidays(window))
    return Spell(start, min(window.end, start + int(lasts * DAY)), kind.change, code)


def _midnight_of_workday(ms: int, free_days: list[date]) -> int:
    day = _local(ms).date()
    while day.weekday() > 4 or day in free_days:
        day += timedelta(days=1)
    return _ms(local_instant(day, time(0, 30), ZONE))


def _starve_reader(life: Life, fleet: list[Life], window: Window) -> None:
    """One pipeline that reads from the failing one finds nothing new until it is repaired."""
    written = {life.pipeline.output(flow) for flow in life.pipeline.flows}
    fault = life.fault
    assert fault is not None
    for reader in fleet:
        reads = {name for flow in reader.pipeline.flows for name in flow.inputs}
        if reads & written and not reader.is_spoken_for and reader.pipeline.kind in ("streaming", "cdc"):
            reader.is_spoken_for = True
            begins = _next_turn(life, fault.start, window) + HOUR  # until it has failed, there is what it wrote last
            reader.innocent.append(Spell(begins, fault.end, lambda turn, _: replace(turn, rows=0.0)))
            return


def _live_with(life: Life, window: Window, rng: Random) -> None:
    """What happens to anybody, and what is special about those that have no fault."""
    if life.pipeline.runs_without_end:
        return
    for change in (_full_refresh, _slow_once, _big_load):
        if rng.random() < 0.3:
            _once(life, window, rng, change)
    if life.is_spoken_for:
        return
    habit = rng.choice(("late", "empty", "workdays", "maintenance", "nothing"))
    if habit == "late":
        life.begins = window.start + int((window.end - window.start) * rng.uniform(0.3, 0.7))
        life.innocent.append(Spell(life.begins, life.begins + DAY // len(life.times), _first_build))
    elif habit == "empty":
        life.empty_share = rng.uniform(0.3, 0.6)
    elif habit == "workdays":
        life.workdays_only = True
    elif habit == "maintenance":
        life.tags["window"], life.times = MAINTENANCE, (time(23, 0),)
        life.innocent.append(Spell(window.start, window.end, _fails_on_saturday, "SOURCE_IN_MAINTENANCE"))


def _once(life: Life, window: Window, rng: Random, change: Callable[[Turn, Spell], Turn]) -> None:
    """One odd run, at a time at which nothing else is wrong."""
    at = int(rng.uniform(window.start + 3 * DAY, window.end - 2 * DAY))
    spells = [*life.innocent, *([life.fault] if life.fault else [])]
    if not any(spell.start - 3 * DAY < at < spell.end + 3 * DAY for spell in spells):
        life.innocent.append(Spell(at, at + DAY // len(life.times), change))


def _full_refresh(turn: Turn, spell: Spell) -> Turn:
    return replace(turn, attempts=(Attempt("USER_ACTION", full_refresh=True, rows_factor=6.0),))


def _slow_once(turn: Turn, spell: Spell) -> Turn:
    return replace(turn, pace=3 * turn.pace)


def _big_load(turn: Turn, spell: Spell) -> Turn:
    return replace(turn, rows=6 * turn.rows)


def _first_build(turn: Turn, spell: Spell) -> Turn:
    return replace(turn, rows=20 * turn.rows, pace=4 * turn.pace)


def _fails_on_saturday(turn: Turn, spell: Spell) -> Turn:
    return _fails(turn, spell) if _local(turn.at).weekday() == 5 and turn.at // WEEK % 2 else turn


# A life as a log


def holidays(window: Window) -> list[date]:
    """Two workdays on which little happens."""
    days = [_local(window.start + (window.end - window.start) * part // 100).date() for part in (55, 80)]
    return [day - timedelta(days=max(0, day.weekday() - 4)) for day in days]


def _is_quiet(day: date, free_days: Collection[date]) -> bool:
    return day.weekday() > 4 or day in free_days


def _planned(life: Life, day: date, free_days: Collection[date]) -> list[int]:
    """When the pipeline runs on this day."""
    rests = life.workdays_only and _is_quiet(day, free_days)
    return [] if rests else [_ms(local_instant(day, clock, ZONE)) for clock in life.times]


def _next_turn(life: Life, ms: int, window: Window) -> int:
    """When the pipeline runs next."""
    free_days, day = holidays(window), _local(ms).date()
    while True:
        for at in _planned(life, day, free_days):
            if at >= ms:
                return at
        day += timedelta(days=1)


def turns(life: Life, window: Window, rng: Random) -> Iterator[Turn]:
    """The requests as they come: habits first, then what is special about the time."""
    free_days = set(holidays(window))
    day = _local(window.start).date()
    while day <= _local(window.end).date():
        is_quiet = _is_quiet(day, free_days)
        for planned in _planned(life, day, free_days):
            at = planned + rng.randrange(3 * MINUTE)
            if not life.begins <= at < window.end - 90 * MINUTE:
                continue
            rows = (1 + life.weekly_growth) ** ((at - window.start) / WEEK) * rng.lognormvariate(0, 0.04)
            rows *= life.weekend if is_quiet else 1
            if life.empty_share:
                rows *= 0 if rng.random() < life.empty_share else rng.lognormvariate(0, 0.3)
            usual = Turn(at, pace=rng.lognormvariate(0, 0.05), rows=rows)
            yield from _special(replace(usual, attempts=_mostly_well(life, rng)), usual, life)
        day += timedelta(days=1)


def _mostly_well(life: Life, rng: Random) -> tuple[Attempt, ...]:
    """Now and then attempts fail and a retry heals it, or somebody stops a run."""
    failing: list[Attempt] = []
    cause = "JOB_TASK"
    while rng.random() < (0.3 if failing else life.flakiness) and len(failing) < 2:
        passing = _failure(rng.choice(("TASK_WRITE_FAILED", "EXECUTOR_LOST", "CONNECTION_RESET")))
        failing.append(Attempt(cause, "FAILED", failure=passing))
        cause = "RETRY_ON_FAILURE"
    # Where there is a deadline, a run that is stopped misses it: that would be no innocent.
    is_stopped = not failing and rng.random() < 0.004 and "deadline" not in life.tags
    return (*failing, Attempt(cause, "CANCELED" if is_stopped else "COMPLETED"))


def _special(turn: Turn, usual: Turn, life: Life) -> Iterator[Turn]:
    """What becomes of a turn; in a special time nothing else goes wrong."""
    spells = [*([life.fault] if life.fault else []), *life.innocent]
    spell = next((spell for spell in spells if spell.holds(turn.at)), None)
    changed = turn if spell is None else spell.change(usual, spell)
    if changed is not None:
        yield changed


def play_life(life: Life, window: Window, seed: int) -> Journal:
    """The whole log of a pipeline."""
    rng = Random(f"life of {life.pipeline.name} {seed}")
    journal = Journal(life.pipeline, rng)
    if life.pipeline.kind == "gateway":
        play_gateway(journal, Attempt("USER_ACTION", "RUNNING"), window.start, window.end, new_id(rng))
    else:
        for turn in turns(life, window, rng):
            _play(journal, life.pipeline, turn)
    journal.runs.sort(key=lambda run: run.first_event)
    journal.events.sort(key=lambda event: (event.ts, event.sequence["control_plane_seq_no"]))
    return journal


def _play(journal: Journal, pipeline: Pipeline, turn: Turn) -> None:
    journal.pipeline = replace(pipeline, run_seconds=round(pipeline.run_seconds * turn.pace))
    request_id = None if "no_request_ids" in pipeline.quirks else new_id(journal.rng)
    first, *others = pipeline.flows
    flows = (replace(first, rules=first.rules[:-1]), *others) if turn.loses_rule else None
    at, head = turn.at, ""
    for number, attempt in enumerate(turn.attempts, 1):
        special = replace(attempt, rows_factor=attempt.rows_factor * turn.rows, flows=flows)
        run = play(journal, special, at, number, request_id)
        run.request_id = head = head or run.request_id
        at = (run.ended_at or at) + journal.rng.randint(15, 90) * 1000


# Flows without end


def play_stream(life: Life, window: Window, seed: int) -> tuple[Journal, list[Fault]]:
    """A continuous pipeline: its backlog has a daily wave, once grows for half a day, and once a flow stalls."""
    rng = Random(f"life of {life.pipeline.name} {seed}")
    journal = Journal(life.pipeline, rng)
    span = window.end - window.start
    grows = window.start + int(span * rng.uniform(0.45, 0.6))
    stalls = window.start + int(span * rng.uniform(0.7, 0.9))
    repaired = stalls + int(rng.uniform(5, 20) * HOUR)

    def waiting(ts: int) -> int:
        hours = min(ts - grows, 14 * HOUR) / HOUR if grows <= ts < grows + 18 * HOUR else 0
        wave = 1.3 - abs(ts % DAY - DAY / 2) / DAY
        return round(20_000 * wave * 1.3**hours * rng.uniform(0.97, 1.03))

    for flow in life.pipeline.flows:
        journal.troubled_backlogs[flow.name] = waiting
    stopped = Attempt("USER_ACTION", "CANCELED")
    play_continuous(journal, stopped, window.start, repaired, new_id(rng), stalls)
    play_continuous(journal, Attempt("USER_ACTION", "RUNNING"), repaired + MINUTE, window.end, new_id(rng))
    journal.events.sort(key=lambda event: (event.ts, event.sequence["control_plane_seq_no"]))
    ids = (life.pipeline.id,)
    return journal, [
        Fault("backlog grows", ids, _utc(grows), _utc(grows + 7 * HOUR), _utc(grows + 18 * HOUR), _BACKLOG),
        Fault("flow stalls", ids, _utc(stalls), _utc(stalls + HOUR), _utc(repaired), _STALL),
    ]


# Onto the disk


def generate(folder: Path, *, pipelines: int = 100, days: int = 60, seed: int, end: datetime) -> dict[str, Any]:
    """Write logs, monitoring.yaml and truth.json into `folder`; returns the truth, with `faults` as `Fault`s."""
    stop = _ms(end)
    window = Window(stop - days * DAY, stop)
    fleet, planted = lives(pipelines, window, seed)
    rng = Random(f"places {seed}")
    (folder / "logs").mkdir(parents=True)
    faults: list[Fault] = []
    runs: dict[str, list[RunTruth]] = {}
    events = 0
    for life in fleet:
        if life.pipeline.kind == "continuous":
            journal, found = play_stream(life, window, seed)
            faults += found
        else:
            journal = play_life(life, window, seed)
        events += len(journal.events)
        runs[life.pipeline.id] = journal.runs
        write_files(folder / "logs", FileSet(life.pipeline.name, (journal,)), rng)
    faults += [_fault(kind, together, runs, window) for kind, together in planted]
    truth = {"end": end, "events": events, "faults": [fault._asdict() for fault in faults]}
    (folder / "truth.json").write_bytes(orjson.dumps(truth, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z))
    (folder / "monitoring.yaml").write_text(_settings(fleet, window), encoding="utf-8")
    return {**truth, "faults": faults}


def _fault(kind: Kind, together: list[Life], runs: dict[str, list[RunTruth]], window: Window) -> Fault:
    spell = together[0].fault
    assert spell is not None
    ids = tuple(sorted(life.pipeline.id for life in together))
    per_day = min(len(life.times) for life in together)
    # What is wrong until the next run is wrong for a while after the spell.
    until = min(spell.end + DAY // per_day, window.end)
    known = min(
        _known(kind, life, spell, [run for run in runs[life.pipeline.id] if spell.holds(run.first_event)])
        for life in together
    )
    return Fault(kind.name, ids, _utc(spell.start), _utc(min(known, until)), _utc(until), kind.rules)


def _known(kind: Kind, life: Life, spell: Spell, runs: list[RunTruth]) -> int:
    """When a fault can be known in one of its pipelines; `runs` began in its time."""
    if kind is _LATE:
        return _ms(local_instant(_local(spell.start).date(), time(6), ZONE))
    if kind.change is _silent:
        return spell.start + 3 * DAY // len(life.times)
    if kind.change is _hangs:
        return min((run.first_event + 2 * life.pipeline.run_seconds * SECOND for run in runs), default=spell.end)
    if kind.change is _grows:
        return spell.start + 4 * WEEK
    if kind.change is _passes_less_and_less:
        return spell.start + 2 * WEEK
    ends = {run.request_id: run.ended_at for run in runs if run.ended_at is not None}  # of last attempts
    return sorted(ends.values())[kind.runs - 1] if len(ends) >= kind.runs else spell.end


def _settings(fleet: list[Life], window: Window) -> str:
    """The monitoring.yaml of the fleet."""
    owners = [{"match": f"{layer}_*", "owner": owner, "tags": {"layer": layer}} for layer, owner in OWNERS.items()]
    tagged = [{"match": life.pipeline.name, "tags": life.tags} for life in fleet if life.tags]
    settings = {
        "time_zone": ZONE,
        "warehouse": {"path": "./warehouse"},
        "sources": [{"type": "files", "path": "./logs"}],
        "pipelines": {"settings": owners + tagged},
        "calendars": [
            {
                "name": "workdays",
                "weekdays": ["mon", "tue", "wed", "thu", "fri"],
                "holidays": [day.isoformat() for day in holidays(window)],
            }
        ],
        "slos": [{"tags": {"deadline": DEADLINE}, "ready_by": "06:00", "calendar": "workdays"}],
        "maintenance": [{"tags": {"window": MAINTENANCE}, "weekdays": ["sat"], "from": "22:00", "to": "04:00"}],
    }
    return orjson.dumps(settings, option=orjson.OPT_INDENT_2).decode() + "\n"  # JSON is YAML


def _ms(at: datetime) -> int:
    return int(at.timestamp()) * 1000


def _utc(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, tz=timezone.utc)


def _local(ms: int) -> datetime:
    return _utc(ms).astimezone(ZoneInfo(ZONE))


def read_faults(folder: Path) -> list[Fault]:
    """The faults of a fleet that was written before."""
    rows = orjson.loads((folder / "truth.json").read_bytes())["faults"]
    times = ("began_at", "known_at", "ended_at")
    return [
        Fault(**{**row, **{name: datetime.fromisoformat(row[name].replace("Z", "+00:00")) for name in times}})._replace(
            pipeline_ids=tuple(row["pipeline_ids"]), rules=tuple(row["rules"])
        )
        for row in rows
    ]
