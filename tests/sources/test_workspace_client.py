"""Speaking to a workspace through the real SDK: results in chunks, waiting, cancelling, errors, secrets."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import SecretStr

from monitoring_platform.sources.base import NeedsEngine, SourceError
from monitoring_platform.sources.workspace.client import Workspace
from monitoring_platform.sources.workspace.statements import NoSql
from tests.workspace import Principal, Warehouse
from tests.workspace import Workspace as StandIn

TOKEN = "dapi0123456789abcdef0123456789abcdef"
NUMBERS = pa.table({"n": pa.array(range(10), pa.int64()), "at": [datetime(2026, 1, 1, tzinfo=timezone.utc)] * 10})


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[StandIn]:
    with StandIn(tmp_path / "workspace") as made:
        made.table("main.s.numbers", NUMBERS)
        yield made
        made.is_clean()


@pytest.fixture
def monitor(stand_in: StandIn) -> Principal:
    who = stand_in.principal("monitor@example.com", TOKEN)
    stand_in.grant_table(who, "main.s.numbers")
    return who


@pytest.fixture
def warehouse(stand_in: StandIn, monitor: Principal) -> Warehouse:
    return stand_in.warehouse("w1", [monitor])


@pytest.fixture
def workspace(stand_in: StandIn, warehouse: Warehouse) -> Workspace:
    return Workspace("prod", stand_in.host, token=SecretStr(TOKEN), sql_warehouse="w1")


def refused(workspace: Workspace, statement: str, **parameters: str) -> SourceError:
    with pytest.raises(SourceError) as error:
        workspace.sql(statement, parameters)
    return error.value


def test_a_result_in_chunks(workspace: Workspace, warehouse: Warehouse) -> None:
    """R-NEW-03: parameters are bound, chunks follow each other, presigned links are fetched without credentials."""
    warehouse.chunk_rows = 3
    since = datetime(2026, 1, 1, tzinfo=timezone.utc)
    found = workspace.sql(
        "SELECT n FROM main.s.numbers WHERE n >= :least AND at >= :since AND 'x;--' = :text ORDER BY n",
        {"least": 2, "since": since, "text": "x;--"},
    )
    assert found["n"].to_pylist() == [2, 3, 4, 5, 6, 7, 8, 9]
    none = workspace.sql("SELECT n, at FROM main.s.numbers WHERE n > 100")
    assert none.num_rows == 0 and none.column_names == ["n", "at"]


def test_a_statement_that_takes_its_time(workspace: Workspace, warehouse: Warehouse, stand_in: StandIn) -> None:
    """It is waited for by polling; one that takes too long is cancelled."""
    warehouse.seconds = 5.5
    polled = threading.Thread(target=lambda: workspace.sql("SELECT n FROM main.s.numbers"))
    polled.start()
    with pytest.raises(SourceError, match="did not finish in time") as late:
        workspace.sql("SELECT n FROM main.s.numbers", seconds=0.1)
    polled.join()
    assert late.value.transient
    assert len(stand_in.called("/cancel")) == 1
    assert [one.state for one in stand_in.statements.values()].count("CANCELED") == 1


def test_an_expired_link_is_replaced(workspace: Workspace, warehouse: Warehouse, stand_in: StandIn) -> None:
    warehouse.link_seconds = -1.0
    threading.Timer(0.5, lambda: setattr(warehouse, "link_seconds", 900.0)).start()
    assert workspace.sql("SELECT n FROM main.s.numbers").num_rows == 10
    assert stand_in.called("/result/chunks/0")


def test_what_a_refusal_means(workspace: Workspace, stand_in: StandIn, monitor: Principal) -> None:
    """R-NEW-02: states follow from what the service says."""
    stand_in.table("main.s.secret", NUMBERS)
    denied = refused(workspace, "SELECT * FROM main.s.secret")
    assert (denied.state, denied.transient) == ("no_grant", False) and "SELECT on Table" in denied.reason
    assert refused(workspace, "SELECT * FROM main.s.nothing").state == "log_not_published"
    wrong = refused(workspace, "SELECT oops FROM main.s.numbers")
    assert (wrong.state, wrong.transient) == ("unreadable", False)
    with pytest.raises(SourceError) as hidden:
        workspace.get("/api/2.0/pipelines/nothing")
    assert (hidden.value.state, hidden.value.transient) == ("no_grant", False)
    assert "auth_type" not in hidden.value.reason  # what the SDK adds for debugging
    assert not stand_in.called("/cancel")


def test_no_sql(workspace: Workspace, stand_in: StandIn) -> None:
    """A SQL warehouse that may not be used, is not there, or is not configured."""
    stand_in.warehouse("w2")
    assert refused(workspace._replace(sql_warehouse="w2"), "SELECT 1").state == "no_grant"
    gone = refused(workspace._replace(sql_warehouse="w3"), "SELECT 1")
    assert isinstance(gone, NoSql) and gone.state == "unreadable" and "set sql_warehouse" in gone.remedy
    assert isinstance(refused(workspace._replace(sql_warehouse=None), "SELECT 1"), NoSql)
    with pytest.raises(NeedsEngine):
        workspace._replace(sql_warehouse=None, by_engine=True).sql("SELECT 1")


def test_rate_limits(workspace: Workspace, stand_in: StandIn) -> None:
    """R-NEW-02: a short limit is waited for as long as the service says, once; a long one is a state."""
    stand_in.faults.limit(1, 1.5, retry_after=2)
    for _ in range(2):
        workspace.get("/api/2.0/pipelines")
    first, refused_one, again = stand_in.called("/api/2.0/pipelines")
    assert [call.status for call in (first, refused_one, again)] == [200, 429, 200]
    assert again.at - refused_one.at >= 2
    stand_in.faults.limit(1, 3600, retry_after=3600)
    began = time.monotonic()
    with pytest.raises(SourceError, match="limits calls") as limited:
        workspace.get("/api/2.0/pipelines")
    assert (limited.value.state, limited.value.transient) == ("rate_limited", True)
    assert time.monotonic() - began < 5


def test_a_login_that_hangs(stand_in: StandIn) -> None:
    """The SDK waits for a token without limit; we do not, and what hangs does not keep the next one from logging in."""
    secret = stand_in.service_principal("robot").client_secret
    client = Workspace("prod", stand_in.host, client_id="robot", client_secret=SecretStr(str(secret)), patience=1)
    stand_in.faults.seconds, stand_in.faults.slow = 60.0, "/oidc/v1/token"
    with pytest.raises(SourceError, match="nothing came for 3 s") as hanging:
        client.get("/api/2.0/pipelines")
    assert (hanging.value.state, hanging.value.transient) == ("unreadable", True)
    stand_in.faults.seconds = 0.0
    assert client.get("/api/2.0/pipelines") == {}
    assert [call.status for call in stand_in.called("/oidc/v1/token")] == [0, 200]


def test_secrets_are_never_told(workspace: Workspace, stand_in: StandIn) -> None:
    """R-PERM-05."""
    assert TOKEN not in repr(workspace) + str(workspace)
    assert pickle.loads(pickle.dumps(workspace)) == workspace
    assert workspace.principal == "monitor@example.com"
    with pytest.raises(SourceError, match="does not answer") as silent:
        workspace._replace(host="http://127.0.0.1:1", patience=1).get("/api/2.0/pipelines")
    assert silent.value.transient and silent.value.state == "unreadable"
    stranger = workspace._replace(token=SecretStr("dapi-other"))
    with pytest.raises(SourceError, match="refuses the credentials") as unknown:
        stranger.get("/api/2.0/pipelines")
    assert "renew the credentials of source prod" in unknown.value.remedy and "dapi-other" not in unknown.value.reason


def test_no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """R-CFG-12: they are needed at run time only; what is missing is said then."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("DATABRICKS_HOST", "DATABRICKS_TOKEN", "DATABRICKS_CONFIG_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(SourceError, match="no credentials for the workspace") as missing:
        Workspace("prod").get("/api/2.0/pipelines")
    assert "DATABRICKS_HOST" in missing.value.remedy and missing.value.transient
