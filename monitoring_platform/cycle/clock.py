"""The only place that asks the system for the time."""

from __future__ import annotations

from datetime import datetime, timezone


def clock(given: str | None) -> datetime:
    """The time that counts as now: what was given (ISO 8601, UTC if it names no zone), else the system's.

    Raises ValueError if the text is no time.
    """
    if given is None:
        return datetime.now(timezone.utc)
    moment = datetime.fromisoformat(given.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
