"""What goes wrong between here and a workspace loses nothing, doubles nothing and tells nobody a secret."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from monitoring_platform.sources.base import SourceError
from monitoring_platform.sources.workspace.client import Workspace as Client
from tests.workspace import Workspace


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
