"""Shared by all tests: a warehouse over a folder of logs, and one cycle over it, on the process's one engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar

import hypothesis
import orjson
import pytest

from monitoring_platform.config import load
from monitoring_platform.cycle.context import gather
from monitoring_platform.cycle.ingest import Ingested, ingest
from monitoring_platform.cycle.union import United, unite
from monitoring_platform.demo import generate
from monitoring_platform.marts.refresh import MARTS, Refreshed, Refresher, rebuild
from monitoring_platform.marts.registry import BY_NAME, STOCK, Mart
from monitoring_platform.warehouse.opening import open_warehouse
from monitoring_platform.warehouse.session import MINIMUM_JAVA, java_version
from monitoring_platform.warehouse.store import Warehouse

DATA = Path(__file__).parent / "data"
EVENT_LOGS = DATA / "event_logs"
NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)
FLEET_END = datetime(2026, 3, 10, 6, tzinfo=timezone.utc)
# Machines that run these are slow and shared: no test is about time. In CI the examples are the same every time.
hypothesis.settings.register_profile(
    "steady",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("steady")
HAS_SPARK = (java_version() or 0) >= MINIMUM_JAVA


def pytest_configure() -> None:
    """CI must not pass without the Spark half."""
    if os.environ.get("REQUIRE_SPARK") and not HAS_SPARK:
        pytest.exit(f"REQUIRE_SPARK is set and Java {MINIMUM_JAVA}+ was not found", returncode=1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in the last lines what was not run."""
    if not HAS_SPARK:
        terminalreporter.write_line(f"The Spark half of the parity suite was skipped: Java {MINIMUM_JAVA}+ not found.")


def refresh_marts(warehouse: Warehouse, marts: Sequence[Mart] = MARTS) -> list[Refreshed]:
    """Bring marts up to date, as a cycle does."""
    refresher = Refresher(warehouse)
    reports = list(refresher.refresh_all(marts))
    refresher.save()
    return reports


def made_fleet(folder: Path, pipelines: int) -> tuple[dict[str, Any], Warehouse]:
    """A small demo fleet with every plant, after one cycle: the truth about it and its tables."""
    truth = generate(folder, pipelines=pipelines, days=10, seed=3, end=FLEET_END)
    warehouse = open_warehouse(load(folder / "monitoring.yaml"))
    ingest(warehouse, FLEET_END)
    unite(warehouse)
    gather(warehouse, FLEET_END)
    refresh_marts(warehouse)
    return truth, warehouse


def by(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """These columns of rows, sorted as text, so that nulls have a place."""
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)


def is_as_rebuilt(site: Site, *tables: str) -> None:
    """What the cycles wrote is what everything together gives, row for row."""
    for name in tables:
        before = sorted(site.rows(name), key=repr)
        rebuild(site.warehouse, BY_NAME[name])
        assert sorted(site.rows(name), key=repr) == before, name


@dataclass
class Site:
    """A folder with logs and a warehouse of its own."""

    folder: Path
    warehouse: Warehouse
    marts: ClassVar[Sequence[Mart]] = MARTS

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    def write(self, name: str, *rows: dict[str, Any], mode: str = "ab") -> Path:
        """Append rows as lines to a log file."""
        path = self.logs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as file:
            for row in rows:
                file.write(orjson.dumps(row) + b"\n")
        return path

    def cycle(self, now: datetime = NOW, **options: Any) -> tuple[Ingested, United, list[Refreshed]]:
        """Ingest, union, context, marts."""
        read = ingest(self.warehouse, now, **options)
        united = unite(self.warehouse)
        gather(self.warehouse, now)
        return read, united, refresh_marts(self.warehouse, self.marts)

    def rows(self, table: str, **where: Any) -> list[dict[str, Any]]:
        """Rows of a table with these values."""
        rows = self.warehouse.arrow(STOCK[table]).to_pylist()
        return [row for row in rows if all(row[name] == value for name, value in where.items())]

    def row(self, table: str, **where: Any) -> dict[str, Any]:
        """The one row with these values."""
        (found,) = self.rows(table, **where)
        return found


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes sites below the test's folder; `config` is added to the minimal configuration."""

    def make(name: str = "site", config: str = "") -> Site:
        folder = tmp_path / name
        (folder / "logs").mkdir(parents=True)
        file = folder / "monitoring.yaml"
        sources = "" if "sources:" in config else "sources:\n  - {type: files, path: ./logs}\n"
        file.write_text(f"warehouse:\n  path: ./warehouse\n{sources}{config}", encoding="utf-8")
        return Site(folder, open_warehouse(load(file)))

    yield make


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    """One site with the minimal configuration."""
    return make_site()


def event(
    id: str, seconds: float = 0, event_type: str = "update_progress", body: Any = None, **origin: Any
) -> dict[str, Any]:
    """An event row in REST shape, `seconds` after 2026-01-01T00:00:00Z, of pipeline `p` and update `u` if not said."""
    top = {
        name: origin.pop(name) for name in ("message", "level", "error", "sequence", "maturity_level") if name in origin
    }
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    return {
        "id": id,
        "timestamp": f"2026-01-{1 + days:02d}T{hours:02d}:{minutes:02d}:{rest:06.3f}Z",
        "level": "INFO",
        "event_type": event_type,
        "origin": {"pipeline_id": "p", "pipeline_name": "pipe", "update_id": "u", **origin},
        "details": {event_type: body} if body is not None else None,
        **top,
    }


def state(id: str, seconds: float, state: str, **origin: Any) -> dict[str, Any]:
    """An update_progress event."""
    return event(id, seconds, "update_progress", {"state": state}, **origin)


def flow(id: str, seconds: float, name: str, body: Any, **origin: Any) -> dict[str, Any]:
    """A flow_progress event."""
    return event(id, seconds, "flow_progress", body, flow_name=name, **origin)
