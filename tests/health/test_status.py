"""What `validate` shows of sources, workspaces among them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from monitoring_platform.health.status import preview
from tests.conftest import NOW, Site
from tests.workspace import Workspace, logs

SOURCES = """sources:
  - {type: files, path: ./logs}
  - {type: workspace, name: prod, host: '%s', token: '${TOKEN}', names: ['a*'], sql_warehouse: w1}
"""


def test_pipelines_of_a_workspace(
    make_site: Callable[..., Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ING-14, R-CFG-12: which logs are read, and where they are; a workspace that does not answer is said, no more."""
    monkeypatch.setenv("TOKEN", "dapi-1")
    with Workspace(tmp_path / "workspace") as workspace:
        monitor = workspace.principal("monitor@example.com", "dapi-1")
        for name in ("a1", "a2", "b"):
            workspace.pipeline(name, id=name, schema="s", events=logs.update(name, name, NOW, name)).grant(
                monitor, "CAN_VIEW"
            )
        workspace.pipelines["a1"].publish("a1_log")
        site = make_site(config=SOURCES % workspace.host)
        found = {row["log"]: row for row in preview(site.warehouse, NOW)}
        assert found["prod/a1"]["result"] == "new events; published as main.s.a1_log"
        assert {row["pipelines"][0] for row in found.values() if row["source"] == "prod"} == {"a1", "a2", "b"}
        assert found["prod/a2"]["result"] == "new events"
        assert found["prod/b"]["result"] == "left out by names of source prod" and found["prod/b"]["ok"]
        workspace.is_clean()
    monkeypatch.setenv("TOKEN", "")
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    site = make_site("other", config=SOURCES % "http://127.0.0.1:1")
    (none,) = [row for row in preview(site.warehouse, NOW) if row["source"] == "prod"]
    assert "no credentials for the workspace" in none["result"] and not none["ok"]
