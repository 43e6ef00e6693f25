"""The five ways to the log of a pipeline: the same rows, nothing lost, nothing read twice without need."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from monitoring_platform.config import PlumberProject, Settings, WorkspaceSource
from monitoring_platform.sources.base import Cursor, Facts, Listing, Look, SourceError
from monitoring_platform.sources.workspace import paths
from monitoring_platform.sources.workspace.logs import WorkspaceLogs
from tests.conftest import event, state
from tests.workspace import Pipeline, Principal
from tests.workspace import Workspace as StandIn

NOW = datetime(2026, 1, 2, tzinfo=timezone.utc)
WAYS = ("table", "function", "system_table", "storage", "api")
EVENTS = "system.lakeflow_pipeline_events_preview.pipeline_events"
SQL_WAYS = WAYS[:3]


def history(*ids: str, seconds: float = 0, step: float = 60) -> list[dict[str, Any]]:
    """Events of a completed update, a step apart."""
    return [
        state(id, seconds + step * n, "COMPLETED" if n == len(ids) - 1 else "RUNNING", pipeline_id="p")
        for n, id in enumerate(ids)
    ]


@dataclass
class Reading:
    """A workspace entry and what was read of its one pipeline."""

    stand_in: StandIn
    pipeline: Pipeline
    monitor: Principal
    source: WorkspaceLogs
    cursor: Cursor | None = None
    facts: dict[str, Facts] = field(default_factory=dict)
    ways: list[str | None] = field(default_factory=list)

    def look(self, now: datetime = NOW, **more: Any) -> Listing:
        listing = self.source.listing(Look(now, self.facts, **more))
        self.facts = json.loads(json.dumps({log.location: log.facts for log in listing.logs}))
        return listing

    def has_news(self, now: datetime = NOW) -> bool:
        (log,) = self.look(now).logs
        return self.cursor is None or self.cursor["position"] != self.source.position(log)

    def read(self, now: datetime = NOW, limit: int = 1000, chunks: int = 100) -> Counter[str]:
        """Ids delivered until there is no more, or for so many chunks. The cursor is kept as JSON."""
        (log,) = self.look(now).logs
        seen: Counter[str] = Counter()
        self.ways = []
        for _ in range(chunks):
            chunk = self.source.read(log, self.cursor, limit)
            for item in chunk.rows:
                seen.update(item["id"].to_pylist() if isinstance(item, pa.Table) else [item.members["id"]])  # type: ignore[union-attr]
            self.cursor = json.loads(json.dumps(chunk.cursor))
            self.ways.append(chunk.kind)
            if not chunk.more:
                return seen
        return seen


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[StandIn]:
    with StandIn(tmp_path / "workspace") as made:
        yield made
        made.is_clean()


@pytest.fixture
def reading(stand_in: StandIn, tmp_path: Path) -> Callable[..., Reading]:
    """Makes a pipeline that can be read in one way only, or in those that `open` says."""

    def make(*ways: str, events: list[dict[str, Any]] | None = None, **options: Any) -> Reading:
        monitor = stand_in.principal("monitor@example.com", "dapi-1")
        stand_in.warehouse("w1", [monitor]).complex_types = "arrow"
        places = {"catalog": None} if "storage" in ways else {"target": "s"} if "function" in ways else {"schema": "s"}
        owner = monitor.name if "function" in ways else "ana@example.com"
        made = stand_in.pipeline("pipe", owner, id="p", events=events or history("a", "b", "c"), **places)  # type: ignore[arg-type]
        made.grant(monitor, "CAN_VIEW")
        if "table" in ways:
            made.publish("log", to=monitor)
        if "system_table" in ways:
            stand_in.grant_table(monitor, EVENTS)
        if "storage" in ways:
            made.store(tmp_path / "storage")
        if "api" not in ways:
            stand_in.events_need = "CAN_MANAGE"
        return Reading(stand_in, made, monitor, entry(stand_in, **options))

    return make


def entry(stand_in: StandIn, **options: Any) -> WorkspaceLogs:
    given = {"type": "workspace", "name": "prod", "host": stand_in.host, "token": "dapi-1", "sql_warehouse": "w1"}
    settings = Settings.model_validate({"warehouse": {"path": "/tmp/w"}, "sources": [{**given, **options}]})
    (source,) = settings.sources
    assert isinstance(source, WorkspaceSource)
    return WorkspaceLogs.from_settings(source, settings)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_gives_what_is_there_and_then_what_is_new(reading: Callable[..., Reading], way: str) -> None:
    """R-ING-02, R-ING-10, R-ING-11, R-ING-13, R-NEW-03, R-PEER-08."""
    log = reading(way)
    assert log.read() == Counter("abc") and log.ways == [way]
    assert not log.has_news()
    log.pipeline.add(*history("d", "e", seconds=4000))
    log.pipeline.update("u2", NOW, "COMPLETED")
    assert log.has_news()
    assert log.read() == Counter("de")
    assert not log.has_news()


@pytest.mark.parametrize("way", [*SQL_WAYS, "api"])
def test_chunks_where_many_rows_share_a_time(reading: Callable[..., Reading], way: str) -> None:
    """R-ING-04: more rows of one time than a chunk holds; the cursor is good after every chunk."""
    ids = [f"e{n:02}" for n in range(30)]
    log = reading(
        way, events=history("first", seconds=0) + history(*ids, seconds=60, step=0) + history("z", seconds=99)
    )
    seen: Counter[str] = Counter()
    for _ in range(20):
        seen += log.read(limit=7, chunks=1)
        assert log.cursor is not None
        if not log.cursor["spans"]:
            break
    assert seen == Counter(["first", *ids, "z"])
    assert not log.has_news()


@pytest.mark.parametrize("way", [*SQL_WAYS, "api"])
def test_late_rows_within_the_overlap(reading: Callable[..., Reading], way: str) -> None:
    """R-ING-04: found when an update begins or ends; of the hours that are as they were nothing is delivered again."""
    log = reading(way, events=history("a", "b", "c", step=3600))
    log.read()
    log.pipeline.add(*history("late", seconds=3700)).update("u2", NOW, "COMPLETED")
    assert log.read() == Counter(["b", "late"])
    log.pipeline.update("u3", NOW, "COMPLETED")
    assert log.read() == Counter()


@pytest.mark.parametrize("way", SQL_WAYS)
def test_rows_later_than_the_overlap_are_found_by_counting(reading: Callable[..., Reading], way: str) -> None:
    """R-NEW-02: once a day SQL counts the months; those that grew are read again, others are not."""
    long_ago = {**state("long ago", 0, "RUNNING", pipeline_id="p"), "timestamp": "2025-10-01T00:00:00.000Z"}
    log = reading(
        way, events=[long_ago, *history("old", "older", step=3600), *history("c", seconds=80000)], overlap_hours=1
    )
    log.read()
    log.pipeline.add(*history("very late", seconds=1800))
    day = NOW + timedelta(days=1)
    assert log.read(day) == Counter(["old", "older", "c", "very late"])
    assert log.read(day + timedelta(days=1)) == Counter()


def test_a_pipeline_at_work_is_read_from_its_newest_event_on(reading: Callable[..., Reading]) -> None:
    """Cost follows what is new: while an update runs, each look reads what came since."""
    log = reading("api", events=[state("a", 0, "RUNNING", pipeline_id="p")])
    assert log.read() == Counter("a")
    log.pipeline.add(state("b", 60, "RUNNING", pipeline_id="p"))
    later = NOW + timedelta(minutes=1)
    assert log.has_news(later) and log.read(later) == Counter("b")
    log.stand_in.calls.clear()
    assert log.read(later + timedelta(minutes=1)) == Counter()
    (call,) = log.stand_in.called("/events")
    assert call.query["filter"] == ["timestamp >= '2026-01-01T00:01:00.000Z'"]


def test_after_its_end_an_update_is_looked_at_once_more(reading: Callable[..., Reading]) -> None:
    """R-ING-04: the last events appear after the end that the listing tells."""
    log = reading("table", events=[state("a", 0, "RUNNING", pipeline_id="p")])
    start = datetime(2026, 1, 1, 0, 1, tzinfo=timezone.utc)
    log.read(start)
    log.pipeline.add(state("b", 60, "COMPLETED", pipeline_id="p"))
    assert log.read(start + timedelta(minutes=1)) == Counter("ab")  # their hour has changed
    assert not log.has_news(start + timedelta(minutes=5))
    log.pipeline.add(event("c", 61, "maintenance_progress", {}, pipeline_id="p"))
    assert log.has_news(start + timedelta(minutes=12))
    assert log.read(start + timedelta(minutes=12)) == Counter("abc")
    assert not log.has_news(start + timedelta(minutes=30))


def test_a_row_from_the_future_moves_no_mark(reading: Callable[..., Reading]) -> None:
    future = {**event("f", pipeline_id="p"), "timestamp": "2099-01-01T00:00:00.000Z"}
    log = reading("table", events=[*history("a"), future])
    assert log.read() == Counter("af")
    log.pipeline.add(*history("b", seconds=7200)).update("u2", NOW, "COMPLETED")
    assert log.read() == Counter("b")


def test_events_that_the_api_cuts_are_taken_from_a_way_of_sql(reading: Callable[..., Reading]) -> None:
    """R-NEW-03: whole where any way of SQL is open, marked where none is."""
    log = reading("api", "table", access=["api", "table"])
    log.pipeline.truncate("b", "details")
    (listed,) = log.look().logs
    rows = {row.members["id"]: row.members for row in log.source.read(listed, None, 100).rows}  # type: ignore[union-attr]
    assert rows["b"]["details"] and "truncation" not in rows["b"]
    only = entry(log.stand_in, access=["api"])
    rows = {row.members["id"]: row.members for row in only.read(listed, None, 100).rows}  # type: ignore[union-attr]
    assert "details" not in rows["b"] and rows["b"]["truncation"]


def test_short_pages_and_pages_that_change(reading: Callable[..., Reading], monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages may be empty though there is more, and grow while they are read."""
    monkeypatch.setattr(paths, "_PAGE", 3)
    log = reading("api", events=history(*[f"e{n}" for n in range(9)]))
    log.stand_in.short_pages = True
    log.pipeline.while_reading = lambda: (
        log.pipeline.add(*history("more", seconds=999)) if len(log.pipeline.events) < 10 else None
    )
    assert log.read(limit=2) == Counter([*[f"e{n}" for n in range(9)], "more"])


# Fallback


def test_the_best_way_that_is_open(reading: Callable[..., Reading]) -> None:
    """R-NEW-03: a way that is refused is left for the next one, and tried again the next day."""
    log = reading("table", "api")
    table = log.pipeline.published_name
    assert table
    log.stand_in.revoke(log.monitor, "SELECT", table)
    assert log.read() == Counter("abc") and log.ways == ["api"]
    log.stand_in.calls.clear()
    log.pipeline.add(*history("d", seconds=999)).update("u2", NOW, "COMPLETED")
    assert log.read() == Counter("abcd") and log.ways == ["api"]
    assert not log.stand_in.called("/statements")
    log.stand_in.grant(log.monitor, "SELECT", table)
    tomorrow = NOW + timedelta(days=1)
    assert log.read(tomorrow) == Counter() and log.ways == ["table"]


def test_a_published_log_is_used_as_soon_as_the_settings_tell(reading: Callable[..., Reading]) -> None:
    log = reading("api")
    log.read()
    log.pipeline.publish("log", to=log.monitor)
    log.facts["prod/p"]["described_at"] = None
    assert log.has_news()
    log.read()
    assert log.ways == ["table"]


def test_trouble_that_passes_does_not_change_the_way(reading: Callable[..., Reading]) -> None:
    """429 and 5xx end the read; it is tried again in the same way."""
    log = reading("table", "api")
    log.source = log.source._replace(workspace=log.source.workspace._replace(patience=1))
    (listed,) = log.look().logs
    log.stand_in.faults.every(1, ("500",), only="/statements")
    with pytest.raises(SourceError) as error:
        log.source.read(listed, None, 100)
    assert error.value.transient and not log.stand_in.called("/events")


def test_views_and_names_from_the_configuration(reading: Callable[..., Reading]) -> None:
    """R-ING-15, R-PERM-02: a view over the log, named by a rule."""
    log = reading("table", tables={"other": "x.y.z", "pi*": "main.ops.{pipeline_name}_log_view"})
    log.stand_in.revoke(log.monitor, "SELECT", str(log.pipeline.published_name))
    log.stand_in.view("main.ops.pipe_log_view", f"SELECT * FROM {log.pipeline.published_name}")
    log.stand_in.grant_table(log.monitor, "main.ops.pipe_log_view")
    assert log.read() == Counter("abc") and log.ways == ["table"]


def test_names_by_the_rule_of_lakehouse_plumber(reading: Callable[..., Reading], tmp_path: Path) -> None:
    """R-ING-15: where the project says that logs are published, though the settings do not."""
    log = reading("table")
    del log.pipeline.spec["event_log"]
    log.stand_in.view("ops._meta.dev_pipe_log", f"SELECT * FROM {log.pipeline.hidden_name}")
    log.stand_in.grant_table(log.monitor, "ops._meta.dev_pipe_log")
    project = PlumberProject("shop", "dev", tmp_path, True, True, "ops", "_meta", "dev_", "_log")
    log.source = log.source._replace(plumber=project)
    assert log.read() == Counter("abc") and log.ways == ["table"]


def test_the_function_by_a_table_of_the_pipeline(reading: Callable[..., Reading]) -> None:
    """R-ING-11: the second form, where the id is not taken."""
    log = reading("function", datasets={"pipe": "main.s.orders"})
    log.stand_in.dataset("main.s.orders", log.pipeline)
    statements = log.stand_in.warehouses["w1"].statements
    assert log.read() == Counter("abc")
    assert statements[-1].startswith("SELECT * FROM event_log('p')")
    log.source = log.source._replace(access=("function",))
    log.pipeline.id, log.stand_in.pipelines["other"] = "other", log.stand_in.pipelines.pop("p")
    log.stand_in.dataset("main.s.orders", log.pipeline)
    (listed,) = log.look().logs[:1]
    chunk = log.source.read(listed._replace(pipeline_id="p"), None, 100)
    assert chunk.kind == "function" and "event_log(TABLE(`main`.`s`.`orders`))" in statements[-1]


def test_names_are_quoted(reading: Callable[..., Reading]) -> None:
    """Text from outside is data."""
    log = reading("table", events=history("a"))
    log.pipeline.publish("odd ` log; DROP TABLE x")
    with pytest.raises(SourceError) as error:
        log.read()
    assert "`main`.`s`.`odd `` log; DROP TABLE x`" in (error.value.remedy_sql or error.value.reason)


# Coverage


def failure(log: Reading) -> SourceError:
    with pytest.raises(SourceError) as error:
        log.read()
    assert not error.value.transient
    return error.value


def test_no_grant(reading: Callable[..., Reading]) -> None:
    """R-NEW-02: the grants that are missing, for the exact principal and table."""
    log = reading()
    log.pipeline.publish("log")
    found = failure(log)
    assert found.state == "no_grant"
    assert found.remedy_sql == (
        "GRANT USE CATALOG ON CATALOG `main` TO `monitor@example.com`;\n"
        "GRANT USE SCHEMA ON SCHEMA `main`.`s` TO `monitor@example.com`;\n"
        "GRANT SELECT ON TABLE `main`.`s`.`log` TO `monitor@example.com`;"
    )


def test_log_not_published(reading: Callable[..., Reading]) -> None:
    """R-CFG-13: the setting to add needs a name only."""
    found = failure(reading())
    assert (found.state, found.remedy_sql) == ("log_not_published", '{"event_log":{"name":"pipe_event_log"}}')


def test_not_owner(reading: Callable[..., Reading]) -> None:
    """R-PERM-01: a pipeline in the legacy publishing mode is read by its owner only."""
    log = reading("function")
    log.pipeline.owner = "ana@example.com"
    found = failure(log)
    assert found.state == "not_owner" and "VIEW" not in (found.remedy_sql or "")
    assert found.remedy_sql == '{"event_log":{"name":"pipe_event_log"}}'


def test_no_permission_for_the_api(reading: Callable[..., Reading]) -> None:
    log = reading(access=["api"])
    found = failure(log)
    assert found.state == "no_grant" and "CAN VIEW" in found.remedy
    assert json.loads(found.remedy_sql or "")["access_control_list"][0]["user_name"] == "monitor@example.com"


def test_no_grant_on_the_system_table(reading: Callable[..., Reading]) -> None:
    found = failure(reading(access=["system_table"]))
    assert found.state == "no_grant"
    assert "GRANT USE SCHEMA ON SCHEMA `system`.`lakeflow_pipeline_events_preview`" in (found.remedy_sql or "")


def test_without_sql(reading: Callable[..., Reading]) -> None:
    """The API is enough; where it is closed the missing SQL warehouse is named."""
    log = reading("table", "api", sql_warehouse=None)
    assert log.read() == Counter("abc") and log.ways == ["api"]
    log.stand_in.events_need = "CAN_MANAGE"
    log.cursor = None
    assert "sql_warehouse" in failure(log).remedy or "CAN VIEW" in failure(log).remedy


def test_a_deleted_pipeline_is_read_once_more(reading: Callable[..., Reading]) -> None:
    """R-NEW-02: the system table still has what came last; then there is no news any more."""
    log = reading("table", "system_table")
    log.read()
    log.pipeline.add(*history("d", seconds=999))
    log.pipeline.delete()
    assert log.has_news()
    log.read()
    assert log.ways == ["system_table"] and log.facts["prod/p"]["deleted"]
    assert not log.has_news(NOW + timedelta(days=3))
    log.cursor, log.source = None, log.source._replace(access=("table", "api"))
    assert log.read() == Counter() and not log.has_news()
