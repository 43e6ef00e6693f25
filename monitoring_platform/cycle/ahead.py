"""Reading ahead: while Dagster is imported here, other processes read the first logs of a new warehouse.

Importing keeps one core busy for seconds and the others idle. What is read ahead is what the ingest would read: the
first chunk of each log. The results are held until it asks for them, up to a limit.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import datetime
from typing import Any

from monitoring_platform.config import Settings
from monitoring_platform.cycle.reading import chunk_limit, packed, policy_of, warm_up
from monitoring_platform.sources import Log, Look, SourceError, configured
from monitoring_platform.sources.delta import DeltaLogs
from monitoring_platform.sources.files import Files

_COMPUTING = (Files, DeltaLogs)  # what costs computing to read, not waiting
_HELD_BYTES = 128 * 1024 * 1024


class ReadAhead:
    """First chunks of logs, read by a pool of processes that the ingest takes over."""

    def __init__(self, settings: Settings, now: datetime) -> None:
        warm_up()
        workers = min(settings.ingest.max_concurrent_streams, os.cpu_count() or 1)
        self.pool = ProcessPoolExecutor(workers, multiprocessing.get_context("forkserver"))
        self._reads: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()
        self._is_over = False
        threading.Thread(target=self._run, args=(settings, now), daemon=True).start()

    def take(self, log: Log) -> Future[Any] | None:
        """The read of this log's first chunk if it was begun. From the first call on nothing more is begun."""
        with self._lock:
            self._is_over = True
            return self._reads.pop(log.location, None)

    def _run(self, settings: Settings, now: datetime) -> None:
        pending: set[Future[Any]] = set()
        held = 0
        for source in configured(settings):
            if not isinstance(source, _COMPUTING):
                continue
            try:
                logs = source.listing(Look(now)).logs
            except SourceError:
                continue  # the ingest reports it
            for log in logs:
                if len(pending) > (os.cpu_count() or 1):
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    held += sum(_bytes(read) for read in done)
                with self._lock:
                    if self._is_over or held > _HELD_BYTES:
                        return
                    read = self.pool.submit(packed, source, log, None, chunk_limit(settings), policy_of(settings), now)
                    self._reads[log.location] = read
                pending.add(read)


def _bytes(read: Future[Any]) -> int:
    return 0 if read.exception() else sum(stream.size for stream in read.result()[0])


_ahead: dict[str, ReadAhead] = {}


def begin(settings: Settings, now: datetime) -> None:
    """Start reading what the next ingest of this configuration in this process will ask for."""
    _ahead[str(settings.config_path)] = ReadAhead(settings, now)


def begun(settings: Settings) -> ReadAhead | None:
    """What was begun for this configuration; the caller ends its pool."""
    return _ahead.pop(str(settings.config_path), None)
