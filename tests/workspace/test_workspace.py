"""The stand-in refuses what the service refuses; asked through the real SDK."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import requests
from databricks.sdk import WorkspaceClient
from databricks.sdk.config import Config
from databricks.sdk.errors import (
    InvalidParameterValue,
    NotFound,
    PermissionDenied,
    ResourceDoesNotExist,
    TooManyRequests,
    Unauthenticated,
)
from databricks.sdk.service.sql import Disposition, Format, StatementParameterListItem, StatementState

from tests.conftest import event, state
from tests.workspace import Pipeline, Principal, Workspace

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
HOW = {"disposition": Disposition.EXTERNAL_LINKS, "format": Format.ARROW_STREAM, "wait_timeout": "30s"}


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "workspace") as made:
        yield made
        assert made.bugs == []


@pytest.fixture
def monitor(workspace: Workspace) -> Principal:
    return workspace.principal("monitor@example.com")


def log(pipeline_id: str, events: int = 3) -> list[dict[str, Any]]:
    """States of one update, a minute apart."""
    states = ["CREATED", "INITIALIZING", "RUNNING", "COMPLETED"]
    return [
        state(f"e{n}", 60 * n, states[min(n, 3)] if n < events - 1 else "COMPLETED", pipeline_id=pipeline_id)
        for n in range(events)
    ]


@pytest.fixture
def sales(workspace: Workspace) -> Pipeline:
    return workspace.pipeline("sales", id="p1", schema="sales", events=log("p1"), tags={"team": "data"})


def sdk(workspace: Workspace, who: Principal) -> WorkspaceClient:
    config = Config(
        host=workspace.host,
        token=who.token,
        client_id=who.client_id,
        client_secret=who.client_secret,
        retry_timeout_seconds=1,
    )
    return WorkspaceClient(config=config)


def rows(workspace: Workspace, who: Principal, statement: str, **parameters: str) -> list[dict[str, Any]]:
    """The rows of a statement, through links."""
    given = [StatementParameterListItem(name, type="STRING", value=value) for name, value in parameters.items()]
    answer = sdk(workspace, who).statement_execution.execute_statement(statement, "w1", parameters=given, **HOW)
    assert answer.status and answer.manifest and answer.result
    assert answer.status.state is StatementState.SUCCEEDED
    links = [link.external_link for link in answer.result.external_links or ()]
    tables = [pa.ipc.open_stream(requests.get(str(link), timeout=5).content).read_all() for link in links]
    return [row for table in tables for row in table.to_pylist()]


def failure(workspace: Workspace, who: Principal, statement: str) -> str:
    """What a statement fails with."""
    answer = sdk(workspace, who).statement_execution.execute_statement(statement, "w1")
    assert answer.status and answer.status.state is StatementState.FAILED and answer.status.error
    return str(answer.status.error.message)


def test_only_what_may_be_viewed_is_listed(workspace: Workspace, monitor: Principal, sales: Pipeline) -> None:
    workspace.pipeline("secret")
    sales.grant(monitor, "CAN_VIEW")
    (found,) = sdk(workspace, monitor).pipelines.list_pipelines()
    assert (found.name, found.creator_user_name) == ("sales", "ana@example.com")
    assert found.latest_updates and found.latest_updates[0].creation_time == "2026-01-01T00:00:00.000Z"
    with pytest.raises(PermissionDenied, match="does not have View permissions on pipeline"):
        sdk(workspace, monitor).pipelines.get("nothing")
    sales.delete()
    assert not list(sdk(workspace, monitor).pipelines.list_pipelines())
    with pytest.raises(ResourceDoesNotExist, match="was not found"):
        sdk(workspace, monitor).pipelines.get("p1")
    workspace.tells_deleted = False
    with pytest.raises(PermissionDenied, match="does not have View permissions on pipeline"):
        sdk(workspace, monitor).pipelines.get("p1")


def test_pages_of_pipelines(workspace: Workspace) -> None:
    admin = workspace.principal("admin@example.com", is_admin=True)
    for number in range(60):
        workspace.pipeline(f"p_{number:02}")
    assert len(list(sdk(workspace, admin).pipelines.list_pipelines())) == 60
    assert len(workspace.called("/api/2.0/pipelines")) == 3
    named = sdk(workspace, admin).pipelines.list_pipelines(filter="name LIKE 'p_1%'")
    assert len(list(named)) == 10
    for wrong in ({"max_results": 101}, {"filter": "name LIKE '%' AND notebook='/a'"}):
        with pytest.raises(InvalidParameterValue):
            list(sdk(workspace, admin).pipelines.list_pipelines(**wrong))  # type: ignore[arg-type]


def test_events_by_page(workspace: Workspace, monitor: Principal) -> None:
    big = workspace.pipeline("big", id="p2", events=log("p2", 60)).grant(monitor, "CAN_VIEW")
    client = sdk(workspace, monitor)
    assert [e.id for e in client.pipelines.list_pipeline_events("p2")] == [f"e{n}" for n in range(59, -1, -1)]
    assert len(workspace.called("/events")) == 3
    page: Any = client.api_client.do("GET", "/api/2.0/pipelines/p2/events", query={"order_by": ["timestamp asc"]})
    assert [e["id"] for e in page["events"]][:2] == ["e0", "e1"]
    with pytest.raises(InvalidParameterValue, match="page token or specify an ordering, but not both"):
        list(client.pipelines.list_pipeline_events("p2", order_by=["timestamp asc"]))
    with pytest.raises(InvalidParameterValue, match="Operation '=' not allowed on 'event_type'"):
        list(client.pipelines.list_pipeline_events("p2", filter="event_type = 'flow_progress'"))
    since = "level in ('INFO', 'ERROR') AND timestamp >= '2026-01-01T00:58:00.000Z'"
    assert [e.id for e in client.pipelines.list_pipeline_events("p2", filter=since)] == ["e59", "e58"]
    big.while_reading = lambda: big.add(state(f"x{len(big.events)}", 3600.0, "COMPLETED", pipeline_id="p2"))
    assert len({e.id for e in client.pipelines.list_pipeline_events("p2")}) == 60


def test_rest_leaves_out(workspace: Workspace, monitor: Principal) -> None:
    """Rows of level METRICS, and fields of events that are too large."""
    p = workspace.pipeline("g", id="g", events=[event("m", level="METRICS"), event("t", error={"fatal": True})])
    p.grant(monitor, "CAN_VIEW").truncate("t", "error")
    answer: Any = sdk(workspace, monitor).api_client.do("GET", "/api/2.0/pipelines/g/events")
    (found,) = answer["events"]
    assert "error" not in found and found["truncation"] == {"truncated_fields": [{"field_name": "error"}]}


def test_tables_need_three_rights(workspace: Workspace, monitor: Principal, sales: Pipeline) -> None:
    workspace.warehouse("w1", [monitor])
    statement = "SELECT id, details FROM `main`.`sales`.`log` WHERE id = :id"
    assert failure(workspace, monitor, "SELECT * FROM main.nowhere.log").startswith("[TABLE_OR_VIEW_NOT_FOUND]")
    sales.publish("log")
    for privilege, thing in (("USE CATALOG", "main"), ("USE SCHEMA", "main.sales"), ("SELECT", "main.sales.log")):
        message = failure(workspace, monitor, statement.replace(":id", "'e1'"))
        assert message.startswith("[INSUFFICIENT_PERMISSIONS]") and f"does not have {privilege} on" in message
        workspace.grant(monitor, privilege, thing)
    assert rows(workspace, monitor, statement, id="e1") == [
        {"id": "e1", "details": '{"update_progress":{"state":"INITIALIZING"}}'}
    ]
    message = failure(workspace, monitor, "SELECT nothing FROM main.sales.log")
    assert message.startswith("[UNRESOLVED_COLUMN.WITH_SUGGESTION]") and "`nothing`" in message


def test_views_are_read_with_the_rights_of_their_owner(
    workspace: Workspace, monitor: Principal, sales: Pipeline
) -> None:
    workspace.warehouse("w1", [monitor])
    sales.publish("log", to="ana@example.com")
    workspace.view("main.share.v", "SELECT id FROM main.sales.log WHERE level = 'INFO'", owner="ana@example.com")
    workspace.grant_table(monitor, "main.share.v")
    assert len(rows(workspace, monitor, "SELECT * FROM main.share.v")) == 3


def test_event_log_function_is_for_owners(workspace: Workspace, monitor: Principal) -> None:
    workspace.warehouse("w1", [monitor])
    own = workspace.pipeline("own", monitor.name, id="own", target="sales", events=log("own"))
    workspace.dataset("main.sales.orders", own)
    workspace.pipeline("other", id="other", target="sales", events=log("other"))
    workspace.pipeline("new", monitor.name, id="new", schema="sales", events=log("new"))
    assert len(rows(workspace, monitor, "SELECT * FROM event_log('own')")) == 3
    assert len(rows(workspace, monitor, "SELECT * FROM event_log(TABLE(main.sales.orders)) AS e")) == 3
    assert "not an owner" in failure(workspace, monitor, "SELECT * FROM event_log('other')")
    assert len(rows(workspace, monitor, "SELECT * FROM event_log('new')")) == 3
    workspace.function_for_legacy_only = True
    assert "[EVENT_LOG_TVF_UNSUPPORTED" in failure(workspace, monitor, "SELECT * FROM event_log('new')")


def test_hidden_tables_are_for_the_run_as_user(workspace: Workspace, monitor: Principal) -> None:
    workspace.warehouse("w1", [monitor])
    pipeline_id = "11111111-2222-3333-4444-555555555555"
    p = workspace.pipeline("p", id=pipeline_id, run_as="monitor@example.com", schema="s", events=log(pipeline_id))
    statement = f"SELECT * FROM main.s.event_log_{pipeline_id.replace('-', '_')}"
    assert len(rows(workspace, monitor, statement)) == 3
    p.modified(run_as="ana@example.com")
    workspace.grant(monitor, "SELECT", "main.s")
    assert "does not have SELECT" in failure(workspace, monitor, statement)


def test_storage_folders_need_the_right_on_files(workspace: Workspace, monitor: Principal, tmp_path: Path) -> None:
    workspace.warehouse("w1", [monitor])
    workspace.pipeline("old", id="old", catalog=None, events=log("old")).store(tmp_path / "store", written="")
    statement = "SELECT id FROM delta.`dbfs:/pipelines/old/system/events`"
    assert "SELECT on any file" in failure(workspace, monitor, statement)
    workspace.grant(monitor, "READ FILES", "*")
    assert len(rows(workspace, monitor, statement)) == 3
    message = failure(workspace, monitor, "SELECT * FROM delta.`/pipelines/new/system/events`")
    assert message.startswith("[DELTA_PATH_DOES_NOT_EXIST]")


def test_system_tables(workspace: Workspace, monitor: Principal, sales: Pipeline) -> None:
    workspace.warehouse("w1", [monitor])
    events = "system.lakeflow_pipeline_events_preview.pipeline_events"
    assert "USE SCHEMA" in failure(workspace, monitor, f"SELECT * FROM {events}")
    workspace.grant_table(monitor, events)
    statement = f"""
        SELECT * EXCEPT (details), CAST(details AS STRING) AS details FROM {events}
        WHERE pipeline_id = :id ORDER BY event_time, pipeline_event_id"""
    first, *_ = rows(workspace, monitor, statement, id="p1")
    assert (first["pipeline_event_id"], first["event_time"], first["update_id"]) == ("e0", START, "u")
    assert '"pipeline_name":"pipe"' in first["origin"] and "pipeline_id" not in first["origin"]
    sales.update("long", START, "COMPLETED", ended=START + timedelta(hours=2, minutes=10))
    workspace.grant_table(monitor, "system.lakeflow.pipeline_update_timeline")
    statement = "SELECT result_state FROM system.lakeflow.pipeline_update_timeline WHERE update_id = 'long' ORDER BY period_start_time"
    assert [row["result_state"] for row in rows(workspace, monitor, statement)] == [None, None, "COMPLETED"]
    workspace.grant_table(monitor, "system.lakeflow.pipelines")
    assert rows(workspace, monitor, "SELECT tags FROM system.lakeflow.pipelines") == [
        {"tags": '[{"key":"team","value":"data"}]'}
    ]


def test_system_tables_have_the_rows_of_a_region(
    workspace: Workspace, monitor: Principal, sales: Pipeline, tmp_path: Path
) -> None:
    workspace.warehouse("w1", [monitor])
    workspace.grant_table(monitor, "system.lakeflow.pipelines")
    with Workspace(tmp_path / "other", "other", workspace_id="77") as other:
        other.join(workspace)
        other.pipeline("elsewhere")
        found = rows(workspace, monitor, "SELECT DISTINCT workspace_id FROM system.lakeflow.pipelines")
        assert {row["workspace_id"] for row in found} == {workspace.workspace_id, "77"}


def test_results_come_in_chunks_behind_links_that_expire(workspace: Workspace, monitor: Principal) -> None:
    workspace.warehouse("w1", [monitor], chunk_rows=4, link_seconds=-1)
    p = workspace.pipeline("p", id="p9", events=log("p9", 10)).publish("log", to=monitor)
    assert p.published_name == "main.default.log"
    client = sdk(workspace, monitor).statement_execution
    answer = client.execute_statement("SELECT id FROM main.default.log ORDER BY id", "w1", **HOW)  # type: ignore[arg-type]
    assert answer.manifest and answer.manifest.total_chunk_count == 3 and answer.result and answer.statement_id
    (link,) = answer.result.external_links or ()
    assert (link.row_count, link.next_chunk_index) == (4, 1)
    assert requests.get(str(link.external_link), timeout=5).status_code == 403
    workspace.warehouses["w1"].link_seconds = 60
    (link,) = client.get_statement_result_chunk_n(answer.statement_id, 2).external_links or ()
    assert link.next_chunk_index is None
    refused = requests.get(str(link.external_link), headers={"Authorization": "Bearer x"}, timeout=5)
    assert refused.status_code == 400
    content = requests.get(str(link.external_link), timeout=5).content
    assert pa.ipc.open_stream(content).read_all().to_pydict() == {"id": ["e8", "e9"]}


def test_arrow_needs_links_and_only_select_runs(workspace: Workspace, monitor: Principal) -> None:
    workspace.warehouse("w1", [monitor])
    client = sdk(workspace, monitor).statement_execution
    with pytest.raises(InvalidParameterValue, match="only with EXTERNAL_LINKS"):
        client.execute_statement("SELECT 1", "w1", format=Format.ARROW_STREAM)
    with pytest.raises(InvalidParameterValue, match="between 5s and 50s"):
        client.execute_statement("SELECT 1", "w1", wait_timeout="3s")
    with pytest.raises(ResourceDoesNotExist):
        client.execute_statement("SELECT 1", "w2")
    assert "only SELECT" in failure(workspace, monitor, "DROP TABLE main.sales.log")
    assert workspace.refused_statements == ["DROP TABLE main.sales.log"]
    answer = client.execute_statement("SELECT 1 AS a, NULL AS b", "w1")
    assert answer.result and answer.result.data_array == [["1", None]]


def test_a_slow_statement_is_polled_and_can_be_cancelled(workspace: Workspace, monitor: Principal) -> None:
    workspace.warehouse("w1", [monitor], seconds=0.6)
    client = sdk(workspace, monitor).statement_execution
    answer = client.execute_statement("SELECT 1", "w1", wait_timeout="0s")
    assert answer.status and answer.status.state is StatementState.PENDING and answer.statement_id
    client.cancel_execution(answer.statement_id)
    again = client.get_statement(answer.statement_id)
    assert again.status and again.status.state is StatementState.CANCELED


def test_oauth_tokens_expire(workspace: Workspace) -> None:
    robot = workspace.service_principal("robot")
    client = sdk(workspace, robot)
    assert client.current_user.me().user_name == "robot"
    workspace.expire_tokens()
    with pytest.raises(PermissionDenied, match="Invalid access token"):
        client.current_user.me()
    workspace.token_seconds = 30  # the SDK takes a new token for each call now
    client = sdk(workspace, robot)
    for _ in range(2):
        client.current_user.me()
    assert len(workspace.issued_tokens) == 3
    assert requests.get(f"{workspace.host}/api/2.0/pipelines", timeout=5).status_code == 401


def test_faults(workspace: Workspace, monitor: Principal) -> None:
    """One call after the other goes wrong in its own way; afterwards all is well."""
    workspace.faults.every(1, ("429", "401", "html", "half", "500", "reset"))
    client = sdk(workspace, monitor)
    seen = []
    for _ in range(6):
        try:
            client.current_user.me()
        except Exception as error:
            seen.append(type(error).__name__)
    workspace.faults.every(0)
    assert workspace.faults.made[:2] == ["429", "401"] and "Unauthenticated" in seen and "JSONDecodeError" in seen
    assert client.current_user.me().user_name == "monitor@example.com"
    workspace.faults.limit(2, 60.0)
    for _ in range(2):
        client.current_user.me()
    with pytest.raises((TooManyRequests, TimeoutError)):
        client.current_user.me()


def test_what_the_service_does_not_have(workspace: Workspace, monitor: Principal) -> None:
    with pytest.raises(NotFound, match="No API found for"):
        sdk(workspace, monitor).api_client.do("GET", "/api/2.0/pipelines/p/logs")
    assert workspace.unknown_calls == ["GET /api/2.0/pipelines/p/logs"]
    with pytest.raises(AssertionError):
        workspace.is_clean()
    stranger = Principal("nobody", token="dapi-unknown")
    with pytest.raises((PermissionDenied, Unauthenticated), match="Invalid access token"):
        sdk(workspace, stranger).current_user.me()


def test_jobs(workspace: Workspace, monitor: Principal) -> None:
    nightly = workspace.job(7, "nightly", team="data")
    for n in range(30):
        nightly.run(100 + 10 * n, START + timedelta(hours=n), START + timedelta(hours=n, minutes=5), ["p1"])
    client = sdk(workspace, monitor).jobs
    found = list(client.list_runs(expand_tasks=True, start_time_from=int(START.timestamp() * 1000) + 1))
    assert len(found) == 29 and found[0].start_time and found[0].tasks
    assert found[0].tasks[0].pipeline_task and found[0].tasks[0].pipeline_task.pipeline_id == "p1"
    assert client.get(7).settings and client.get(7).settings.tags == {"team": "data"}  # type: ignore[union-attr]
    with pytest.raises(InvalidParameterValue):
        list(client.list_runs(limit=26))
