"""Bring a mart up to date: recompute the rows of what new events touched, write only rows that changed.

A mart's mark is the version of the union that its rows reflect. Redoing a refresh changes nothing, so a kill between
the rows and the mark is harmless; `rebuild` computes the same rows from everything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from monitoring_platform.marts.registry import BY_NAME, FLOW_METRICS, MARTS, PIPELINE_RUNS, Mart
from monitoring_platform.warehouse import contracts, delta_log
from monitoring_platform.warehouse.delta_log import DataFile
from monitoring_platform.warehouse.store import Mark, Warehouse

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
    touched: pa.Table  # pipeline_id, update_id (not null), first_date, last_date
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
        rows = _pipeline_rows(warehouse, mart, pipelines) if mart.scope == "pipeline" else _update_rows(warehouse, mart, news)
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
    return int(warehouse.open(mart.table).to_pyarrow_dataset().count_rows())


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
        return _News([], _touched([]), latest)
    if mart.upstream:
        upstream = warehouse.mark(mart.upstream)
        if upstream is None or upstream.input_id != latest.input_id:
            return None
        if upstream.version < latest.version:
            if mark is not None and mark.version >= upstream.version:
                return None
            latest = upstream  # reading a little further than upstream has come only touches more
    return _News(files, _touched(files), latest)


def _touched(files: list[DataFile]) -> pa.Table:
    parts = [delta_log.read_file(file, [*_KEYS, "event_date"]).select([*_KEYS, "event_date"]) for file in files]
    schema = pa.schema([("pipeline_id", pa.string()), ("update_id", pa.string()), ("event_date", pa.string())])
    keys = pa.concat_tables([part.cast(schema) for part in parts]) if parts else schema.empty_table()
    keys = keys.filter(pc.is_valid(keys["update_id"]))
    grouped = keys.group_by(_KEYS).aggregate([("event_date", "min"), ("event_date", "max")])
    return grouped.rename_columns([*_KEYS, "first_date", "last_date"])


def _update_rows(warehouse: Warehouse, mart: Mart, news: _News) -> DataFrame:
    """Rows of the touched updates, from all their events."""
    pipelines = pc.unique(news.touched["pipeline_id"])
    runs = warehouse.arrow(PIPELINE_RUNS, where=pc.field("pipeline_id").isin(pipelines))
    dates = _dates(news.touched, runs)
    warehouse.frame(news.touched.select(_KEYS)).createOrReplaceTempView("touched")
    union = warehouse.read(contracts.UNION)
    if dates:
        union = union.where("event_date IN (" + ", ".join(f"DATE'{date}'" for date in dates) + ")")
    union.createOrReplaceTempView("union_rows")
    warehouse.spark.sql(
        "SELECT u.* FROM union_rows u LEFT SEMI JOIN touched t "
        "ON t.pipeline_id = u.pipeline_id AND t.update_id = u.update_id"
    ).createOrReplaceTempView("events")
    _helpers(warehouse, mart, runs.join(news.touched.select(_KEYS), _KEYS, join_type="left anti"))
    return warehouse.spark.sql(mart.sql)


def _dates(touched: pa.Table, runs: pa.Table) -> list[str]:
    """UTC dates on which the touched updates have events, before or now."""
    stored = runs.select([*_KEYS, "start_ts", "last_event_ts"])
    rows = duckdb.sql(
        """
        SELECT DISTINCT CAST(unnest(generate_series(
                 least(t.first_date::DATE, coalesce((s.start_ts AT TIME ZONE 'UTC')::DATE, t.first_date::DATE)),
                 greatest(least(t.last_date::DATE, t.first_date::DATE + 366),
                          coalesce((s.last_event_ts AT TIME ZONE 'UTC')::DATE, t.first_date::DATE)),
                 INTERVAL 1 DAY)) AS DATE) AS day
        FROM touched t LEFT JOIN stored s ON s.pipeline_id = t.pipeline_id AND s.update_id = t.update_id
        UNION SELECT t.last_date::DATE FROM touched t
        """
    ).fetchall()
    return sorted(str(row[0]) for row in rows)


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
    warehouse.frame(warehouse.arrow(upstream, where=pc.field("pipeline_id").isin(pipelines))).createOrReplaceTempView("runs")
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
    dataset = warehouse.open(table).to_pyarrow_dataset()
    if dataset.count_rows() == 0:
        warehouse.append(table, rows)
        report.written = int(warehouse.open(table).to_pyarrow_dataset().count_rows())
        return
    new = rows.select(*table.schema.names).toArrow().cast(table.schema)
    if by_event:
        scope = pc.field("event_id").isin(pc.unique(new["event_id"]))
    else:
        scope = pc.field("pipeline_id").isin(pipelines)
    old = dataset.to_table(filter=scope).cast(table.schema)
    if mart.scope == "update" and table is not PIPELINE_RUNS and touched is not None:
        old = old.join(touched.select(_KEYS), _KEYS, join_type="left semi").select(table.schema.names)
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
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.register("new_rows", new)
    con.register("old_rows", old)
    using = ", ".join(f'"{key}"' for key in keys)
    changed = con.sql("SELECT * FROM new_rows EXCEPT SELECT * FROM old_rows").to_arrow_table()
    gone = con.sql(f"SELECT * FROM old_rows ANTI JOIN new_rows USING ({using})").to_arrow_table()
    return changed.cast(new.schema), gone.select(new.schema.names).cast(new.schema)


__all__ = ["MARTS", "Refreshed", "behind", "differences", "rebuild", "refresh"]
