"""What a cycle makes of a workspace as it is: cut events, pages that change, filters, several workspaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from monitoring_platform.config import load
from monitoring_platform.cycle.ingest import ingest
from monitoring_platform.cycle.union import unite
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import Site
from tests.workspace import Principal, SqlError, Workspace, logs

NOW = datetime(2026, 1, 10, 12, tzinfo=timezone.utc)
START = NOW - timedelta(hours=1)


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "workspace") as made:
        yield made
        made.is_clean()


@pytest.fixture
def monitor(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Principal:
    made = workspace.principal("monitor@example.com")
    workspace.warehouse("w1", [made])
    monkeypatch.setenv("WORKSPACE_TOKEN", str(made.token))
    return made


@pytest.fixture
def site_of(tmp_path: Path) -> Callable[..., Site]:
    """Makes a site with these sources, each a workspace and more settings."""

    def make(*sources: tuple[Workspace, str]) -> Site:
        listed = "".join(
            f"  - {{type: workspace, name: {workspace.name}, host: {workspace.host}, token: '${{WORKSPACE_TOKEN}}', "
            f"sql_warehouse: w1, {more}}}\n"
            for workspace, more in sources
        )
        file = tmp_path / "monitoring.yaml"
        file.write_text(f"warehouse: {{path: ./warehouse}}\nsources:\n{listed}", encoding="utf-8")
        return Site(tmp_path, open_warehouse(load(file)))

    return make


def test_cut_events_are_taken_whole_from_the_table(
    workspace: Workspace, monitor: Principal, site_of: Callable[..., Site]
) -> None:
    """R-NEW-03: an event that the API cuts is taken from the table where that may be read; else it says that it is cut."""
    for name in ("open", "shut"):
        pipeline = workspace.pipeline(name, id=name, events=logs.update(name, name, START, f"u-{name}"))
        pipeline.grant(monitor, "CAN_VIEW").publish(f"log_{name}", to=monitor if name == "open" else None)
        pipeline.truncate(f"u-{name}-03", "details")
    site = site_of((workspace, "access: [api, table]"))
    assert ingest(site.warehouse, NOW).failed == {}
    unite(site.warehouse)
    whole = site.row("all_pipelines_event_log", event_id="u-open-03")
    assert whole["details"] == '{"flow_progress":{"status":"RUNNING","metrics":{"num_output_rows":100}}}'
    assert "truncated" not in (whole["flags"] or ())
    cut = site.row("all_pipelines_event_log", event_id="u-shut-03")
    assert (cut["details"], cut["flags"]) == (None, ["truncated"])
    assert {row["access_path"] for row in site.rows("pipelines")} == {"api"}


def test_a_cut_event_waits_for_a_table_that_is_out_of_order(
    workspace: Workspace, monitor: Principal, site_of: Callable[..., Site]
) -> None:
    """R-NEW-03: what would be delivered cut for ever is read later instead."""
    pipeline = workspace.pipeline("p", id="p", events=logs.update("p", "p", START, "u")).grant(monitor, "CAN_VIEW")
    pipeline.publish("log", to=monitor).truncate("u-03", "details")
    pipeline.damage = SqlError("[INTERNAL_ERROR] Try again.", "INTERNAL_ERROR")
    site = site_of((workspace, "access: [api, table]"))
    assert list(ingest(site.warehouse, NOW).failed) == ["stand-in/p"]
    pipeline.damage = None
    assert ingest(site.warehouse, NOW + timedelta(hours=1)).failed == {}
    unite(site.warehouse)
    assert "num_output_rows" in site.row("all_pipelines_event_log", event_id="u-03")["details"]


def test_the_hidden_table_stands_in_for_the_function(
    workspace: Workspace, monitor: Principal, site_of: Callable[..., Site]
) -> None:
    """R-ING-12: where event_log() is for pipelines of the legacy mode only, owners read the table behind it."""
    workspace.function_for_legacy_only = True
    for id_, place in (("new", {"schema": "s"}), ("old", {"target": "s"})):
        workspace.pipeline(id_, monitor.name, id=id_, events=logs.update(id_, id_, START, f"u-{id_}"), **place)  # type: ignore[arg-type]
    site = site_of((workspace, "access: [function]"))
    assert ingest(site.warehouse, NOW).failed == {}
    unite(site.warehouse)
    assert len(site.rows("all_pipelines_event_log")) == 12


@pytest.mark.parametrize("way", ["api", "table"])
def test_a_log_that_grows_while_it_is_read(
    workspace: Workspace, monitor: Principal, site_of: Callable[..., Site], way: str
) -> None:
    """R-NEW-03: events that come between two pages, some of them late, are there after the next cycle, each once."""
    workspace.short_pages = True
    events = [event for n in range(40) for event in logs.update("p", "p", START - timedelta(hours=n), f"u{n}")]
    pipeline = workspace.pipeline("p", id="p", events=events).grant(monitor, "CAN_VIEW").publish("log", to=monitor)
    grown: list[int] = []

    def grow() -> None:
        if len(grown) < 5:
            grown.append(len(grown))
            pipeline.add(*logs.update("p", "p", NOW - timedelta(hours=2 * len(grown), minutes=1), f"late{len(grown)}"))

    pipeline.while_reading = grow
    site = site_of((workspace, f"access: [{way}]"))
    for day in range(7):
        ingest(site.warehouse, NOW + timedelta(days=day))
        unite(site.warehouse)
    found = [row["event_id"] for row in site.rows("all_pipelines_event_log")]
    assert sorted(found) == sorted(str(event["id"]) for event in pipeline.events)
    assert len(grown) == (5 if way == "api" else 0)


def test_filters_and_several_workspaces(
    workspace: Workspace, monitor: Principal, site_of: Callable[..., Site], tmp_path: Path
) -> None:
    """R-PEER-01: tags, names and owners choose, each workspace for itself; what is left out says so."""

    def fill(place: Workspace) -> None:
        for name, owner, tags in (
            ("sales_a", "ana@example.com", {"team": "data", "env": "prod"}),
            ("sales_b", "ana@example.com", {"team": "data", "env": "test"}),
            ("hr_a", "bea@example.com", {"team": "ops"}),
            ("hr_b", "bea@example.com", {}),
        ):
            id_ = f"{place.name}-{name}"
            events = logs.update(id_, name, START, f"u-{id_}")
            place.pipeline(name, owner, id=id_, events=events, tags=tags).grant("monitor@example.com", "CAN_VIEW")

    with Workspace(tmp_path / "second", "second") as second, Workspace(tmp_path / "third", "third") as third:
        for place in (workspace, second, third):
            place.principal("monitor@example.com", token=monitor.token)
            fill(place)
        site = site_of(
            (workspace, "tags: 'team=data,env=prod;team=ops'"),
            (second, "names: ['*_b', 'nothing']"),
            (third, "owners: ['bea@*']"),
        )
        report = ingest(site.warehouse, NOW)
        unite(site.warehouse)
        assert report.failed == {}
        states = {row["pipeline_id"]: row["state"] for row in site.rows("pipelines")}
        chosen = {
            *("stand-in-sales_a", "stand-in-hr_a"),
            *("second-sales_b", "second-hr_b"),
            *("third-hr_a", "third-hr_b"),
        }
        assert {id_ for id_, state in states.items() if state == "seen"} == chosen
        assert {state for id_, state in states.items() if id_ not in chosen} == {"excluded"}
        assert len(states) == 12
        assert {row["pipeline_id"] for row in site.rows("all_pipelines_event_log")} == chosen
        row = site.row("pipelines", pipeline_id="stand-in-sales_b")
        assert "tags" in row["reason"] and "stand-in" in row["remedy"]
        assert dict(row["tags"]) == {"team": "data", "env": "test"}
        second.is_clean()
        third.is_clean()
