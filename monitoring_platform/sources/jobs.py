"""Recorded jobs: what `recording` writes, as event logs of pipelines of type JOB.

A place has the signs of life of runs under way, one small file each, and two tables: events of runs, and the metrics
whose rows make runs ended. A run whose file was not renewed for as long as it promised is lost: it counts as failed
at the time when it was last heard of. If it ends after all, that end is later, and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from monitoring_platform.config import JobsSource
from monitoring_platform.event_log import job_events
from monitoring_platform.event_log.normalise import Delivered, Unreadable
from monitoring_platform.sources.base import Chunk, Cursor, Listing, Log, Look
from monitoring_platform.sources.delta import DeltaLogs
from monitoring_platform.sources.paths import resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TABLES = ("pipeline_run_events", "pipeline_metrics")
_RUNNING = "_running"


@dataclass
class Jobs:
    """The records of one place."""

    name: str
    path: str
    now: datetime | None = None  # when the logs were listed: who is lost depends on it

    @classmethod
    def from_settings(cls, entry: JobsSource, base_dir: Path) -> Jobs:
        return cls(str(entry.name), resolve(base_dir, entry.path))

    def listing(self, look: Look) -> Listing:
        self.now = look.now
        return Listing([Log(self.path, self.name, "jobs")] if Path(self.path).is_dir() else [])

    def position(self, log: Log) -> Any:
        tables = [self._table(name).position(self._log(name)) if self._has(name) else None for name in _TABLES]
        running = [[sign.stem, self._state(sign)] for sign in self._signs()]
        return [*tables, running]

    def pipelines(self, log: Log, cursor: Cursor | None) -> set[str]:
        return set()  # reading tells

    def read(
        self, log: Log, cursor: Cursor | None, limit: int, engine: Callable[[], SparkSession] | None = None
    ) -> Chunk:
        after: Cursor = {"position": self.position(log)}  # before the rows: what is added in between is news again
        rows: list[Delivered | Unreadable] = []
        for sign in self._signs():
            rows += self._of_run(sign)
        more = False
        for name in _TABLES:
            after[name] = cursor.get(name) if cursor else None
            if self._has(name):
                chunk = self._table(name).read(self._log(name), after[name], limit, engine)
                rows += [row for part in chunk.rows for row in _of_table(name, part)]
                after[name], more = chunk.cursor, more or chunk.more
        return Chunk(rows, {**after, "position": None} if more else after, more)

    # ---- the tables ----

    def _log(self, table: str) -> Log:
        return Log(f"{self.path}/{table}", self.name, "delta")

    def _table(self, table: str) -> DeltaLogs:
        return DeltaLogs(self.name, f"{self.path}/{table}", None, 24.0)

    def _has(self, table: str) -> bool:
        return (Path(self.path) / table / "_delta_log").is_dir()

    # ---- runs under way ----

    def _signs(self) -> list[Path]:
        return sorted((Path(self.path) / _RUNNING).glob("*.json"))

    def _state(self, sign: Path) -> Any:
        """What is new about a run under way when it changes: how much it told, and since when it is lost."""
        content = _content(sign)
        if content is None:
            return None
        if isinstance(content, Unreadable):
            return content.raw
        return [len(content["events"]), content["last_seen"] if self._is_lost(content) else None]

    def _is_lost(self, content: Any) -> bool:
        last_seen = datetime.fromisoformat(content["last_seen"])
        return self.now is not None and self.now - last_seen > timedelta(seconds=content["silence_seconds"])

    def _of_run(self, sign: Path) -> Iterator[Delivered | Unreadable]:
        content = _content(sign)
        if content is None:
            return
        if isinstance(content, Unreadable):
            yield content
            return
        position = f"{_RUNNING}/{sign.name}"
        for event in content["events"]:
            yield Delivered(event, position)
        if self._is_lost(content):
            run = job_events.Run(content["run_id"], content["pipeline_name"])
            last_seen = datetime.fromisoformat(content["last_seen"])
            yield Delivered(job_events.lost(run, last_seen, content["silence_seconds"]), position)


def _content(sign: Path) -> Any:
    """What a file says; None if its run has just ended, `Unreadable` if it cannot be understood."""
    raw = b""
    try:
        raw = sign.read_bytes()
        content = orjson.loads(raw)
        datetime.fromisoformat(content["last_seen"])
        return content
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"no sign of life of a run ({type(error).__name__}): remove the file"
        return Unreadable(reason, raw.decode(errors="replace"), f"{_RUNNING}/{sign.name}")


def _of_table(table: str, rows: Any) -> Iterator[Delivered | Unreadable]:
    for number, row in enumerate(rows.to_pylist(), 1):
        position = f"{table}, run {row.get('run_id')}, row {number}"
        if table == "pipeline_run_events":
            yield Delivered({**row, "timestamp": row["timestamp"].isoformat()}, position)
        elif not row.get("run_id") or not row.get("pipeline_name") or not row.get("completed_at"):
            told = {name: None if value is None else str(value) for name, value in row.items()}
            raw = orjson.dumps(told).decode()
            yield Unreadable("no run: run_id, pipeline_name or completed_at is missing", raw, position)
        else:
            for event in job_events.ended(row):
                yield Delivered(event, position)
