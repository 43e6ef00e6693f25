"""pipeline_costs: usage times the price of the time, worked out by hand."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from monitoring_platform.config import load
from monitoring_platform.marts.registry import BY_NAME
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import NOW, Site, by, event, flow, is_as_rebuilt, state

DAY = date(2026, 1, 1)
CONFIG = "costs: {usage: ./billing/usage*.csv, list_prices: ./billing/prices*.csv}\n"


@pytest.fixture(autouse=True)
def few_marts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle of these tests refreshes few marts."""
    names = ("flow_metrics", "pipeline_runs", "requests", "pipeline_costs")
    monkeypatch.setattr(Site, "marts", [BY_NAME[name] for name in names])


@pytest.fixture
def billed(make_site: Callable[..., Site]) -> Site:
    """A site with exports of both billing tables."""
    site = make_site(config=CONFIG)
    (site.folder / "billing").mkdir()
    return site


def export(site: Site, name: str, *rows: dict[str, Any]) -> None:
    """A CSV file; columns are those of all rows."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with (site.folder / "billing" / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def used(record_id: str, quantity: str, start: str = "10:00", end: str = "11:00", **more: Any) -> dict[str, Any]:
    """Usage of update `u` of pipeline `p` on 2026-01-01, one DBU SKU on AWS if not said."""
    return {
        "record_id": record_id,
        "usage_quantity": quantity,
        "usage_start_time": f"2026-01-01T{start}:00.000Z",
        "usage_end_time": f"2026-01-01T{end}:00.000Z",
        "usage_date": "2026-01-01",
        "sku_name": "DLT",
        "cloud": "AWS",
        "usage_unit": "DBU",
        "record_type": "ORIGINAL",
        "billing_origin_product": "DLT",
        "dlt_pipeline_id": "p",
        "dlt_update_id": "u",
        "dlt_maintenance_id": "",
        **more,
    }


def price(amount: str, start: str = "2025-01-01", end: str = "", **more: Any) -> dict[str, Any]:
    return {
        "sku_name": "DLT",
        "cloud": "AWS",
        "currency_code": "USD",
        "usage_unit": "DBU",
        "price_start_time": start,
        "price_end_time": end,
        "pricing.default": amount,
        **more,
    }


def total(site: Site) -> Decimal:
    return sum((row["cost"] for row in site.rows("pipeline_costs")), Decimal(0))


def test_each_attempt_has_its_cost(billed: Site) -> None:
    """R-COST-01, R-NEW-08: 2 DBU of a failed attempt and 3 of its retry, 0.30 USD each; the events multiply nothing."""
    billed.write(
        "a.jsonl",
        event("1", 0, "create_update", {"cause": "JOB_TASK"}, update_id="u", request_id="r"),
        state("2", 10, "FAILED", update_id="u", request_id="r"),
        state("3", 60, "RUNNING", update_id="v", request_id="r"),
        flow("4", 70, "f", {"status": "COMPLETED", "metrics": {"num_output_rows": 5}}, update_id="v", request_id="r"),
        state("5", 90, "COMPLETED", update_id="v", request_id="r"),
    )
    export(billed, "usage.csv", used("1", "1.5"), used("2", "0.5"), used("3", "3", dlt_update_id="v"))
    export(billed, "prices.csv", price("0.30"))
    billed.cycle()
    rows = billed.rows("pipeline_costs")
    assert by(rows, "update_id", "request_id", "attempt_number", "outcome", "usage_quantity", "cost", "records") == [
        ("u", "r", 1, "FAILED", Decimal(2), Decimal("0.6"), 2),
        ("v", "r", 2, "COMPLETED", Decimal(3), Decimal("0.9"), 1),
    ]
    assert {row["currency"] for row in rows} == {"USD"} and {row["kind"] for row in rows} == {"update"}
    assert {row["final_at"] for row in rows} == {datetime(2026, 1, 5, tzinfo=timezone.utc)}


def test_a_price_that_changes_within_a_record_counts_by_time(billed: Site) -> None:
    """R-COST-01: 4 DBU from 10 to 11; 0.30 until 10:15, 0.50 from then on: 4 x (0.25 x 0.30 + 0.75 x 0.50) = 1.80."""
    change = "2026-01-01T10:15:00Z"
    export(billed, "usage.csv", used("1", "4"))
    export(billed, "prices.csv", price("0.30", end=change), price("0.50", start=change))
    billed.cycle()
    assert (total(billed), billed.row("pipeline_costs")["usage_quantity"]) == (Decimal("1.8"), Decimal(4))


def test_thirds_of_an_hour(billed: Site) -> None:
    """A share that no decimal number holds: 1 DBU, 1 USD for 20 of 60 minutes, 4 USD for the rest: 3 USD to 12 digits."""
    change = "2026-01-01T10:20:00Z"
    export(billed, "usage.csv", used("1", "1"))
    export(billed, "prices.csv", price("1", end=change), price("4", start=change))
    billed.cycle()
    assert total(billed).quantize(Decimal("1e-11")) == Decimal(3)


def test_a_newer_price_ends_the_one_before(billed: Site) -> None:
    """An export in which the older price has no end: only the newer one holds."""
    export(billed, "usage.csv", used("1", "1"))
    export(billed, "prices.csv", price("0.30"), price("0.50", start="2026-01-01T00:00:00Z"))
    billed.cycle()
    assert total(billed) == Decimal("0.5")


def test_promotions_count(billed: Site) -> None:
    """The effective list price is what billing computes with; the default is for estimates."""
    export(billed, "usage.csv", used("1", "1"))
    export(billed, "prices.csv", price("0.30", **{"pricing": '{"effective_list": {"default": "0.20"}}'}))
    billed.cycle()
    assert total(billed) == Decimal("0.2")


def test_two_currencies_are_refused(billed: Site) -> None:
    """R-COST-01: no sum over USD and EUR; the row says why it has no cost. One of them chosen, it counts."""
    export(billed, "usage.csv", used("1", "2"), used("2", "1", sku_name="SQL"))
    export(billed, "prices.csv", price("0.30"), price("0.25", currency_code="EUR"), price("0.70", sku_name="SQL"))
    billed.cycle()
    rows = billed.rows("pipeline_costs")
    assert by(rows, "sku_name", "cost", "currency", "unpriced_reason") == [
        ("DLT", None, None, "prices in several currencies: EUR, USD"),
        ("SQL", Decimal("0.7"), "USD", None),
    ]
    file = billed.folder / "monitoring.yaml"
    file.write_text(file.read_text().replace("costs: {", "costs: {currency: EUR, "))
    chosen = Site(billed.folder, open_warehouse(load(file)))
    chosen.cycle()
    assert by(chosen.rows("pipeline_costs"), "sku_name", "cost", "currency", "unpriced_reason") == [
        ("DLT", Decimal("0.5"), "EUR", None),
        ("SQL", None, None, "no price"),
    ]


def test_without_a_price_the_cost_is_unknown_not_zero(billed: Site) -> None:
    """A SKU without price, a price that begins in the middle, another cloud, another unit: null with the reason."""
    export(
        billed,
        "usage.csv",
        used("1", "1", sku_name="NEW"),
        used("2", "1", sku_name="HALF"),
        used("3", "1", sku_name="DLT", cloud="AZURE"),
        used("4", "lots"),
    )
    export(billed, "prices.csv", price("1", "2026-01-01T10:30:00Z", sku_name="HALF"), price("1"))
    billed.cycle()
    assert by(billed.rows("pipeline_costs"), "sku_name", "cloud", "cost", "unpriced_reason") == [
        ("DLT", "AWS", None, "the quantity is unreadable"),
        ("DLT", "AZURE", None, "no price"),
        ("HALF", "AWS", None, "no price for a part of the time"),
        ("NEW", "AWS", None, "no price"),
    ]


def test_late_records_restatements_and_retractions(billed: Site) -> None:
    """R-PEER-11: a record comes a day late, one is restated under its id, one is taken back and replaced.

    1 + 2 DBU at first; then the 2 are 5, and the 1 is retracted and stands as 4; 3 more come late: 12 DBU, 6 USD.
    """
    export(billed, "prices.csv", price("0.50"))
    export(billed, "usage-1.csv", used("a", "1"), used("b", "2"))
    billed.cycle()
    assert total(billed) == Decimal("1.5")
    export(
        billed,
        "usage-2.csv",
        used("b", "5"),
        used("a-", "-1", record_type="RETRACTION"),
        used("a+", "4", record_type="RESTATEMENT"),
        used("c", "3"),
    )
    billed.cycle(NOW + timedelta(days=1))
    row = billed.row("pipeline_costs")
    assert (row["usage_quantity"], row["cost"], row["records"]) == (Decimal(12), Decimal(6), 5)
    is_as_rebuilt(billed, "pipeline_costs")


def test_the_sum_over_outcomes_is_what_was_billed(billed: Site) -> None:
    """R-NEW-08: completed, failed, unknown updates, maintenance and the rest add up to the bill."""
    billed.write(
        "a.jsonl",
        state("1", 0, "COMPLETED", update_id="u"),
        state("2", 60, "FAILED", update_id="v"),
    )
    export(
        billed,
        "usage.csv",
        used("1", "1"),
        used("2", "2", dlt_update_id="v"),
        used("3", "4", dlt_update_id="unseen"),
        used("4", "8", dlt_update_id="", dlt_maintenance_id="m"),
        used("5", "16", dlt_update_id=""),
        used("6", "32", dlt_pipeline_id="elsewhere", dlt_update_id="x", billing_origin_product="SQL"),
        used("7", "64", dlt_pipeline_id="connect", dlt_update_id="y", billing_origin_product="LAKEFLOW_CONNECT"),
        used("8", "1000", dlt_pipeline_id="", dlt_update_id=""),  # a job of its own, no pipeline
    )
    export(billed, "prices.csv", price("0.1"))
    billed.cycle()
    rows = billed.rows("pipeline_costs")
    assert by(rows, "kind", "outcome", "cost", "product") == [
        ("maintenance", None, Decimal("0.8"), "DLT"),
        ("other", None, Decimal("1.6"), "DLT"),
        ("update", "COMPLETED", Decimal("0.1"), "DLT"),
        ("update", "FAILED", Decimal("0.2"), "DLT"),
        ("update", None, Decimal("0.4"), "DLT"),
        ("update", None, Decimal("3.2"), "SQL"),
        ("update", None, Decimal("6.4"), "LAKEFLOW_CONNECT"),
    ]
    assert total(billed) == Decimal("12.7")


def test_outcomes_come_with_the_log(billed: Site) -> None:
    """Usage may be there before the log: the outcome is filled in when the update is seen, also one of months ago."""
    export(billed, "prices.csv", price("1"))
    export(
        billed,
        "usage.csv",
        used("1", "1"),
        used("2", "1", usage_date="2026-03-20", usage_start_time="", usage_end_time=""),
    )
    billed.cycle()
    assert {row["outcome"] for row in billed.rows("pipeline_costs")} == {None}
    billed.write("a.jsonl", state("1", 0, "RUNNING"))
    billed.cycle()
    assert {row["outcome"] for row in billed.rows("pipeline_costs")} == {"RUNNING"}
    billed.write("a.jsonl", state("2", 86400, "COMPLETED"))
    billed.cycle()
    assert {row["outcome"] for row in billed.rows("pipeline_costs")} == {"COMPLETED"}
    export(billed, "usage-2.csv", used("3", "1", usage_date="2026-03-21", usage_start_time="", usage_end_time=""))
    billed.cycle()
    assert [row["outcome"] for row in billed.rows("pipeline_costs")] == ["COMPLETED"] * 3
    is_as_rebuilt(billed, "pipeline_costs")


def test_new_prices_restate_everything(billed: Site) -> None:
    """A price that is published later prices what had none."""
    export(billed, "usage.csv", used("1", "2"))
    export(billed, "prices.csv", price("1", sku_name="OTHER"))
    billed.cycle()
    assert billed.row("pipeline_costs")["cost"] is None
    export(billed, "prices-2.csv", price("0.25"))
    billed.cycle()
    assert total(billed) == Decimal("0.5")


def test_a_failure_keeps_what_was_read(billed: Site) -> None:
    """E-25: exports that break or vanish are named, and empty nothing; the other kind goes on."""
    export(billed, "usage.csv", used("1", "1"))
    export(billed, "prices.csv", price("1"))
    billed.cycle()
    (billed.folder / "billing" / "usage.csv").unlink()
    export(billed, "prices.csv", {"nothing": "here"})
    billed.cycle(NOW + timedelta(hours=1))
    reads = by(billed.rows("context_reads"), "kind", "source", "error", "consecutive_failures")
    assert reads == [
        ("list_prices", "billing/prices*.csv", "prices.csv: it has no column sku_name", 1),
        ("usage", "billing/usage*.csv", "billing/usage*.csv matches nothing", 1),
    ]
    assert total(billed) == Decimal(1) and len(billed.rows("list_prices")) == 1


def test_an_export_is_complete_to_when_it_was_written(billed: Site) -> None:
    """R-PEER-11: the newest file counts; a broken one leaves it as it was, and a source that is gone has no state."""
    export(billed, "usage-1.csv", used("1", "1"))
    export(billed, "usage-2.csv", used("2", "1"))
    export(billed, "prices.csv", price("1"))
    written = [NOW - timedelta(days=days) for days in (3, 2)]
    for number, at in enumerate(written, 1):
        os.utime(billed.folder / "billing" / f"usage-{number}.csv", (at.timestamp(), at.timestamp()))
    billed.cycle()
    assert by(billed.rows("context_reads"), "kind", "complete_to") == [("list_prices", None), ("usage", written[1])]
    export(billed, "usage-3.csv", {"nothing": "here"})
    billed.cycle(NOW + timedelta(days=1))
    assert billed.row("context_reads", kind="usage")["complete_to"] == written[1]
    (billed.folder / "billing" / "usage-3.csv").unlink()
    file = billed.folder / "monitoring.yaml"
    file.write_text(file.read_text().replace("usage: ./billing/usage*.csv", "usage: ./billing/usage-*.csv"))
    moved = Site(billed.folder, open_warehouse(load(file)))
    moved.cycle(NOW + timedelta(days=2))
    assert by(moved.rows("context_reads", kind="usage"), "source", "error", "complete_to") == [
        ("billing/usage-*.csv", None, written[1])
    ]


def test_without_costs_nothing_is_there(site: Site) -> None:
    """The default: no file is looked for, the table is empty."""
    site.write("a.jsonl", state("1", 0, "RUNNING"))
    site.cycle()
    assert site.rows("pipeline_costs") == [] and site.rows("context_reads") == []
