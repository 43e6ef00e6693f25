"""What the fleet cost: exports of the two billing tables, and the truth about each pipeline.

Usage is billed by the hour of an update, and once a day for maintenance. The price of serverless compute falls in the
middle of the history; one hour is billed wrong and corrected; one pipeline uses something that has no list price.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from monitoring_platform.demo.events import DAY, HOUR, Json
from monitoring_platform.demo.journal import ORG_ID, Journal
from monitoring_platform.demo.model import Pipeline
from monitoring_platform.demo.timeline import Window

CLASSIC, SERVERLESS, UNPRICED = "PREMIUM_DLT_CORE_COMPUTE", "PREMIUM_JOBS_SERVERLESS_COMPUTE_EUROPE", "PREVIEW_COMPUTE"
_RATES = {CLASSIC: Decimal("4.2"), SERVERLESS: Decimal("2.6"), UNPRICED: Decimal(1)}  # DBU in an hour
_MAINTENANCE = Decimal("0.05")
_BEFORE, _SINCE = Decimal("0.45"), Decimal("0.39")  # of serverless compute
_CLASSIC_PRICE = Decimal("0.20")
_TIME = pa.timestamp("us", "UTC")
_IDS = ("dlt_pipeline_id", "dlt_update_id", "dlt_maintenance_id")
_USAGE = pa.schema(
    [
        *((name, pa.string()) for name in ("record_id", "account_id", "workspace_id", "sku_name", "cloud")),
        *((name, _TIME) for name in ("usage_start_time", "usage_end_time")),
        ("usage_date", pa.date32()),
        ("usage_unit", pa.string()),
        ("usage_quantity", pa.decimal128(38, 18)),
        *((name, pa.string()) for name in ("record_type", "billing_origin_product")),
        ("usage_metadata", pa.struct([(name, pa.string()) for name in _IDS])),
    ]
)


def bill(folder: Path, journals: list[Journal], window: Window) -> Json:
    """Write the exports into `folder`; returns the cost by pipeline and outcome (or kind), and what has no price."""
    change = (window.start + window.end) // 2 // HOUR * HOUR
    records = [
        record
        for journal in journals
        for record in _of_pipeline(journal, window, UNPRICED if journal is journals[-1] else _sku(journal.pipeline))
    ]
    records += _corrected(records[0])
    folder.mkdir(parents=True, exist_ok=True)
    delivered = pa.Table.from_pylist([_delivered(number, record) for number, record in enumerate(records)], _USAGE)
    pq.write_table(delivered, folder / "usage.parquet")
    _write_prices(folder / "list_prices.csv", change)
    costs: defaultdict[str, defaultdict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    unpriced = Decimal(0)
    for record in records:
        if record["sku"] == UNPRICED:
            unpriced += record["quantity"]
        else:
            costs[record["pipeline_id"]][record["outcome"]] += record["quantity"] * _price(record, change)
    told = {pipeline: {what: _text(cost) for what, cost in each.items()} for pipeline, each in costs.items()}
    return {"costs": told, "unpriced": _text(unpriced)}


def _of_pipeline(journal: Journal, window: Window, sku: str) -> Iterator[Json]:
    common = {"pipeline_id": journal.pipeline.id, "sku": sku, "type": "ORIGINAL"}
    for run in journal.runs:
        for start, stop in _hours(max(run.first_event, window.start), run.ended_at or window.end):
            quantity = (_RATES[sku] * (stop - start) / HOUR).quantize(Decimal("0.000001"))
            about = {"update_id": run.update_id, "outcome": run.status or "update", "start": start, "stop": stop}
            yield {**common, **about, "quantity": quantity}
    for start in range(window.start // DAY * DAY + DAY, window.end, DAY) if journal.runs else ():
        about = {"update_id": None, "outcome": "maintenance", "start": start, "stop": start + HOUR}
        yield {**common, **about, "quantity": _MAINTENANCE}


def _sku(pipeline: Pipeline) -> str:
    return SERVERLESS if pipeline.serverless else CLASSIC


def _hours(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The parts of a time by full hours."""
    while start < stop:
        end = min(stop, start // HOUR * HOUR + HOUR)
        yield start, end
        start = end


def _corrected(record: Json) -> list[Json]:
    """A record was twice too large: it is taken back and stated anew."""
    back = {**record, "type": "RETRACTION", "quantity": -record["quantity"]}
    return [back, {**record, "type": "RESTATEMENT", "quantity": record["quantity"] / 2}]


def _price(record: Json, change: int) -> Decimal:
    if record["sku"] == CLASSIC:
        return _CLASSIC_PRICE
    return _BEFORE if record["start"] < change else _SINCE


def _delivered(number: int, record: Json) -> Json:
    start, stop = _instant(record["start"]), _instant(record["stop"])
    maintenance = f"maintenance-{number}" if record["outcome"] == "maintenance" else None
    ids = dict(zip(_IDS, (record["pipeline_id"], record["update_id"], maintenance)))
    return {
        "record_id": f"record-{number}",
        "account_id": "demo",
        "workspace_id": str(ORG_ID),
        "sku_name": record["sku"],
        "cloud": "AWS",
        "usage_start_time": start,
        "usage_end_time": stop,
        "usage_date": start.date(),
        "usage_unit": "DBU",
        "usage_quantity": record["quantity"],
        "record_type": record["type"],
        "billing_origin_product": "DLT",
        "usage_metadata": ids,
    }


def _write_prices(path: Path, change: int) -> None:
    """Prices as a flat export has them."""
    long_ago = datetime(2023, 1, 1, tzinfo=timezone.utc)
    turn = _instant(change)
    rows = [
        (CLASSIC, long_ago, None, _CLASSIC_PRICE),
        (SERVERLESS, long_ago, turn, _BEFORE),
        (SERVERLESS, turn, None, _SINCE),
    ]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        times = ("price_start_time", "price_end_time")
        writer.writerow(["sku_name", "cloud", "currency_code", "usage_unit", *times, "pricing.default"])
        for sku, start, end, price in rows:
            writer.writerow([sku, "AWS", "USD", "DBU", start.isoformat(), end.isoformat() if end else "", price])


def _instant(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=ms)


def _text(number: Decimal) -> str:
    return format(number.normalize(), "f")
