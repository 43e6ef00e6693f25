"""1,000 pipelines: how many calls a look takes, and that a look that has no time for all goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import dagster as dg
import pytest

from monitoring_platform.config import load
from monitoring_platform.cycle.ingest import discover, ingest
from monitoring_platform.definitions import build_defs
from monitoring_platform.orchestration import sensors
from monitoring_platform.orchestration.resources import Platform
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import Site
from tests.workspace import Workspace, logs

NOW = datetime(2026, 1, 10, 12, tzinfo=timezone.utc)
PIPELINES = 1000


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, Site]]:
    """The workspace and a site that has read it once. One log is published, of the others the settings are read."""
    folder = tmp_path_factory.mktemp("scale")
    with Workspace(folder / "workspace") as workspace, pytest.MonkeyPatch.context() as patch:
        monitor = workspace.principal("monitor@example.com", is_admin=True)
        for number in range(PIPELINES):
            id_ = f"p{number:04}"
            workspace.pipeline(id_, id=id_, events=logs.update(id_, id_, NOW - timedelta(hours=2), f"u{number}"))
        workspace.pipelines["p0500"].publish("log", to=monitor)
        workspace.warehouse("w1")
        patch.setenv("WORKSPACE_TOKEN", str(monitor.token))
        file = folder / "monitoring.yaml"
        file.write_text(
            "warehouse: {path: ./warehouse}\nsources:\n  - type: workspace\n    name: big\n    access: [table]\n"
            f"    host: {workspace.host}\n    token: ${{WORKSPACE_TOKEN}}\n    sql_warehouse: w1\n",
            encoding="utf-8",
        )
        site = Site(folder, open_warehouse(load(file)))
        ingest(site.warehouse, NOW)
        yield workspace, site
        workspace.is_clean()


def test_calls_of_a_look(watched: tuple[Workspace, Site]) -> None:
    """R-PEER-01: ten pages of the listing and each pipeline's settings once; afterwards the listing alone, for a day."""
    workspace, site = watched
    assert len(site.rows("pipelines")) == PIPELINES
    assert len(workspace.called("/api/2.0/pipelines/")) == PIPELINES
    assert len(workspace.called("/api/2.0/pipelines")) == PIPELINES + 10
    workspace.calls.clear()
    changed = workspace.pipelines["p0500"]
    changed.add(*logs.update(changed.id, changed.name, NOW, "new"))
    found = discover(site.warehouse, NOW + timedelta(hours=1), force=False)
    assert [entry[0] for entry in found.news] == ["big/p0500"]
    assert [call.path for call in workspace.calls] == ["/api/2.0/pipelines"] * 10


def test_a_tick_without_time_for_all_goes_on(
    watched: tuple[Workspace, Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-PEER-01, R-ING-20: a tick ends soon after its budget, and the next ones go on with the page where it stopped."""
    workspace, site = watched
    monkeypatch.setattr(sensors, "_BUDGET_SECONDS", 0.25)
    monkeypatch.setenv("MONITORING_CONFIG", str(site.folder / "monitoring.yaml"))
    file = tmp_path / "monitoring.yaml"  # where nothing was read yet
    file.write_bytes((site.folder / "monitoring.yaml").read_bytes())
    sensor = build_defs().resolve_sensor_def("pipeline_updates")
    workspace.calls.clear()
    workspace.faults.seconds = 0.1
    asked: list[str] = []
    cursor, ticks = None, 0
    with dg.DagsterInstance.ephemeral() as instance:
        while ticks == 0 or json.loads(cursor or "{}")["rest"]:
            with dg.build_sensor_context(
                instance, cursor=cursor, resources={"platform": Platform(config_path=str(file))}
            ) as context:
                found = sensor.evaluate_tick(context)
            (request,) = found.run_requests or ()
            asked += request.run_config["ops"]["pipelines"]["config"]["pipeline_ids"]
            cursor, ticks = found.cursor, ticks + 1
    workspace.faults.seconds = 0.0
    assert 3 <= ticks <= 10
    assert len(workspace.calls) == 10
    assert sorted(asked) == sorted(workspace.pipelines)
