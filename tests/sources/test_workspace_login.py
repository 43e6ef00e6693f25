"""Every way to log in to a workspace, through the SDK's unified authentication, as it is written in a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from databricks.sdk import environments
from databricks.sdk.environments import AzureEnvironment, Cloud, DatabricksEnvironment

from monitoring_platform.config import WorkspaceSource, load
from monitoring_platform.sources.workspace.client import Workspace
from tests.workspace import Workspace as StandIn

DATABRICKS, AZURE = "/oidc/v1/token", "/tenant-1/oauth2/token"
NAMES = ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_CLIENT_ID", "DATABRICKS_CLIENT_SECRET")


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    for name in (*NAMES, "DATABRICKS_CONFIG_PROFILE", "ARM_CLIENT_ID", "ARM_CLIENT_SECRET", "ARM_TENANT_ID"):
        monkeypatch.delenv(name, raising=False)
    with StandIn(tmp_path / "workspace") as made:
        monkeypatch.setenv("A_TOKEN", str(made.principal("ana@example.com").token))
        monkeypatch.setenv("A_SECRET", str(made.service_principal("robot").client_secret))
        yield made
        made.is_clean()


def signed_in(stand_in: StandIn, folder: Path, entry: str) -> tuple[str, list[str]]:
    """Who a source of the configuration is there, and where it got tokens. Its name is new: connections are kept."""
    file = folder / "monitoring.yaml"
    file.write_text(f"warehouse: {{path: ./w}}\nsources: [{{type: workspace, name: {folder.name}, {entry}}}]\n")
    settings = load(file)
    (source,) = settings.sources
    assert isinstance(source, WorkspaceSource)
    who = Workspace.from_settings(source, settings.engine).principal
    return who, [call.path for call in stand_in.calls if call.path.endswith("/token")]


def test_a_token(stand_in: StandIn, tmp_path: Path) -> None:
    entry = f"host: '{stand_in.host}', token: '${{A_TOKEN}}'"
    assert signed_in(stand_in, tmp_path, entry) == ("ana@example.com", [])


def test_a_service_principal(stand_in: StandIn, tmp_path: Path) -> None:
    """OAuth M2M: a token of the workspace for the client's secret."""
    entry = f"host: '{stand_in.host}', client_id: robot, client_secret: '${{A_SECRET}}'"
    assert signed_in(stand_in, tmp_path, entry) == ("robot", [DATABRICKS])


@pytest.mark.parametrize(("profile", "who"), [("person", "ana@example.com"), ("machine", "robot")])
def test_a_profile(stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, who: str) -> None:
    file, robot = tmp_path / "databrickscfg", stand_in.principals["robot"]
    file.write_text(
        f"[person]\nhost = {stand_in.host}\ntoken = {stand_in.principals['ana@example.com'].token}\n"
        f"[machine]\nhost = {stand_in.host}\nclient_id = robot\nclient_secret = {robot.client_secret}\n"
    )
    monkeypatch.setenv("DATABRICKS_CONFIG_FILE", str(file))
    assert signed_in(stand_in, tmp_path, f"profile: {profile}")[0] == who


def test_the_environment(stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without credentials in the entry the environment's count."""
    robot = stand_in.principals["robot"]
    for name, value in zip(NAMES, (stand_in.host, None, "robot", robot.client_secret)):
        if value:
            monkeypatch.setenv(name, value)
    assert signed_in(stand_in, tmp_path, "access: [api]") == ("robot", [DATABRICKS])


def test_the_entry_counts_more_than_the_environment(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other credentials in the environment are neither used nor a conflict."""
    for name, value in zip(NAMES, ("https://elsewhere.example", "dapi-other", "other", "dose-other")):
        monkeypatch.setenv(name, value)
    entry = f"host: '{stand_in.host}', token: '${{A_TOKEN}}'"
    assert signed_in(stand_in, tmp_path, entry) == ("ana@example.com", [])


def test_azure(stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service principal of Azure's directory. The SDK knows its address by the workspace's domain: that is replaced."""
    here = AzureEnvironment("PUBLIC", *(f"{stand_in.host}/",) * 3)
    domain = stand_in.host.removeprefix("http://")
    zone = DatabricksEnvironment(Cloud.AZURE, domain, azure_application_id="databricks", azure_environment=here)
    monkeypatch.setattr(environments, "ALL_ENVS", [zone])
    monkeypatch.setenv("DATABRICKS_HOST", stand_in.host)
    monkeypatch.setenv("ARM_TENANT_ID", "tenant-1")
    monkeypatch.setenv("ARM_CLIENT_ID", "robot")
    monkeypatch.setenv("ARM_CLIENT_SECRET", str(stand_in.principals["robot"].client_secret))
    assert signed_in(stand_in, tmp_path, "access: [api]") == ("robot", [AZURE, AZURE])  # for the workspace, for Azure
