"""The log of one run: a line for each event, in the shape in which the REST API would give it.

A line is written whole and at once, so that a run that is killed leaves what it said. Beside the log lies its mark
(`event_log.running`) as long as it runs, renewed and locked by the process. Where one is left without its lock, that
process is gone and the next one ends the log; where there is no next one, whoever reads sees that nobody renews it.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid4, uuid5

from monitoring_platform.event_log import jsontext
from monitoring_platform.event_log.redact import redact_value
from monitoring_platform.event_log.running import SILENCE, SUFFIX, mark_of
from monitoring_platform.recording.declarative.messages import ErrorChain

#: `origin.pipeline_type` of these pipelines.
PIPELINE_TYPE = "SPARK_DECLARATIVE"
_LOST = (
    "[RUN_LOST] the process of this run is gone and said nothing of an end: it was killed, or its machine stopped. "
    "What its flows wrote before is written."
)


class Pipeline(NamedTuple):
    """Which pipeline: the name and the storage of its spec, which together are its identity."""

    name: str
    storage: str

    @property
    def id(self) -> str:
        """The same for each run, on every machine."""
        return str(uuid5(NAMESPACE_URL, f"spark-pipelines:{self.storage}\n{self.name}"))


class Journal:
    """Writes one update's events. `now` is asked for the time of what Spark gives none."""

    def __init__(self, folder: Path, pipeline: Pipeline, now: Callable[[], datetime]) -> None:
        """Raises OSError if nothing can be written there."""
        self.now, self.began, self._written = now, now(), 0
        self.update_id = str(uuid4())
        self._origin: dict[str, str | None] = {
            "pipeline_id": pipeline.id,
            "pipeline_name": pipeline.name,
            "pipeline_type": PIPELINE_TYPE,
            "update_id": self.update_id,
        }
        close_lost(folder)
        self.path = folder / pipeline.id / f"{self.began:%Y%m%dT%H%M%S}-{self.update_id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._mark = mark_of(self.path).open("wb", buffering=0)
        fcntl.flock(self._mark, fcntl.LOCK_EX)
        self._seen, self._lock, self._is_over = self.began, threading.Lock(), threading.Event()
        self._renew(self.began)
        self._file = self.path.open("ab", buffering=0)
        threading.Thread(target=self._beat, args=(SILENCE.total_seconds() / 5,), daemon=True).start()

    def write(
        self,
        event_type: str,
        body: dict[str, Any] | None,
        message: str,
        *,
        at: datetime | None = None,
        level: str = "INFO",
        exceptions: ErrorChain | None = None,
        **origin: str | None,
    ) -> None:
        """Append one event. `body` is what its details hold under its type; null members are left out."""
        self._written += 1
        update = self.update_id
        event = _event(self._origin | origin, f"{update}-{self._written:06}", at or self.now(), event_type, body)
        event["sequence"] = {"data_plane_id": {"instance": update, "seq_no": self._written}}
        self._file.write(_line(event | {"level": level, "message": message}, exceptions))
        self._renew(self.now() if at is None else max(at, self.now()))

    def close(self) -> None:
        """The run has ended and said so."""
        self._is_over.set()
        with self._lock:
            self._file.close()
            mark_of(self.path).unlink(missing_ok=True)
            self._mark.close()

    def _beat(self, seconds: float) -> None:
        while not self._is_over.wait(seconds):
            with suppress(OSError):  # the next one may work; if none does, the run counts as lost
                self._renew(self.now())

    def _renew(self, seen: datetime) -> None:
        """Say that the run lives. The loss must come after all else in the log, whose server may have another clock."""
        with self._lock:
            if self._is_over.is_set():
                return
            self._seen = max(self._seen, seen)
            event = _event(self._origin, f"{self.update_id}-lost", self._seen, "update_progress", {"state": "FAILED"})
            text = _line(event | {"level": "ERROR", "message": _LOST}, [{"class_name": "RunLost", "message": _LOST}])
            os.pwrite(self._mark.fileno(), text, 0)  # always of the same length


def close_lost(folder: Path) -> None:
    """End the logs of runs that are gone: each gets the state FAILED as of its last sign of life."""
    for mark in folder.glob(f"*/*.jsonl{SUFFIX}"):
        with suppress(OSError), mark.open("r+b") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused: it is still running
            _end(mark.with_suffix(""), handle.read())
            mark.unlink(missing_ok=True)


def _end(log: Path, lost: bytes) -> None:
    with suppress(FileNotFoundError), log.open("r+b", buffering=0) as file:  # without a log nothing was said
        written = file.read()
        is_cut = bool(written) and not written.endswith(b"\n")
        file.write(b"\n" * is_cut + lost)


def _event(
    origin: dict[str, str | None], id: str, at: datetime, event_type: str, body: dict[str, Any] | None
) -> dict[str, Any]:
    return {
        "id": id,
        "timestamp": at.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z"),
        "event_type": event_type,
        "origin": _known(origin),
        "details": {event_type: _known(body)} if body is not None else None,
    }


def _line(event: dict[str, Any], exceptions: ErrorChain | None) -> bytes:
    if exceptions:
        event["error"] = {"fatal": event["level"] == "ERROR", "exceptions": exceptions}
    return jsontext.dumps(redact_value(event)).encode() + b"\n"


def _known(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}
