"""Signs of life: one small file for each run under way, rewritten as it goes and removed at its end.

A process that is killed leaves its file, which is how a lost run is told from one that still works.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from monitoring_platform.event_log.job_events import Event, Run


class Signs:
    """The file of one run. `events` is what the run has told so far."""

    def __init__(self, folder: str, run: Run, silence_seconds: float, clock: Callable[[], datetime]) -> None:
        self._path = Path(folder) / f"{run.run_id}.json"
        self._told: dict[str, Any] = {**run._asdict(), "silence_seconds": silence_seconds}
        self._clock, self._events = clock, list[Event]()
        self._over, self._lock = threading.Event(), threading.Lock()

    def begin(self, events: list[Event], beat_seconds: float) -> None:
        """Write the file and keep it fresh until `end`."""
        self.tell(*events)
        threading.Thread(target=self._beat, args=(beat_seconds,), daemon=True, name="monitoring heartbeat").start()

    def tell(self, *events: Event) -> None:
        """Add events, and say that the run is alive."""
        with self._lock:
            if self._over.is_set():
                return
            self._events.extend(events)
            content = orjson.dumps({**self._told, "last_seen": self._clock().isoformat(), "events": self._events})
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft = self._path.with_suffix(".tmp")
            draft.write_bytes(content)
            os.replace(draft, self._path)

    def end(self) -> None:
        """The run has ended, and its metrics say so."""
        with self._lock:
            self._over.set()
            self._path.unlink(missing_ok=True)

    def leave(self) -> None:
        """The run has ended, but its metrics could not be written: what is known stays here."""
        self._over.set()

    def _beat(self, seconds: float) -> None:
        while not self._over.wait(seconds):
            try:
                self.tell()
            except OSError:
                continue  # the next one may work; if none does, the run counts as lost
