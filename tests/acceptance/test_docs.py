"""Documents that are written from the code are up to date."""

from __future__ import annotations

from pathlib import Path

from monitoring_platform.marts.reference import reference
from monitoring_platform.marts.registry import EVENTS_SUMMARY, TABLES
from monitoring_platform.warehouse.contracts import STANDING

DOCS = Path(__file__).parents[2] / "docs"


def test_table_reference_is_current() -> None:
    """R-PEER-19: `make docs` writes it."""
    assert (DOCS / "tables.md").read_text(encoding="utf-8") == reference()


def test_every_column_is_described() -> None:
    """R-PEER-19: no empty description."""
    assert [(t.name, c.name) for t in (*STANDING, *TABLES) for c in t.columns if len(c.doc) < 5] == []


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
