"""Documents that are written from the code are up to date."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from monitoring_platform.marts.lineage import shipped, worked_out
from monitoring_platform.marts.reference import reference
from monitoring_platform.marts.registry import BY_NAME, EVENTS_SUMMARY, TABLES
from monitoring_platform.orchestration.assets import ASSETS
from monitoring_platform.warehouse.contracts import STANDING
from tests.conftest import Site, state

DOCS = Path(__file__).parents[2] / "docs"


def test_table_reference_is_current() -> None:
    """R-PEER-19: `make docs` writes it."""
    assert (DOCS / "tables.md").read_text(encoding="utf-8") == reference()


def test_every_column_is_described() -> None:
    """R-PEER-19: no empty description."""
    assert [(t.name, c.name) for t in (*STANDING, *TABLES) for c in t.columns if len(c.doc) < 5] == []


def test_column_lineage_is_current() -> None:
    """R-PEER-19, OPS-06: `make docs` works it out of the SQL."""
    assert (files("monitoring_platform.marts") / "lineage.json").read_text(encoding="utf-8") == worked_out()


def test_lineage_says_what_a_column_is_made_of() -> None:
    """Worked out by hand for one column of one table."""
    assert shipped()["events_summary"]["compute_type"] == [["pipeline_runs", "serverless"]]
    assert shipped()["weekly_quality"]["passed_records"] == [["expectation_days", "passed_records"]]


def test_descriptions_are_the_same_in_delta_and_in_dagster(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The contract's texts, on the Delta columns (also of a table that was computed) and in the column schemas."""
    monkeypatch.setattr(Site, "marts", [BY_NAME["flow_metrics"], BY_NAME["pipeline_runs"]])
    site.write("a.jsonl", state("1", 0, "RUNNING"))
    site.cycle()
    site.warehouse.create((*STANDING, *TABLES))
    in_dagster = {
        spec.key.to_user_string(): spec.metadata["dagster/column_schema"] for asset in ASSETS for spec in asset.specs
    }
    for table in (*STANDING, *TABLES):
        told = {column.name: column.doc for column in table.columns}
        fields = site.warehouse.open(table).schema().fields
        assert {field.name: field.metadata.get("comment") for field in fields} == told, table.name
        if table.name in in_dagster:
            assert {c.name: c.description for c in in_dagster[table.name].columns} == told, table.name
    assert {table.name for table in TABLES} <= in_dagster.keys()


def test_events_summary_has_the_16_columns() -> None:
    """R-RUN-01: names, order and types."""
    text, double, time, flag, number = "string", "double", "timestamp[us, tz=UTC]", "bool", "int64"
    assert [(c.name, str(c.type)) for c in EVENTS_SUMMARY.columns] == [
        ("pipeline_name", text), ("pipeline_id", text), ("update_id", text), ("run_status", text),
        ("trigger_cause", text), ("is_full_refresh", flag), ("dbr_version", text), ("compute_type", text),
        ("run_start_time", time), ("run_end_time", time), ("duration_minutes", double),
        ("tables_processed", number), ("total_upserted_rows", number), ("total_deleted_rows", number),
        ("total_rows_affected", number), ("total_dropped_records", number),
    ]  # fmt: skip
