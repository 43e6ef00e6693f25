"""300 pipelines of a workspace in every state of coverage, by the command line as users call it.

The ledger says of each what it is, why, and what to do; the exit code says whether the platform did its work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable

from tests.workspace import Pipeline, Principal, SqlError, Workspace, logs

CLI = Path(sys.executable).with_name("monitoring-platform")
NOW = datetime(2026, 1, 10, 12, tzinfo=timezone.utc)
LATER = NOW + timedelta(hours=1)
LATEST = NOW + timedelta(hours=2)
HOUR = 3600  # after which the service wants to be asked again


class Case(NamedTuple):
    """Pipelines that have the same fate: how they are set up, what becomes of them later, and what is to be said."""

    name: str
    number: int
    state: str
    make: Callable[[World, str], Pipeline]
    later: Callable[[World, Pipeline], None] = lambda world, pipeline: None
    way: str | None = None
    reason: str = ""
    remedy: str = ""
    remedy_sql: str | None = None


class World:
    """The workspace, who looks at it, and the site that does."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.former = Workspace(folder / "workspace"), Workspace(folder / "former", "former")
        self.monitor: Principal = self.workspace.principal("monitor@example.com")
        self.former.principal(self.monitor.name, self.monitor.token)
        self.workspace.warehouse("w1", [self.monitor])
        self.workspace.events_need = "CAN_RUN"
        self.workspace.faults.retry_after = HOUR
        self.workspace.grant(self.monitor, "USE CATALOG", "main")
        self.folder = folder / "site"
        self.folder.mkdir()

    def pipeline(self, name: str, level: str | None = "CAN_VIEW", at: datetime | None = NOW, **more: Any) -> Pipeline:
        """A pipeline with one update that began an hour before a time; without a time it never ran."""
        made = self.workspace.pipeline(name, **more)
        if at is not None:
            made.add(*logs.update(made.id, name, at - timedelta(hours=1), f"update of {made.id}"))
        return made.grant(self.monitor, level) if level else made


def _published(world: World, name: str) -> Pipeline:
    return world.pipeline(name, catalog="main", schema="open").publish(f"log_{name}", to=world.monitor)


def _owned(world: World, name: str) -> Pipeline:
    return world.pipeline(name, owner=world.monitor.name, catalog="main", target="own")


def _run_as(world: World, name: str) -> Pipeline:
    """Somebody else's, but it runs as we: the hidden table of its log may be read."""
    return world.pipeline(name, run_as=world.monitor.name, catalog="main", schema="hidden")


def _by_api(world: World, name: str) -> Pipeline:
    return world.pipeline(name, "CAN_RUN", catalog="main", schema="hidden")


def _without_select(world: World, name: str) -> Pipeline:
    world.workspace.grant(world.monitor, "USE SCHEMA", "main.half")
    return world.pipeline(name, catalog="main", schema="half").publish(f"log_{name}")


def _without_catalog(world: World, name: str) -> Pipeline:
    return world.pipeline(name, catalog="finance", schema="ledger").publish("log", schema=f"of_{name}")


def _not_published(world: World, name: str) -> Pipeline:
    return world.pipeline(name, catalog="main", schema="hidden")


def _limited(world: World, name: str) -> Pipeline:
    made = _by_api(world, name)
    made.trouble = 429
    return made


def _damaged(world: World, name: str) -> Pipeline:
    made = _published(world, name)
    made.damage = SqlError("[INTERNAL_ERROR] A file of the table cannot be read.", "INTERNAL_ERROR")
    return made


def _recreate(world: World, pipeline: Pipeline) -> None:
    pipeline.delete(LATER)
    world.pipeline(pipeline.name, "CAN_RUN", LATER, id=f"{pipeline.id}-again", catalog="main", schema="hidden")


def _in_former(world: World, name: str) -> Pipeline:
    """In a workspace that is taken out of the configuration later."""
    made = world.former.pipeline(name).grant(world.monitor, "CAN_VIEW")
    return made.add(*logs.update(made.id, name, NOW - timedelta(hours=1), f"update of {made.id}"))


def _hide(world: World, pipeline: Pipeline) -> None:
    del pipeline.permissions[world.monitor.name]


CASES = (
    Case("published", 55, "seen", _published, way="table"),
    Case("owned", 35, "seen", _owned, way="function"),
    Case("run_as", 5, "seen", _run_as, way="function"),
    Case("by_api", 40, "seen", _by_api, way="api"),
    Case("no_select", 25, "no_grant", _without_select, reason="does not have SELECT on", remedy_sql="GRANT SELECT ON TABLE `main`.`half`.`log_{name}` TO `monitor@example.com`;"),
    Case("no_catalog", 10, "no_grant", _without_catalog, reason="USE CATALOG on Catalog 'finance'", remedy_sql="GRANT USE CATALOG ON CATALOG `finance` TO `monitor@example.com`;"),
    Case("unpublished", 35, "log_not_published", _not_published, remedy="publish it", remedy_sql='{"event_log":{"name":"{name}_event_log"}}'),
    Case("legacy", 15, "not_owner", lambda w, n: w.pipeline(n, catalog="main", target="hidden"), remedy="as the owner", remedy_sql='{"event_log":{"name":"{name}_event_log"}}'),
    Case("never", 20, "never_ran", lambda w, n: w.pipeline(n, "CAN_RUN", None, catalog="main", schema="hidden")),
    Case("stale", 15, "stale", lambda w, n: w.pipeline(n, "CAN_RUN", NOW - timedelta(days=5), catalog="main", schema="hidden"), way="api"),
    Case("deleted", 10, "deleted", _by_api, lambda w, p: p.delete(LATER) and None),
    Case("recreated", 5, "deleted", _by_api, _recreate),
    Case("gone", 5, "no_grant", _by_api, _hide, reason="it was deleted, or shown to us no longer", remedy="CAN VIEW", remedy_sql='"permission_level":"CAN_VIEW"'),
    Case("former", 5, "retired", _in_former, reason="no configured source lists its log any more"),
    Case("limited", 5, "rate_limited", _limited, reason="limits calls"),
    Case("broken", 5, "unreadable", _damaged, reason="A file of the table cannot be read"),
    Case("sandbox", 10, "excluded", _by_api),
)  # fmt: skip


def configuration(world: World, *more: str) -> Path:
    """The file with the workspace and more sources."""
    file = world.folder / "monitoring.yaml"
    sources = [f"name: prod, sql_warehouse: w1, host: {world.workspace.host}", *more]
    listed = "".join(f"  - {{type: workspace, token: '${{WORKSPACE_TOKEN}}', {source}}}\n" for source in sources)
    file.write_text(
        f"warehouse: {{path: ./warehouse}}\nsources:\n{listed}pipelines: {{exclude: ['sandbox_*']}}\n", encoding="utf-8"
    )
    return file


class Cycle(NamedTuple):
    """What one `monitoring-platform run` left behind."""

    exit: int
    failed: set[str]  # locations of logs
    ledger: dict[str, dict[str, Any]]  # by id
    events: Counter[str]  # in the union, by id


class Seen(NamedTuple):
    """What three cycles, an hour apart each, made of the workspace; before the last one all trouble is over."""

    made: dict[str, tuple[Case, Pipeline]]  # by id
    first: Cycle
    second: Cycle
    third: Cycle


def cycle(world: World, now: datetime, *more: str) -> Cycle:
    """One cycle by the command line; its output has to be JSON."""
    file = configuration(world, *more)
    done = subprocess.run(
        [CLI, "run", "--config", file.name, "--now", now.isoformat(), "--json"],
        cwd=file.parent,
        env=os.environ | {"WORKSPACE_TOKEN": str(world.monitor.token)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    found = json.loads(done.stdout)
    offenders = [
        row for check in found["findings"] if check["check"] == "sources_reachable" for row in check["offenders"]
    ]
    tables = file.parent / "warehouse"
    ledger = DeltaTable(tables / "pipelines").to_pyarrow_table().to_pylist()
    union = DeltaTable(tables / "all_pipelines_event_log").to_pyarrow_table(columns=["pipeline_id"])
    return Cycle(
        done.returncode,
        {row["location"] for row in offenders},
        {row["pipeline_id"]: row for row in ledger},
        Counter(union["pipeline_id"].to_pylist()),
    )


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    world = World(tmp_path_factory.mktemp("coverage"))
    made = {}
    for case in CASES:
        for number in range(case.number):
            pipeline = case.make(world, f"{case.name}_{number:02}")
            made[pipeline.id] = case, pipeline
    first = cycle(world, NOW, f"name: former, access: [api], host: {world.former.host}")
    for case, pipeline in made.values():
        case.later(world, pipeline)
    second = cycle(world, LATER)
    for _, pipeline in made.values():
        pipeline.trouble = pipeline.damage = None
    yield Seen(made, first, second, cycle(world, LATEST))
    for workspace in (world.workspace, world.former):
        workspace.close()
        workspace.is_clean()


def test_every_pipeline_has_its_state(seen: Seen) -> None:
    """R-NEW-02: 300 pipelines, and 5 that came in the place of others: each is in the ledger, in its state."""
    assert sum(case.number for case in CASES) == 300
    rows = seen.second.ledger
    expected = {id_: case.state for id_, (case, _) in seen.made.items()}
    expected |= {f"{id_}-again": "seen" for id_, (case, _) in seen.made.items() if case.name == "recreated"}
    assert {id_: row["state"] for id_, row in rows.items()} == expected
    assert Counter(row["state"] for row in rows.values()).total() == 305


def test_every_pipeline_has_its_reason_and_remedy(seen: Seen) -> None:
    """R-NEW-02, R-PERM-01, R-PERM-02: why it is not read, and the very statement or setting that opens it."""
    for id_, (case, pipeline) in seen.made.items():
        row = seen.second.ledger[id_]
        assert case.reason in row["reason"], row
        assert case.remedy in (row["remedy"] or ""), row
        sql = case.remedy_sql and case.remedy_sql.replace("{name}", pipeline.name)
        assert (sql is None and row["remedy_sql"] is None) or (sql or "") in (row["remedy_sql"] or ""), row
        assert row["access_path"] == case.way or case.way is None, row


def test_what_was_read(seen: Seen) -> None:
    """R-NEW-03: every log that may be read is in the union, once; of the others nothing is."""
    read = ("seen", "stale", "deleted", "retired")
    wanted = {id_: 6 for id_, (case, _) in seen.made.items() if case.state in read or case.name == "gone"}
    wanted |= {f"{id_}-again": 6 for id_, (case, _) in seen.made.items() if case.name == "recreated"}
    assert seen.second.events == wanted


def test_a_recreated_pipeline_is_linked(seen: Seen) -> None:
    """R-PEER-01: a new id under an old name knows what came before it."""
    for id_, (case, pipeline) in seen.made.items():
        if case.name == "recreated":
            row = seen.second.ledger[f"{id_}-again"]
            assert (row["predecessor_id"], row["pipeline_name"]) == (id_, pipeline.name)


def test_exit_codes(seen: Seen) -> None:
    """R-ING-07: a run fails by what is to be repeated (limits, damage) and names it, not by what somebody has to grant."""
    troubled = {f"prod/{id_}" for id_, (case, _) in seen.made.items() if case.name in ("limited", "broken")}
    assert (seen.first.exit, seen.first.failed) == (1, troubled)
    assert (seen.second.exit, seen.second.failed) == (1, troubled)
    assert (seen.third.exit, seen.third.failed) == (0, set())


def test_when_a_limited_log_is_tried_again(seen: Seen) -> None:
    """R-NEW-02: not before the service wants to be asked again; once it answers all is there and nothing is due."""
    for id_, (case, _) in seen.made.items():
        if case.name == "limited":
            first, second, third = (one.ledger[id_] for one in (seen.first, seen.second, seen.third))
            assert (first["consecutive_failures"], first["next_retry_at"]) == (1, NOW + timedelta(seconds=HOUR))
            assert (second["consecutive_failures"], second["next_retry_at"]) == (2, LATER + timedelta(seconds=HOUR))
            assert (third["state"], third["next_retry_at"], seen.third.events[id_]) == ("seen", None, 6)
