"""Union: what landed since the last union, each event once. Append-only; one writer at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.cycle import quarantine
from monitoring_platform.event_log.normalise import quarantine_id
from monitoring_platform.event_log.schema import QUARANTINE
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.store import Added, Warehouse

STEP = "union"
_GROUP_ROWS = 300_000
_KEY = list(contracts.UNION.keys)

#: One row per key: the fuller row first (an untruncated one), then a fixed order, so that the choice never depends on
#: the order of arrival within what landed. `known` are the same keys already in the union.
_RANKED = """
SELECT n.pipeline_id, n.event_id, n._ingest_id, n._row, n.event_ts, n.event_type, n.level,
       row_number() OVER (PARTITION BY n.pipeline_id, n.event_id
                          ORDER BY coalesce(array_contains(n.flags, 'truncated'), false), n.event_ts,
                                   n.event_type NULLS LAST, n.level NULLS LAST, n._ingest_id, n._row) AS choice
FROM landed n
"""
_NEW = """
SELECT l.* FROM landed l
JOIN (SELECT r._ingest_id, r._row FROM ranked r
      LEFT ANTI JOIN known k ON k.pipeline_id = r.pipeline_id AND k.event_id = r.event_id
      WHERE r.choice = 1) c
ON c._ingest_id = l._ingest_id AND c._row = l._row
"""
#: Same key, but another time, type or level than the row that stands: not the same event.
_CONFLICTS = """
SELECT l.pipeline_id, l.event_id, l.event_ts, l.event_type, l.level, l.message, l.details, l._source, l._log,
       l._ingested_at
FROM landed l
JOIN (SELECT r._ingest_id, r._row
      FROM ranked r
      JOIN (SELECT pipeline_id, event_id, event_ts, event_type, level FROM ranked WHERE choice = 1) w
        ON w.pipeline_id = r.pipeline_id AND w.event_id = r.event_id
      LEFT JOIN known k ON k.pipeline_id = r.pipeline_id AND k.event_id = r.event_id
      WHERE NOT (r.event_ts <=> coalesce(k.event_ts, w.event_ts)
             AND r.event_type <=> CASE WHEN k.event_id IS NULL THEN w.event_type ELSE k.event_type END
             AND r.level <=> CASE WHEN k.event_id IS NULL THEN w.level ELSE k.level END)) c
ON c._ingest_id = l._ingest_id AND c._row = l._row
"""


@dataclass
class United:
    """What one union did."""

    added: int = 0  # events that were not there before
    repeated: int = 0  # landed rows whose event was there already
    conflicts: int = 0  # rows new in quarantine because their id stands for another event
    lags: list[pa.ChunkedArray] = field(default_factory=list, repr=False)  # from each new event to its being ingested

    def lag_seconds(self) -> dict[str, float]:
        """Median (`p50`) and longest (`max`) time from an event to its being ingested; none without new events."""
        lags = pa.chunked_array([chunk for lag in self.lags for chunk in lag.chunks], pa.duration("us"))
        micros = pc.cast(lags.drop_null(), pa.int64())
        seconds = pc.divide(pc.cast(micros, pa.float64(), safe=False), 1e6)  # a clock may be centuries off
        if not len(seconds):
            return {}
        return {"p50": pc.quantile(seconds, 0.5)[0].as_py(), "max": pc.max(seconds).as_py()}


def unite(warehouse: Warehouse, progress: Callable[[str], None] = lambda text: None) -> United:
    """Append what landed since the mark, in groups of bounded size. Redoing it adds nothing."""
    warehouse.create(contracts.BOOKS)
    landed, mark = warehouse.added(contracts.LANDING, warehouse.mark(STEP))
    report = United()
    for group in landed.groups(_GROUP_ROWS):
        _unite_group(warehouse, group, report)
        progress(f"{report.added:,} events new in {contracts.UNION.name}")
    warehouse.advance(STEP, mark)
    return report


def _unite_group(warehouse: Warehouse, landed: Added, report: United) -> None:
    spark = warehouse.spark
    keys = landed.columns([*_KEY, "event_date", "event_ts", "_ingested_at"])
    distinct = keys.group_by(_KEY).aggregate([]).num_rows
    landed.frame(spark).createOrReplaceTempView("landed")
    known = warehouse.arrow(
        contracts.UNION,
        [*_KEY, "event_ts", "event_type", "level"],
        {"event_date": pc.unique(keys["event_date"]).to_pylist()},
    )
    known = known.join(keys.select(_KEY), _KEY, join_type="left semi")
    if not known.num_rows and distinct == keys.num_rows:  # nearly always: nothing is repeated
        warehouse.append(contracts.UNION, spark.table("landed"))
    else:
        warehouse.frame(known).createOrReplaceTempView("known")
        spark.sql(_RANKED).createOrReplaceTempView("ranked")
        if known.num_rows < distinct:
            warehouse.append(contracts.UNION, spark.sql(_NEW))
        report.conflicts += quarantine.keep(warehouse, _as_quarantine(spark.sql(_CONFLICTS).toArrow()))
    new = keys.join(known.select(_KEY), _KEY, join_type="left anti") if known.num_rows else keys
    report.lags.append(pc.subtract(new["_ingested_at"], new["event_ts"]))
    report.added += distinct - known.num_rows
    report.repeated += keys.num_rows - (distinct - known.num_rows)


def _as_quarantine(conflicts: pa.Table) -> pa.Table:
    rows = []
    for row in conflicts.to_pylist():
        raw = f"{row['event_ts']} {row['event_type']} {row['level']} {row['message']} {row['details']}"
        rows.append(
            {
                "quarantine_id": quarantine_id(row["pipeline_id"], row["event_id"], raw),
                "reason": "id conflict: this pipeline has another event with this id; the first one is kept",
                "pipeline_id": row["pipeline_id"],
                "event_id": row["event_id"],
                "raw": raw,
                "_source": row["_source"],
                "_log": row["_log"],
                "position": "",
                "_ingested_at": row["_ingested_at"],
            }
        )
    return pa.Table.from_pylist(rows, QUARANTINE)
