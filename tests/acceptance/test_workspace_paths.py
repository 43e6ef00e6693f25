"""The same events by all five ways into a workspace: one and the same union."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monitoring_platform.config import load
from monitoring_platform.cycle.ingest import ingest
from monitoring_platform.cycle.union import unite
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import FLEET_END, Site
from tests.workspace import Workspace, logs

WAYS = ("table", "function", "system_table", "api", "storage", "dbfs")
OF_THE_WAY = ("_source", "_ingested_at", "_access_path")
EVENTS = "system.lakeflow_pipeline_events_preview.pipeline_events"


class Fleet:
    """A workspace whose pipelines can be read in all ways, and one site for each way."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = Workspace(folder / "workspace")
        self.monitor = self.workspace.principal("monitor@example.com")
        # Small chunks and short pages: every way has to go on several times.
        self.workspace.warehouse("w1", [self.monitor], chunk_rows=70)
        self.workspace.short_pages = True
        self.workspace.grant(self.monitor, "READ FILES", "*")
        self.workspace.grant_table(self.monitor, EVENTS)
        self.events = 0
        for pipeline, events in logs.demo(8, 1, FLEET_END):
            made = self.workspace.pipeline(
                pipeline.name, self.monitor.name, id=pipeline.id, target=pipeline.schema, events=events
            )
            made.publish(f"log_{pipeline.name}")
            self.events += len(events)

    def without_catalog(self, in_dbfs: bool) -> None:
        """The pipelines as they were before Unity Catalog: the log lies in a folder, here or where only SQL gets to."""
        for made in self.workspace.pipelines.values():
            made.modified(catalog=None, target=None, event_log=None, storage=None)
            made.store(self.folder / "legacy" / made.name, written="" if in_dbfs else None)

    def site(self, way: str) -> Site:
        """A site that reads in this way only."""
        if way in ("storage", "dbfs"):
            self.without_catalog(way == "dbfs")
        folder = self.folder / way
        folder.mkdir()
        file = folder / "monitoring.yaml"
        file.write_text(
            f"warehouse: {{path: ./warehouse}}\nsources:\n  - type: workspace\n    host: {self.workspace.host}\n"
            f"    token: ${{WORKSPACE_TOKEN}}\n    sql_warehouse: w1\n    access: [{'storage' if way == 'dbfs' else way}]\n",
            encoding="utf-8",
        )
        return Site(folder, open_warehouse(load(file)))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with pytest.MonkeyPatch.context() as patch:
        made = Fleet(tmp_path_factory.mktemp("ways"))
        patch.setenv("WORKSPACE_TOKEN", str(made.monitor.token))
        yield made
        made.workspace.close()
        made.workspace.is_clean()


@pytest.fixture(scope="module")
def unions(fleet: Fleet) -> dict[str, list[dict[str, Any]]]:
    """The union by each way, and again after a second cycle that finds nothing new."""
    found = {}
    for way in WAYS:
        site = fleet.site(way)
        read = ingest(site.warehouse, FLEET_END)
        assert read.failed == {}
        assert unite(site.warehouse).added == fleet.events
        found[way] = site.rows("all_pipelines_event_log")
        assert {row["access_path"] for row in site.rows("pipelines")} == {"storage" if way == "dbfs" else way}
        ingest(site.warehouse, FLEET_END)
        assert unite(site.warehouse).added == 0
    return found


@pytest.mark.parametrize("way", WAYS[1:])
def test_all_ways_give_the_same_union(unions: dict[str, list[dict[str, Any]]], way: str) -> None:
    """R-NEW-03, R-ING-10, R-ING-11, R-ING-13, R-PEER-08: row for row, apart from where a row came from and when."""
    assert _sorted(unions[way]) == _sorted(unions["table"])


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [_comparable(row) for row in sorted(rows, key=lambda row: (row["pipeline_id"], row["event_id"]))]


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what depends on its way. Only the system table has a code for each exception."""
    kept = {name: value for name, value in row.items() if name not in OF_THE_WAY}
    for exception in (kept["error"] or {}).get("exceptions") or ():
        exception.update(error_class=None, sql_state=None)
    return kept
