"""Reading a log by time: which stretch comes next, what of it is new, and the cursor after it.

A cursor holds for every way to the log: `high`, the newest event, and `tally`, what was delivered. `spans` are the
stretches that a read still has to go through, and `at` how far it is in the first of them:

    all     the whole log, the first time
    new     what came after the newest event, while the pipeline is at work
    again   the overlap, when something settled since the last read (see `discovery._position`)
    month   a month that has more events than were delivered, counted once a day where SQL can
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta, timezone
from typing import Any

from monitoring_platform.sources.base import Chunk, Cursor, Facts
from monitoring_platform.sources.workspace.paths import Batch, Span, Spot
from monitoring_platform.sources.workspace.tally import HOUR, MONTH, Stamps, Tally

_REMEMBERED = 1000  # ids of one time, so that a cursor stays small: more are delivered twice and the union drops them


def advance(
    facts: Facts,
    cursor: Cursor | None,
    path: str,
    overlap_hours: float,
    fetch: Callable[[Span, Spot | None, int], Batch],
    months: Callable[[], dict[int, int]] | None,
    limit: int,
) -> Chunk:
    """One chunk of a log that is read by time, and the cursor after it."""
    before = cursor or {}
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
    ids = {other for time, other in timed if time == micros} | (spot.ids if spot and spot.micros == micros else set())
    return Spot(micros, id_, frozenset(ids if len(ids) <= _REMEMBERED else ()))


def _spot(stored: list[Any] | None) -> Spot | None:
    return Spot(stored[0], stored[1], frozenset(stored[2])) if stored else None


def _stored(spot: Spot | None) -> list[Any] | None:
    return [spot.micros, spot.id, sorted(spot.ids)] if spot else None
