"""What goes wrong between here and a workspace loses nothing, doubles nothing and tells nobody a secret."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from databricks.sdk.clock import RealClock
from pydantic import SecretStr

from monitoring_platform.sources.base import SourceError
from monitoring_platform.sources.workspace.client import Workspace as Client
from tests.conftest import NOW
from tests.workspace import Workspace, logs
from tests.workspace.server import KINDS


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's clock goes fifty times as fast while something waits for its next attempt."""
    monkeypatch.setattr(RealClock, "sleep", lambda self, seconds: time.sleep(seconds / 50))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "workspace") as made:
        yield made
        made.is_clean()


def test_an_expired_token_is_renewed(workspace: Workspace) -> None:
    """ING-16: the service tells an expired token by 403, as it tells a permission that is missing."""
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
    """ING-16: listings, statements, chunks of results behind links: all is there in the end, nothing twice."""
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
