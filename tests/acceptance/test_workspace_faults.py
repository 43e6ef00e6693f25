"""What goes wrong between here and a workspace loses nothing, doubles nothing and tells nobody a secret."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from databricks.sdk.clock import RealClock
from deltalake import DeltaTable
from pydantic import SecretStr

from monitoring_platform.config import load
from monitoring_platform.cycle.ingest import ingest
from monitoring_platform.cycle.union import unite
from monitoring_platform.sources.base import SourceError
from monitoring_platform.sources.workspace.client import Workspace as Client
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import Site
from tests.workspace import Principal, Workspace, logs
from tests.workspace.server import KINDS

CLI = Path(sys.executable).with_name("monitoring-platform")
NOW = datetime(2026, 1, 10, 12, tzinfo=timezone.utc)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's clock goes fifty times as fast while something waits for its next attempt."""
    monkeypatch.setattr(RealClock, "sleep", lambda self, seconds: time.sleep(seconds / 50))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "workspace") as made:
        yield made
        made.is_clean()


def filled(workspace: Workspace, who: Principal, pipelines: int) -> int:
    """Pipelines that are read in three ways; returns the number of their events."""
    workspace.warehouse("w1", [who], chunk_rows=5)
    for number in range(pipelines):
        id_ = f"{workspace.name}-{number}"
        owner = who.name if number % 3 == 1 else "ana@example.com"
        place = {"target": "s"} if number % 3 == 1 else {"schema": "s"}
        events = [
            event
            for hour in range(3)
            for event in logs.update(id_, f"p{number}", NOW - timedelta(hours=3 - hour), f"{id_}/{hour}")
        ]
        made = workspace.pipeline(f"p{number}", owner, id=id_, events=events, **place).grant(who, "CAN_VIEW")  # type: ignore[arg-type]
        if number % 3 == 0:
            made.publish(f"log_{number}", to=who)
    return 18 * pipelines


def configured(folder: Path, *sources: str) -> Path:
    """A configuration with these workspaces."""
    folder.mkdir(exist_ok=True)
    listed = "".join(f"  - {{type: workspace, sql_warehouse: w1, {source}}}\n" for source in sources)
    file = folder / "monitoring.yaml"
    file.write_text(f"warehouse: {{path: ./warehouse}}\nsources:\n{listed}", encoding="utf-8")
    return file


def test_every_tenth_call_fails(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-NEW-03: cycles until all is read, each call failing in the next way: nothing is lost, nothing doubled."""
    robot = workspace.service_principal("robot")
    events = filled(workspace, robot, 7)
    workspace.short_pages = True
    monkeypatch.setenv("SECRET", str(robot.client_secret))
    source = f"host: {workspace.host}, client_id: robot, client_secret: '${{SECRET}}'"
    site = Site(tmp_path, open_warehouse(load(configured(tmp_path / "site", source))))
    workspace.faults.every(10)
    for cycle in range(12):
        failed = ingest(site.warehouse, NOW + timedelta(minutes=cycle)).failed
        unite(site.warehouse)
        if cycle % 3 == 0:
            workspace.expire_tokens()
        if not failed and set(KINDS) <= set(workspace.faults.made):
            break
        for pipeline in workspace.pipelines.values():
            start = NOW + timedelta(minutes=cycle)
            pipeline.add(*logs.update(pipeline.id, pipeline.name, start, f"{pipeline.id}/more {cycle}"))
            events += 6
    assert set(KINDS) <= set(workspace.faults.made)
    found = Counter((row["pipeline_id"], row["event_id"]) for row in site.rows("all_pipelines_event_log"))
    assert set(found.values()) == {1} and found.total() == events
    assert {row["state"] for row in site.rows("pipelines")} == {"seen"}


def test_a_limit_of_calls(workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-NEW-03: where the service limits calls it is asked again when it says so, and all is read in one cycle."""
    monitor = workspace.principal("monitor@example.com")
    events = filled(workspace, monitor, 9)
    monkeypatch.setenv("TOKEN", str(monitor.token))
    file = configured(tmp_path / "site", f"host: {workspace.host}, token: '${{TOKEN}}'")
    site = Site(tmp_path, open_warehouse(load(file)))
    workspace.faults.limit(5, 0.1)
    assert ingest(site.warehouse, NOW).failed == {}
    assert unite(site.warehouse).added == events
    assert 429 in {call.status for call in workspace.calls}


def test_exit_codes_and_secrets(workspace: Workspace, tmp_path: Path) -> None:
    """R-ING-07, R-PERM-05: exit 1 and a name for what failed, exit 0 if somebody only has to grant something; and no
    credential in any table, log, Dagster's storage or output, even if an error repeats it."""
    robot = workspace.service_principal("robot")
    filled(workspace, robot, 3)
    workspace.faults.every(3, ("echo", "401", "html"))
    with Workspace(tmp_path / "other", "other") as other:
        monitor = other.principal("monitor@example.com")
        filled(other, monitor, 3)
        other.events_need = "CAN_RUN"  # so that one log cannot be read
        other.faults.every(3, ("echo", "401", "500"))
        secrets = {"SECRET": str(robot.client_secret), "TOKEN": str(monitor.token), "WRONG": "dapi-nobody-knows-me"}
        good = (
            f"name: first, host: {workspace.host}, client_id: robot, client_secret: '${{SECRET}}'",
            f"name: second, host: {other.host}, token: '${{TOKEN}}'",
        )
        file = configured(tmp_path / "site", *good, f"name: wrong, host: {other.host}, token: '${{WRONG}}'")
        first = _run(file, secrets)
        assert first.returncode == 1
        assert b"wrong" in first.stdout
        for place in (workspace, other):
            place.faults.every(0)
        second = _run(configured(tmp_path / "site", *good), secrets)
        assert second.returncode == 0, second.stderr
        states = Counter(row["state"] for row in _rows(file.parent / "warehouse" / "pipelines"))
        assert states == {"stale": 5, "log_not_published": 1}
        needles = [*secrets.values(), *workspace.issued_tokens, *workspace.links, *other.links]
        haystack = b"".join((first.stdout, first.stderr, second.stdout, second.stderr, _bytes_of(file.parent)))
        assert [needle for needle in needles if needle.encode() in haystack] == []
        assert b"Request refused" in haystack  # so that there was something to be found
        other.is_clean()


def _run(file: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """One cycle by the command line."""
    command = [CLI, "run", "--config", file.name]
    return subprocess.run(command, cwd=file.parent, env=os.environ | environment, capture_output=True, check=False)


def _rows(table: Path) -> list[dict[str, Any]]:
    return DeltaTable(table).to_pyarrow_table().to_pylist()


def _bytes_of(folder: Path) -> bytes:
    """All that was written: every file as it is, and the contents of the tables, whose files are compressed."""
    files = b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())
    tables = [path.parent for path in folder.rglob("_delta_log") if path.is_dir()]
    return files + "".join(str(_rows(path)) for path in tables).encode()


def test_an_expired_token_is_renewed(workspace: Workspace) -> None:
    """R-NEW-03: the service tells an expired token by 403, as it tells a permission that is missing."""
    robot = workspace.service_principal("robot")
    assert robot.client_secret
    client = Client("w", workspace.host, client_id=robot.client_id, client_secret=SecretStr(robot.client_secret))
    client.get("/api/2.0/pipelines")
    workspace.expire_tokens()
    client.get("/api/2.0/pipelines")
    assert [call.status for call in workspace.called("/api/2.0/pipelines")] == [200, 403, 200]
    wrong = client._replace(client_secret=SecretStr("dose-wrong"))
    with pytest.raises(SourceError, match="invalid_client") as refused:
        wrong.get("/api/2.0/pipelines")
    assert refused.value.transient and "dose-wrong" not in refused.value.reason
    stranger = Client("w", workspace.host, token=SecretStr("dapi-wrong"))
    with pytest.raises(SourceError, match="refuses the credentials") as refused:
        stranger.get("/api/2.0/pipelines")
    assert refused.value.transient and "renew the credentials" in refused.value.remedy


def test_every_kind_of_fault_on_every_kind_of_call(workspace: Workspace) -> None:
    """R-NEW-03: listings, statements, chunks of results behind links: all is there in the end, nothing twice."""
    monitor = workspace.principal("monitor@example.com", is_admin=True)
    workspace.warehouse("w1", [monitor], chunk_rows=20)
    client = Client("w", workspace.host, token=SecretStr(str(monitor.token)), sql_warehouse="w1")
    for number in range(30):
        workspace.pipeline(f"p{number}")
    events = [event for n in range(20) for event in logs.update("big", "big", NOW + timedelta(hours=n), f"u{n}")]
    workspace.pipeline("big", id="big", events=events).publish("log", to=monitor)
    for only in ("/pipelines$", "/events$", "/statements/", "/external/"):
        workspace.faults.every(2, only=only)
        for _ in range(2):
            listed = list(client.pages("/api/2.0/pipelines", {"max_results": 2}, "statuses"))
            assert len({status["pipeline_id"] for status in listed}) == len(listed) == 31
            found = list(client.pages("/api/2.0/pipelines/big/events", {"max_results": 30}, "events"))
            assert len({event["id"] for event in found}) == len(found) == 120
            assert client.sql("SELECT id FROM main.default.log ORDER BY id").num_rows == 120
    assert set(KINDS) <= set(workspace.faults.made)
