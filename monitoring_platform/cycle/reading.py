"""Reading one chunk of one log: what runs in the reading threads and processes, so it imports little."""

from __future__ import annotations

from datetime import datetime

from monitoring_platform.event_log.normalise import Normalised, Place, normalise
from monitoring_platform.event_log.redact import Policy
from monitoring_platform.sources.base import Chunk, Cursor, Log, Source


def read_chunk(
    source: Source, log: Log, cursor: Cursor | None, limit: int, policy: Policy, now: datetime
) -> tuple[Normalised, Chunk]:
    """One chunk of a log, normalised; the chunk comes back without its raw rows."""
    return normalised(source.read(log, cursor, limit), log, policy, now)


def normalised(chunk: Chunk, log: Log, policy: Policy, now: datetime) -> tuple[Normalised, Chunk]:
    place = Place(log.kind, log.location, log.pipeline_id)
    return normalise(chunk.rows, place, now=now, policy=policy), chunk._replace(rows=())
