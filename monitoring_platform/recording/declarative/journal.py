"""The log of one run: a line for each event, in the shape in which the REST API would give it.

A line is written whole and at once, so that a run that is killed leaves what it said. Beside the log lies a file
`<log>.running` as long as it runs, locked by the process: where one is left without its lock, that process is gone and
the run is lost.
"""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid4, uuid5

from monitoring_platform.event_log import jsontext
from monitoring_platform.event_log.redact import redact_value
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
        self._marker = _marker(self.path).open("w")
        fcntl.flock(self._marker, fcntl.LOCK_EX)
        self._file = self.path.open("ab", buffering=0)

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

    def close(self) -> None:
        """The run has ended and said so."""
        self._file.close()
        _marker(self.path).unlink(missing_ok=True)
        self._marker.close()


def close_lost(folder: Path) -> None:
    """End the logs of runs that are gone: each gets the state FAILED as of its last line."""
    for marker in folder.glob("*/*.jsonl.running"):
        with suppress(OSError), marker.open("r+") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused: it is still running
            _end(marker.with_suffix(""))
            marker.unlink(missing_ok=True)


def _end(log: Path) -> None:
    lines = log.read_bytes().split(b"\n") if log.exists() else []
    with suppress(*jsontext.INVALID):
        origin = jsontext.loads(lines[0])["origin"] if lines and lines[0] else None
        if origin is None:
            return
        seen = datetime.fromtimestamp(log.stat().st_mtime, timezone.utc)
        event = _event(origin, f"{origin['update_id']}-lost", seen, "update_progress", {"state": "FAILED"})
        text = _line(event | {"level": "ERROR", "message": _LOST}, [{"class_name": "RunLost", "message": _LOST}])
        with log.open("ab", buffering=0) as file:
            file.write(b"\n" * bool(lines[-1]) + text)  # its last line may have been cut


def _marker(log: Path) -> Path:
    return log.with_name(f"{log.name}.running")


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
