"""Rows written to tables, as their Delta logs tell it. Tables of another format tell nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple

from monitoring_platform.recording.declarative.graph import Name, quoted

_METRICS = {"num_output_rows": "numOutputRows", "num_output_bytes": "numOutputBytes"}


class Written(NamedTuple):
    """One commit that wrote rows. `metrics` as in a flow_progress event."""

    table: Name
    version: int
    at: datetime
    metrics: dict[str, int]


def rows_written(session: Any, since: Mapping[Name, datetime]) -> Iterator[Written]:
    """The commits to each table from the given time on; a table that cannot be asked has none."""
    for table, begin in since.items():
        try:
            history = session.sql(f"DESCRIBE HISTORY {quoted(table)}").selectExpr(
                "version", "unix_micros(timestamp) AS micros", "operationMetrics AS metrics"
            )
            # Stores keep the times of commits to the second.
            found = history.where(f"micros >= {int(begin.timestamp()) * 1_000_000}").orderBy("version").collect()
        except Exception:  # not Delta, not there, or the server is gone: that is unknown then
            continue
        for row in found:
            metrics = counted(row["metrics"] or {})
            if metrics:
                at = datetime.fromtimestamp(row["micros"] / 1_000_000, timezone.utc)
                yield Written(table, row["version"], at, metrics)


def counted(metrics: Mapping[str, str]) -> dict[str, int]:
    """What a commit counted, in an event's terms; nothing for a commit that counted no rows."""
    found = {name: int(metrics[source]) for name, source in _METRICS.items() if source in metrics}
    return found if "num_output_rows" in found else {}
