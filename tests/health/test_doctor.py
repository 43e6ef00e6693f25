"""`doctor` tries each thing that a cycle needs and says what to do about what fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from monitoring_platform.config import load
from monitoring_platform.cycle.ingest import ingest
from monitoring_platform.health.doctor import examine
from monitoring_platform.sources.diagnosis import Diagnosis
from tests.conftest import NOW, Site, state
from tests.workspace import Principal, Workspace

TOKEN = "dapi0123456789abcdef0123456789abcdef"


def found(site: Site, now: datetime = NOW) -> dict[str, Diagnosis]:
    return {diagnosis.what: diagnosis for diagnosis in examine(load(site.folder / "monitoring.yaml"), now)}


def test_all_is_well(site: Site) -> None:
    site.write("a.jsonl", state("1", 0, "RUNNING"))
    told = found(site)
    assert {what: diagnosis.verdict for what, diagnosis in told.items()} == {
        "java": "note",  # the embedded engine needs none
        "engine": "pass",
        "write access": "pass",
        "clock": "pass",
        "source files:./logs": "pass",
    }
    assert told["source files:./logs"].found == "1 log"
    assert list((site.folder / "warehouse").iterdir()) == []


def test_a_warehouse_that_cannot_be_written_and_a_source_that_is_not_there(make_site: Callable[..., Site]) -> None:
    """Everything is tried although something failed."""
    site = make_site(config="sources:\n  - {type: files, path: ./elsewhere}\n")
    (site.folder / "warehouse").write_text("a file")
    told = found(site)
    assert told["write access"].verdict == "fail"
    assert "set warehouse.path" in str(told["write access"].remedy)
    assert (told["source files:./elsewhere"].verdict, told["source files:./elsewhere"].found) == (
        "fail",
        "it matches nothing",
    )


def test_a_log_that_cannot_be_read(make_site: Callable[..., Site]) -> None:
    """One of two Delta logs is cut: it is named with the reason."""
    site = make_site(config="sources:\n  - {type: delta, path: ./logs/*}\n")
    for name in ("whole", "cut"):
        (site.logs / name / "_delta_log").mkdir(parents=True)
    (site.logs / "whole" / "_delta_log" / f"{0:020d}.json").write_text("{}")
    told = found(site)["source delta:./logs/*"]
    assert told.verdict == "fail"
    assert told.found.startswith("1 of 2 logs cannot be read") and "cut: no commit" in told.found


def test_a_clock_that_is_late(site: Site) -> None:
    """An hour before the newest event that was read, and a minute."""
    site.write("a.jsonl", state("1", 3600, "RUNNING"))
    ingest(site.warehouse, NOW)
    newest = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)
    assert found(site, newest - timedelta(hours=1))["clock"].verdict == "fail"
    assert found(site, newest - timedelta(minutes=1))["clock"].verdict == "pass"


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "workspace") as made:
        yield made
        made.is_clean()


@pytest.fixture
def monitor(stand_in: Workspace) -> Principal:
    return stand_in.principal("monitor@example.com", TOKEN)


def workspace_site(make_site: Callable[..., Site], stand_in: Workspace, more: str = "") -> Site:
    config = f"sources:\n  - {{type: workspace, name: prod, host: '{stand_in.host}', token: '${{A_TOKEN}}'{more}}}\n"
    return make_site(config=config)


def test_a_workspace(
    make_site: Callable[..., Site], stand_in: Workspace, monitor: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-PERM: what the credentials allow, each with the statement that allows more; no secret in any text."""
    monkeypatch.setenv("A_TOKEN", TOKEN)
    stand_in.warehouse("w1", [monitor])
    stand_in.pipeline("sales", id="p1").grant(monitor, "CAN_VIEW")
    told = found(workspace_site(make_site, stand_in, ", sql_warehouse: w1"), datetime.now(timezone.utc))
    assert told["source prod: credentials"].found == f"signed in to {stand_in.host} as monitor@example.com"
    assert told["source prod: clock"].verdict == "pass"
    assert told["source prod: SQL"].verdict == "pass"
    events = told["source prod: pipeline events"]
    assert events.verdict == "note"  # other ways to the logs are open
    assert "GRANT SELECT ON TABLE `system`" in str(events.remedy_sql)
    assert "TO `monitor@example.com`" in str(events.remedy_sql)
    assert told["source prod"].found == "1 log"
    assert told["source prod: usage"].verdict == "note"  # costs are not asked for
    assert TOKEN not in repr(told)


def test_costs_need_their_tables(
    make_site: Callable[..., Site], stand_in: Workspace, monitor: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", TOKEN)
    stand_in.warehouse("w1", [monitor])
    site = workspace_site(make_site, stand_in, ", sql_warehouse: w1")
    with (site.folder / "monitoring.yaml").open("a") as file:
        file.write("costs: {enabled: true}\n")
    told = found(site)
    assert [told[f"source prod: {name}"].verdict for name in ("usage", "list prices", "updates")] == [
        "fail",
        "fail",
        "note",
    ]


def test_only_the_system_table(
    make_site: Callable[..., Site], stand_in: Workspace, monitor: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no other way is configured a missing grant is a failure."""
    monkeypatch.setenv("A_TOKEN", TOKEN)
    stand_in.warehouse("w1", [monitor])
    site = workspace_site(make_site, stand_in, ", sql_warehouse: w1, access: [system_table]")
    assert found(site)["source prod: pipeline events"].verdict == "fail"


def test_credentials_that_are_refused(
    make_site: Callable[..., Site], stand_in: Workspace, monitor: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "dapi99999999999999999999999999999999")
    told = found(workspace_site(make_site, stand_in))
    assert told["source prod: credentials"].verdict == "fail"
    assert "renew the credentials" in str(told["source prod: credentials"].remedy)
    assert "dapi999" not in repr(told)


def test_channels(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ALERT-04: addresses that Apprise understands, and one that it does not; none is told, and nothing is sent."""
    monkeypatch.setenv("OPS", "json://127.0.0.1:1/hidden")
    monkeypatch.setenv("ODD", "nothing://hidden")
    channels = "notifications:\n  channels: {ops: '${OPS}', odd: '${ODD}'}\n  fallback: [ops]\n"
    told = found(make_site(config=channels))
    assert (told["channel ops"].verdict, told["channel odd"].verdict) == ("pass", "fail")
    assert told["channel ops"].found == "JSON; `notify test` sends a message"
    assert told["channel odd"].remedy == "correct ${ODD}: docs/notifications.md"
    assert "hidden" not in repr(told)
