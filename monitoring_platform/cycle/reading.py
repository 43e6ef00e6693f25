"""Reading one chunk of one log: what runs in the reading threads and processes, so it imports little."""

from __future__ import annotations

import multiprocessing
from datetime import datetime
from multiprocessing import forkserver
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from monitoring_platform.config import Settings
from monitoring_platform.event_log.normalise import Normalised, Place, normalise
from monitoring_platform.event_log.redact import Policy
from monitoring_platform.event_log.table_shape import normalise_table
from monitoring_platform.sources.base import Chunk, Cursor, Log, Source

_LEAST_CHUNK = 1000


def policy_of(settings: Settings) -> Policy:
    """The redaction policy that the settings ask for."""
    redaction = settings.redaction
    return Policy(redaction.secret_references == "mask", redaction.persons == "pseudonym")


def chunk_limit(settings: Settings) -> int:
    """Rows of one chunk: bounds what all open reads hold together."""
    return max(_LEAST_CHUNK, settings.ingest.batch_events // settings.ingest.max_concurrent_streams)


def warm_up() -> None:
    """Start the server that reading processes are forked from; it imports this module while the caller goes on."""
    # PyArrow imports pandas, if it is there, at the first array that it makes of a list.
    multiprocessing.get_context("forkserver").set_forkserver_preload([__name__, "pandas"])
    forkserver.ensure_running()


def packed(
    source: Source, log: Log, cursor: Cursor | None, limit: int, policy: Policy, now: datetime
) -> tuple[list[pa.Buffer], Chunk]:
    """`read_chunk` for another process: tables as Arrow streams, which pass far faster than pickled ones."""
    rows, chunk = read_chunk(source, log, cursor, limit, policy, now)
    return [_stream(table) for table in rows], chunk


def unpacked(result: tuple[list[pa.Buffer], Chunk]) -> tuple[Normalised, Chunk]:
    """What `packed` gave, in the process that asked for it; nothing is copied."""
    streams, chunk = result
    return Normalised(*(ipc.open_stream(stream).read_all() for stream in streams)), chunk


def _stream(table: pa.Table) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def read_chunk(
    source: Source, log: Log, cursor: Cursor | None, limit: int, policy: Policy, now: datetime
) -> tuple[Normalised, Chunk]:
    """One chunk of a log, normalised; the chunk comes back without its raw rows."""
    return normalised(source.read(log, cursor, limit), log, policy, now)


def normalised(chunk: Chunk, log: Log, policy: Policy, now: datetime) -> tuple[Normalised, Chunk]:
    """A chunk's rows in canonical form; the chunk comes back without its raw rows."""
    place = Place(chunk.kind or log.kind, log.location, log.pipeline_id)
    tables: list[pa.Table] = []
    rows: list[Any] = []
    for item in chunk.rows:
        (tables if isinstance(item, pa.Table) else rows).append(item)
    parts = [normalise(rows, place, now=now, policy=policy)]
    parts += [normalise_table(table, place, now=now, policy=policy) for table in tables]
    return Normalised(*(pa.concat_tables(same) for same in zip(*parts))), chunk._replace(rows=())
