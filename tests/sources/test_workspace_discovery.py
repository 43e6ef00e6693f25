"""What is known of a workspace's pipelines: the listing, settings asked for when needed, filters, what vanished."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from monitoring_platform.sources.base import Facts, Look, SourceError
from monitoring_platform.sources.workspace import discovery
from monitoring_platform.sources.workspace.client import Workspace
from monitoring_platform.sources.workspace.filters import Filter
from tests.workspace import Principal
from tests.workspace import Workspace as StandIn
from tests.workspace.logs import update

NOW = datetime(2026, 1, 10, 12, tzinfo=timezone.utc)
TABLE = "system.lakeflow.pipelines"
DAY = timedelta(days=1)


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[StandIn]:
    with StandIn(tmp_path / "workspace") as made:
        yield made
        made.is_clean()


@pytest.fixture
def monitor(stand_in: StandIn) -> Principal:
    who = stand_in.principal("monitor@example.com", "dapi-1")
    stand_in.warehouse("w1", [who])
    for number in range(5):
        id_ = f"p{number}"
        made = stand_in.pipeline(
            f"name {number}", f"owner{number}@example.com", id=id_, run_as="robot", tags={"n": str(number), "all": "x"}
        )
        made.add(*update(id_, made.name, NOW - timedelta(hours=2), f"u{number}")).grant(who, "CAN_VIEW")
    return who


class Looking:
    """Looks at the workspace again and again; what is known is kept as JSON."""

    def __init__(self, stand_in: StandIn, monitor: Principal) -> None:
        self.stand_in = stand_in
        self.workspace = Workspace(
            "prod", stand_in.host, token=SecretStr(str(monitor.token)), sql_warehouse="w1", patience=1
        )
        self.known: dict[str, Facts] = {}
        self.rest: Any = None

    def __call__(self, now: datetime = NOW, failing: tuple[str, ...] = (), **more: Any) -> dict[str, Facts]:
        self.stand_in.calls.clear()
        look = Look(now, deadline=more.get("deadline"), resume=more.get("resume"))
        every = more.get("every", DAY)
        found, self.rest = discovery.discover(self.workspace, TABLE, self.known, frozenset(failing), look, every)
        self.known |= json.loads(json.dumps(found))
        return found

    def described(self) -> list[str]:
        """Pipelines whose settings were asked for in the last look."""
        return sorted(call.path.removeprefix("/api/2.0/pipelines/") for call in self.stand_in.called("/pipelines/"))


@pytest.fixture
def look(stand_in: StandIn, monitor: Principal) -> Looking:
    return Looking(stand_in, monitor)


def test_settings_are_asked_for_when_needed(look: Looking) -> None:
    """New, renamed, failing, or not asked since yesterday."""
    found = look()
    assert look.described() == ["p0", "p1", "p2", "p3", "p4"]
    assert found["p1"]["spec"] == {
        "catalog": "main", "schema": "default", "tags": {"n": "1", "all": "x"}, "continuous": False,
        "development": False, "serverless": True, "channel": "CURRENT",
    }  # fmt: skip
    assert (found["p1"]["creator"], found["p1"]["run_as"]) == ("owner1@example.com", "robot")
    assert found["p1"]["updates"] == [
        {"update_id": "u1", "state": "COMPLETED", "creation_time": "2026-01-10T10:00:00.000Z"}
    ]
    look(NOW + timedelta(hours=1))
    assert look.described() == []
    look.stand_in.pipelines["p2"].name = "renamed"
    look(NOW + timedelta(hours=2), failing=("p3",))
    assert look.described() == ["p2", "p3"]
    look(NOW + DAY)
    assert look.described() == ["p0", "p1", "p4"]


def test_secrets_of_the_settings_are_not_kept(look: Looking) -> None:
    """R-PERM-05: of the settings only what is needed is kept."""
    look.stand_in.pipelines["p0"].spec["configuration"] = {"password": "hunter2"}
    assert "hunter2" not in json.dumps(look())


def test_what_vanished(look: Looking) -> None:
    """R-NEW-02: deleted, or hidden from us, which the service does not tell apart for strangers."""
    look()
    look.stand_in.pipelines["p0"].delete()
    del look.stand_in.pipelines["p1"].permissions["monitor@example.com"]
    found = look(NOW + timedelta(hours=1))
    assert look.described() == ["p0", "p1"]
    assert found["p0"]["deleted"] and found["p0"]["position"] == [{"deleted": True}, None]
    assert not found["p1"]["deleted"] and "does not have View permissions" in found["p1"]["hidden"]
    found = look(NOW + timedelta(hours=2))
    assert look.described() == [] and found["p0"]["deleted"] and found["p1"]["hidden"]
    look.stand_in.pipelines["p1"].grant("monitor@example.com", "CAN_VIEW")
    assert look(NOW + 2 * DAY)["p1"]["hidden"] is None


def test_a_listing_only(look: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sensor's look asks for nothing but the listing, stops at its deadline, and goes on where it stopped."""
    monkeypatch.setattr(discovery, "_PAGE", 2)
    first = look(deadline=time.monotonic())
    assert list(first) == ["p0", "p1"] and look.described() == [] and first["p0"]["spec"] is None
    assert look.rest is not None
    rest = look(deadline=time.monotonic() + 60, resume=look.rest)
    assert list(rest) == ["p2", "p3", "p4"] and look.rest is None
    assert list(look(deadline=time.monotonic() + 60, resume="no token of theirs")) == ["p0", "p1", "p2", "p3", "p4"]


def test_a_page_that_changes_while_it_is_read(look: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "_PAGE", 2)
    look.stand_in.while_listing = lambda: look.stand_in.pipelines.pop("p0", None) and None
    assert set(look()) >= {"p1", "p2", "p3", "p4"}


def test_trouble_with_single_settings(look: Looking) -> None:
    """R-ING-07: what was known stays; a pipeline that was never told of waits."""
    look()
    look.stand_in.faults.every(1, ("500",), only="/pipelines/p0")
    found = look(NOW + DAY)
    assert found["p0"]["undescribed"] and found["p0"]["spec"]["tags"] == {"n": "0", "all": "x"}
    assert found["p1"]["undescribed"] is None
    look.stand_in.faults.every(0)
    assert look(NOW + DAY)["p0"]["undescribed"] is None
    look.stand_in.faults.every(1, ("500",), only="/pipelines$")
    with pytest.raises(SourceError):
        look(NOW + DAY)


def test_what_only_the_system_table_knows(look: Looking, stand_in: StandIn, monitor: Principal) -> None:
    """R-PEER-09, R-NEW-02: pipelines that the API does not show are known all the same; asked once a day."""
    stand_in.pipeline("secret", "bea@example.com", id="p9", tags={"team": "x"})
    stand_in.pipeline("old", id="p8").delete()
    stand_in.pipelines["p1"].spec["pipeline_type"] = "MATERIALIZED_VIEW"
    stand_in.pipelines["p2"].spec["pipeline_type"] = "NEW_KIND"
    assert "p9" not in look()  # the table may not be read
    stand_in.grant(monitor, "USE SCHEMA", "system.lakeflow")
    stand_in.grant(monitor, "SELECT", TABLE)
    assert "p9" not in look(NOW + timedelta(hours=1))
    found = look(NOW + DAY)
    assert len(stand_in.called("/statements/", method="POST")) == 1
    secret = found["p9"]
    assert (secret["name"], secret["creator"], secret["spec"]["tags"]) == ("secret", "bea@example.com", {"team": "x"})
    assert secret["hidden"] and "p8" not in found
    assert (secret["type"], found["p1"]["type"], found["p2"]["type"]) == ("WORKSPACE", "DBSQL", "NEW_KIND")
    stand_in.pipelines["p9"].delete()
    assert look(NOW + DAY + timedelta(hours=1))["p9"]["deleted"] is False
    assert not stand_in.called("/statements/")
    assert look.known["p1"]["type"] == "DBSQL"
    assert look(NOW + 3 * DAY)["p9"]["deleted"]


def test_filters() -> None:
    """R-PEER-01: by tag expression, name and owner."""
    facts = {
        "name": "sales_eu",
        "creator": "ana@example.com",
        "run_as": "robot",
        "spec": {"tags": {"team": "data", "n": 1}},
    }
    assert Filter().left_out_by(facts) is None
    assert Filter(names=("hr_*", "sales_*")).left_out_by(facts) is None
    assert Filter(names=("hr_*",)).left_out_by(facts) == "names"
    assert (
        Filter(owners=("robot",)).left_out_by(facts) is None and Filter(owners=("bea*",)).left_out_by(facts) == "owners"
    )
    both = ((("team", "data"), ("n", "1")),)
    assert Filter(tags=both).left_out_by(facts) is None
    assert Filter(tags=((("team", "data"), ("env", "prod")), (("n", None),))).left_out_by(facts) is None
    assert Filter(tags=((("team", "ops"),),)).left_out_by(facts) == "tags"
    assert Filter(tags=((("team", "ops"),),)).left_out_by({**facts, "spec": None}) is None
