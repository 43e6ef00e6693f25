"""Bring a mart up to date: recompute the rows of what new events touched, write only rows that changed.

A mart's mark is the version of the union that its rows reflect. Redoing a refresh changes nothing, so a kill between
the rows and the mark is harmless; `rebuild` computes the same rows from everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.marts.registry import BY_NAME, FLOW_METRICS, MARTS, PIPELINE_RUNS, Mart
from monitoring_platform.warehouse import contracts, delta_log
from monitoring_platform.warehouse.delta_log import DataFile
from monitoring_platform.warehouse.store import Mark, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEYS = ["pipeline_id", "update_id"]


@dataclass
class Refreshed:
    """What one refresh did to a mart."""

    mart: str
    touched: int = 0  # updates, events or pipelines that new events touched
    written: int = 0  # rows added or changed
    removed: int = 0  # rows that no longer follow from the events


class _News(NamedTuple):
    files: list[DataFile]
    touched: pa.Table  # pipeline_id, update_id (not null)
    dates: set[str]  # UTC dates of their new events
    mark: Mark


def refresh(warehouse: Warehouse, mart: Mart) -> Refreshed:
    """Recompute what changed since the mart's mark."""
    warehouse.create((contracts.UNION, contracts.PROGRESS, mart.table))
    news = _news(warehouse, mart)
    report = Refreshed(mart.name)
    if news is None or not news.files:
        return report
    report.touched = news.touched.num_rows
    if mart.scope == "event":
        warehouse.read_files(news.files).createOrReplaceTempView("events")
        _write(warehouse, mart, warehouse.spark.sql(mart.sql), report, by_event=True)
    elif report.touched:
        pipelines = pc.unique(news.touched["pipeline_id"])
        rows = (
            _pipeline_rows(warehouse, mart, pipelines)
            if mart.scope == "pipeline"
            else _update_rows(warehouse, mart, news)
        )
        _write(warehouse, mart, rows, report, pipelines=pipelines, touched=news.touched)
    warehouse.advance(mart.name, news.mark)
    return report


def rebuild(warehouse: Warehouse, mart: Mart) -> int:
    """Compute the whole mart from the union, replace it in one commit, and return its number of rows."""
    warehouse.create((contracts.UNION, contracts.PROGRESS, mart.table))
    opened = warehouse.open(contracts.UNION)
    mark = Mark(opened.version(), str(opened.metadata().id))
    if mart.upstream:
        warehouse.read(BY_NAME[mart.upstream].table).createOrReplaceTempView("runs")
        mark = warehouse.mark(mart.upstream) or mark
    else:
        warehouse.read(contracts.UNION).createOrReplaceTempView("events")
        _helpers(warehouse, mart, PIPELINE_RUNS.schema.empty_table())
    warehouse.overwrite(mart.table, warehouse.spark.sql(mart.sql))
    warehouse.advance(mart.name, mark)
    return warehouse.rows(mart.table)


def behind(warehouse: Warehouse, mart: Mart) -> bool:
    """Whether the union holds events that the mart does not reflect yet; no engine is started."""
    news = _news(warehouse, mart) if warehouse.exists(contracts.UNION) else None
    return news is not None and bool(news.files)


def _news(warehouse: Warehouse, mart: Mart) -> _News | None:
    """Union files to reflect now, and what they touch; None if the mart's upstream has not come so far yet."""
    mark = warehouse.mark(mart.name)
    runs = warehouse.mark(PIPELINE_RUNS.name)
    # Dates of touched updates come from pipeline_runs: where that is behind, look back as far as it is.
    since = min(mark, runs, key=lambda m: m.version) if mark and runs else None
    files, latest = warehouse.added(contracts.UNION, since)
    if mark is not None and mark.input_id == latest.input_id and mark.version == latest.version:
        return _News([], *_touched([]), latest)
    if mart.upstream:
        upstream = warehouse.mark(mart.upstream)
        if upstream is None or upstream.input_id != latest.input_id:
            return None
        if upstream.version < latest.version:
            if mark is not None and mark.version >= upstream.version:
                return None
            latest = upstream  # reading a little further than upstream has come only touches more
    return _News(files, *_touched(files), latest)


def _touched(files: list[DataFile]) -> tuple[pa.Table, set[str]]:
    schema = pa.schema([(name, pa.string()) for name in (*_KEYS, "event_date")])
    parts = [delta_log.read_file(file, schema.names).select(schema.names).cast(schema) for file in files]
    keys = pa.concat_tables([schema.empty_table(), *parts])
    keys = keys.filter(pc.is_valid(keys["update_id"]))
    return keys.group_by(_KEYS).aggregate([]), set(pc.unique(keys["event_date"]).to_pylist())


def _update_rows(warehouse: Warehouse, mart: Mart, news: _News) -> DataFrame:
    """Rows of the touched updates, from all their events."""
    pipelines = pc.unique(news.touched["pipeline_id"])
    runs = warehouse.arrow(PIPELINE_RUNS, where=pc.field("pipeline_id").isin(pipelines))
    stored = _matching(runs, news.touched, "SEMI")["event_dates"]
    dates = news.dates.union(*({str(date) for date in found or ()} for found in stored.to_pylist()))
    warehouse.frame(news.touched).createOrReplaceTempView("touched")
    days = ", ".join(f"DATE'{date}'" for date in sorted(dates))  # prunes: only these partitions are read
    warehouse.read(contracts.UNION).where(f"event_date IN ({days})").createOrReplaceTempView("union_rows")
    warehouse.spark.sql(
        "SELECT u.* FROM union_rows u LEFT SEMI JOIN touched t "
        "ON t.pipeline_id = u.pipeline_id AND t.update_id = u.update_id"
    ).createOrReplaceTempView("events")
    _helpers(warehouse, mart, _matching(runs, news.touched, "ANTI"))
    return warehouse.spark.sql(mart.sql)


def _helpers(warehouse: Warehouse, mart: Mart, other_runs: pa.Table) -> None:
    """Views that pipeline_runs needs beside `events`."""
    if mart.table is PIPELINE_RUNS:
        warehouse.spark.sql(BY_NAME[FLOW_METRICS.name].sql).createOrReplaceTempView("touched_flows")
        columns = [c for c in PIPELINE_RUNS.schema.names if c not in ("request_id", "attempt_number")]
        warehouse.frame(other_runs.select(columns)).createOrReplaceTempView("other_runs")


def _pipeline_rows(warehouse: Warehouse, mart: Mart, pipelines: pa.Array) -> DataFrame:
    """Rows of the touched pipelines, from all their runs."""
    assert mart.upstream is not None
    upstream = BY_NAME[mart.upstream].table
    warehouse.frame(warehouse.arrow(upstream, where=pc.field("pipeline_id").isin(pipelines))).createOrReplaceTempView(
        "runs"
    )
    return warehouse.spark.sql(mart.sql)


def _write(
    warehouse: Warehouse,
    mart: Mart,
    rows: DataFrame,
    report: Refreshed,
    *,
    pipelines: pa.Array | None = None,
    touched: pa.Table | None = None,
    by_event: bool = False,
) -> None:
    """Write what differs from the stored rows of the same scope: nothing, an append, or one merge."""
    table = mart.table
    if warehouse.rows(table) == 0:
        warehouse.append(table, rows)
        report.written = warehouse.rows(table)
        return
    new = rows.select(*table.schema.names).toArrow().cast(table.schema)
    if by_event:
        scope = pc.field("event_id").isin(pc.unique(new["event_id"]))
    else:
        scope = pc.field("pipeline_id").isin(pipelines)
    old = warehouse.arrow(table, where=scope)
    if mart.scope == "update" and table is not PIPELINE_RUNS and touched is not None:
        old = _matching(old, touched, "SEMI")
    changed, gone = differences(new, old, table.keys)
    report.written, report.removed = changed.num_rows, 0 if by_event else gone.num_rows
    keys = list(table.keys)
    known = changed.select(keys).join(old.select(keys), keys, join_type="left semi").num_rows
    if by_event:
        gone = gone.slice(0, 0)
    if known or gone.num_rows:
        warehouse.merge(table, changed, gone)
    elif changed.num_rows:
        warehouse.append(table, warehouse.frame(changed))


def differences(new: pa.Table, old: pa.Table, keys: tuple[str, ...]) -> tuple[pa.Table, pa.Table]:
    """Rows of `new` that `old` does not hold, and rows of `old` whose key `new` does not hold."""
    changed = _duck("SELECT * FROM new_rows EXCEPT SELECT * FROM old_rows", new_rows=new, old_rows=old)
    return changed.cast(new.schema), _matching(old, new.select(list(keys)), "ANTI")


def _matching(rows: pa.Table, keys: pa.Table, how: Literal["SEMI", "ANTI"]) -> pa.Table:
    """Rows that have (SEMI) or lack (ANTI) a partner in `keys`, by all its columns."""
    using = ", ".join(f'"{name}"' for name in keys.column_names)
    return _duck(f"SELECT * FROM given {how} JOIN wanted USING ({using})", given=rows, wanted=keys).cast(rows.schema)


def _duck(sql: str, **tables: pa.Table) -> pa.Table:
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    for name, table in tables.items():
        con.register(name, table)
    return con.sql(sql).to_arrow_table()


__all__ = ["MARTS", "Refreshed", "behind", "differences", "rebuild", "refresh"]
