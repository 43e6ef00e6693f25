"""A small demo, made once, and everything that was delivered of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitoring_platform.demo import generate
from tests.demo.reading import END, Row, rows_of_files, rows_of_tables


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Row]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, generate(folder, pipelines=40, days=3, end=END)


@pytest.fixture(scope="package")
def rows(demo: tuple[Path, Row]) -> list[Row]:
    """Every readable row as delivered, repeats included, in one plain shape."""
    folder, _ = demo
    return [*rows_of_files(folder / "logs"), *rows_of_tables(folder / "delta_logs")]


@pytest.fixture(scope="package")
def events(rows: list[Row]) -> list[Row]:
    return list({(row["origin"]["pipeline_id"], row["id"]): row for row in rows}.values())
