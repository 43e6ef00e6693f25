"""Local times of the configuration as instants: maintenance, quiet hours, deadlines; clock changes by zone."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from monitoring_platform.config import WEEKDAYS, Maintenance, QuietHours, instant

if TYPE_CHECKING:
    from monitoring_platform.health.rules import Pipeline


def local_instant(day: date, at: time, zone: str) -> datetime:
    """A local time of a day as an instant; one that a clock change skips is the instant of the change."""
    wanted = datetime.combine(day, at, ZoneInfo(zone))
    found = wanted.astimezone(timezone.utc)
    if found.astimezone(ZoneInfo(zone)).time() != at:  # in the gap: as far after it as the time is in it
        found = datetime.combine(day, at, ZoneInfo(zone)).replace(fold=1).astimezone(timezone.utc)
        found = _end_of_gap(found, ZoneInfo(zone))
    return found


def _end_of_gap(near: datetime, zone: ZoneInfo) -> datetime:
    """The instant of the clock change within the hours around."""
    low, high = near - timedelta(hours=3), near + timedelta(hours=3)
    before = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)


def is_between(at: datetime, start: time, end: time, zone: str) -> bool:
    """Whether the local time of an instant is in [start, end); over midnight if the end is not later."""
    local = at.astimezone(ZoneInfo(zone)).time()
    return start <= local < end if start < end else local >= start or local < end


def in_maintenance(entry: Maintenance, zone: str, pipeline: Pipeline, at: datetime) -> bool:
    """Whether trouble of the pipeline that begins at this instant is expected."""
    if not pipeline.suits(entry):
        return False
    zone = entry.time_zone or zone
    if entry.start is not None and entry.end is not None:
        return instant(entry.start, zone) <= at < instant(entry.end, zone)
    assert entry.from_time is not None
    assert entry.to_time is not None
    if not is_between(at, entry.from_time, entry.to_time, zone):
        return False
    local = at.astimezone(ZoneInfo(zone))
    is_after_midnight = entry.from_time >= entry.to_time and local.time() < entry.to_time
    day = local.date() - timedelta(days=1) if is_after_midnight else local.date()
    return WEEKDAYS[day.weekday()] in entry.weekdays


def end_of_quiet(entry: QuietHours, zone: str, at: datetime) -> datetime:
    """When a message of this instant may go out."""
    zone = entry.time_zone or zone
    if not is_between(at, entry.from_time, entry.to_time, zone):
        return at
    local = at.astimezone(ZoneInfo(zone))
    day = local.date() if local.time() < entry.to_time else local.date() + timedelta(days=1)
    return local_instant(day, entry.to_time, zone)
