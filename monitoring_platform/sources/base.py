"""How a log is reached: the protocol that every access path follows.

A source lists its logs and reads what is new in one of them since a cursor. Sources are only ever read. A cursor is a
small JSON object that belongs to the source, with the `position` it stands for (None inside a log). It is valid after
every chunk; reading again from an older one only delivers rows once more, and the union keeps each once. A new access
path is one module with one class of this shape and one case in `sources/__init__.py`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from monitoring_platform.event_log.normalise import Delivered, Unreadable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: So many attempts in a row that fail for a passing reason, and a source is left alone until the next run.
GIVE_UP_AFTER = 10
#: Set when a run is interrupted: reads that wait for something end.
INTERRUPTED = threading.Event()

Cursor = dict[str, Any]
Facts = dict[str, Any]


class Log(NamedTuple):
    """One readable thing: a file, a table or the log of a pipeline, with the events of one or many pipelines."""

    location: str
    source: str  # name of the source in the configuration
    kind: str  # type of the source
    pipeline_id: str | None = None  # stands in for rows that name none
    facts: Facts | None = None  # what the source says of the pipeline (JSON), see `workspace.discovery`
    problem: SourceError | None = None  # why it is not to be read, if that is known already


class Look(NamedTuple):
    """What a source goes by when it lists its logs: the time, and what it said of them last time, by location.

    With a deadline (of `time.monotonic`) nothing but the listing is asked for, and it stops there; `resume` is the
    `rest` of a listing that did.
    """

    now: datetime
    known: Mapping[str, Facts] = {}
    failing: Collection[str] = ()  # locations whose last read failed
    deadline: float | None = None
    resume: Any = None


class Listing(NamedTuple):
    """Logs that exist now. `rest`: where to go on, if there was no time for all; None = these are all."""

    logs: list[Log]
    rest: Any = None


class Chunk(NamedTuple):
    """Rows read, one by one or as tables in the log's shape; the cursor after them; whether there is more right now."""

    rows: Iterable[Delivered | Unreadable | pa.Table]
    cursor: Cursor
    more: bool
    kind: str | None = None  # the way that they came, where a source has several


class SourceError(Exception):
    """A log or source cannot be read. `remedy` says what to do about it, `remedy_sql` what to paste, if anything.

    `state` is the ledger's. A transient failure may be gone at the next attempt, not before `wait` seconds have passed;
    any other stays until somebody acts.
    """

    def __init__(
        self,
        reason: str,
        remedy: str,
        state: str = "unreadable",
        *,
        transient: bool = False,
        remedy_sql: str | None = None,
        wait: float = 0.0,
    ) -> None:
        super().__init__(reason)
        self.reason, self.remedy, self.state = reason, remedy, state
        self.transient, self.remedy_sql, self.wait = transient, remedy_sql, wait

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {"transient": self.transient, "remedy_sql": self.remedy_sql, "wait": self.wait}
        return type(self), (self.reason, self.remedy, self.state), kept


class NeedsEngine(Exception):
    """This log can be read through the engine only (deletion vectors, column mapping)."""


class Source(Protocol):
    """One entry of `sources` in the configuration. Instances are small and can be pickled."""

    @property
    def name(self) -> str:
        """Its name in the configuration."""

    def listing(self, look: Look) -> Listing:
        """The logs that exist now. Raises SourceError if that cannot be told: all of them stay as they are."""

    def position(self, log: Log) -> Any:
        """Where the log ends now (JSON); cheap, nothing is opened. There is news if no cursor says so too.

        Raises SourceError.
        """

    def pipelines(self, log: Log, cursor: Cursor | None) -> set[str]:
        """Ids of pipelines in the part not yet read, a hint for registration before reading. Raises SourceError."""

    def read(
        self, log: Log, cursor: Cursor | None, limit: int, engine: Callable[[], SparkSession] | None = None
    ) -> Chunk:
        """About `limit` rows after the cursor. Raises SourceError, or NeedsEngine if `engine` is None but needed."""
