"""The past as it was known, and the rehearsal that rests on it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from monitoring_platform.config import Rule
from monitoring_platform.health.backtest import missing, rehearse, times
from monitoring_platform.health.watch import watch
from monitoring_platform.marts.registry import STOCK
from monitoring_platform.marts.tables.health import TABLES
from tests.health.past import Past

T0 = datetime(2026, 3, 2, 6, tzinfo=timezone.utc)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def runs(past: Past, at: datetime, since: datetime | None = None) -> list[tuple[Any, ...]]:
    history = past.history(at, since=since)
    con = history.at(at) if since else history.con
    return con.execute("SELECT start_ts, status, end_ts, rows_written FROM pipeline_runs ORDER BY start_ts").fetchall()


@pytest.mark.parametrize("since", [None, T0 - DAY])
def test_an_update_is_known_from_its_start_and_its_result_from_its_end(past: Past, since: datetime | None) -> None:
    """R-NEW-09 no look ahead: while it ran, it had neither end nor rows."""
    past.run(T0, 10, rows_written=5)
    assert runs(past, T0 - MINUTE, since) == []
    assert runs(past, T0 + 9 * MINUTE, since) == [(T0, "RUNNING", None, None)]
    assert runs(past, T0 + 10 * MINUTE, since) == [(T0, "COMPLETED", T0 + 10 * MINUTE, 5)]


def test_what_came_late_is_known_from_then_on(past: Past) -> None:
    """R-NEW-09 events that a cycle read at 9:00 are not known to a rehearsal at 8:00, though they are of 6:00."""
    first = T0 + HOUR
    past.run(T0 - DAY, 10, ingested=first)  # in the log when it was first read: known when it happened
    past.run(T0, 10, ingested=T0 + 3 * HOUR)
    assert [row[0] for row in runs(past, T0 + 2 * HOUR, T0 - DAY)] == [T0 - DAY]
    assert [row[1] for row in runs(past, T0 - DAY + 10 * MINUTE, T0 - 2 * DAY)] == ["COMPLETED"]
    assert [row[1] for row in runs(past, T0 + 3 * HOUR, T0 - DAY)] == ["COMPLETED", "COMPLETED"]


def test_requests_are_those_of_then(past: Past) -> None:
    past.run(T0, 5, status="FAILED", request_id="r")
    past.run(T0 + 6 * MINUTE, 5, request_id="r", attempt_number=2)
    history = past.history(T0 + HOUR, since=T0)

    def outcome(at: datetime) -> list[tuple[Any, ...]]:
        return history.at(at).execute("SELECT outcome, is_open, attempts, failed_attempts FROM requests").fetchall()

    assert outcome(T0 + 5 * MINUTE) == [("FAILED", False, 1, 1)]
    assert outcome(T0 + 7 * MINUTE) == [("RUNNING", True, 2, 1)]
    assert outcome(T0 + 11 * MINUTE) == [("COMPLETED", False, 2, 1)]


def test_times_of_a_rehearsal() -> None:
    assert list(times(T0, T0 + 5 * HOUR, 2 * HOUR)) == [T0 + HOUR, T0 + 3 * HOUR, T0 + 5 * HOUR]


def months(past: Past) -> None:
    """Three pipelines over 20 days: one fails for a day, one writes nothing on two days, one takes thrice as long."""
    for name in ("fails", "empty", "slow"):
        past.pipeline(name, owner="data")
        for day in range(20):
            bad = 14 <= day < 16
            past.run(
                T0 + day * DAY,
                30 + day % 2 if name == "slow" and bad else 10 + day % 2,
                name,
                "FAILED" if name == "fails" and bad else "COMPLETED",
                rows_written=0 if name == "empty" and bad else 1000,
            )


def test_live_operation_is_as_rehearsed(tmp_path: Path) -> None:
    """R-NEW-09 day by day over a log that grows, against the whole at once: the same incidents at the same times."""
    whole = Past(tmp_path / "whole")
    months(whole)
    whole.write()
    now = T0 + 19 * DAY + 2 * HOUR
    rehearsed = rehearse(whole.warehouse, T0 + 2 * HOUR, now, DAY)

    live = Past(tmp_path / "live")
    months(live)
    everything, live._rows = live._rows, {}
    live.warehouse.create([STOCK[name] for name in everything] + list(TABLES))
    for day in range(20):
        at = T0 + day * DAY + 2 * HOUR
        for table, time in (("pipeline_runs", "start_ts"), ("all_pipelines_event_log", "event_ts")):
            for row in everything[table]:
                if at - DAY < row[time] <= at:
                    live.add(table, **row)
        if day == 0:
            for row in everything["pipelines"]:
                live.add("pipelines", **row)
        watch(live.write().warehouse, at)
    columns = ("incident_id", "rule", "pipeline_ids", "severity", "opened_at", "resolved_at", "count", "title")

    def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
        return sorted(tuple(str(row[name]) for name in columns) for row in rows)

    lived = live.warehouse.arrow(STOCK["incidents"]).to_pylist()
    assert {row["rule"] for row in lived} >= {"request_failed", "rows_zero", "run_slow"}
    assert shown(rehearsed.incidents) == shown(lived)
    events = live.warehouse.arrow(STOCK["incident_events"]).to_pylist()
    assert sorted((e["incident_id"], e["at"], e["transition"]) for e in rehearsed.events) == sorted(
        (e["incident_id"], e["at"], e["transition"]) for e in events
    )


def test_what_other_settings_would_change(tmp_path: Path) -> None:
    """R-NEW-09 a comparison names what is silenced and what is added."""
    past = Past(tmp_path)
    months(past)
    past.write()
    now = T0 + 19 * DAY + 2 * HOUR
    quieter = past.settings.model_copy(update={"rules": {"request_failed": Rule(enabled=False)}})
    here = rehearse(past.warehouse, T0 + 12 * DAY + 2 * HOUR, now, DAY)
    there = rehearse(past.warehouse, T0 + 12 * DAY + 2 * HOUR, now, DAY, quieter)
    assert {row["rule"] for row in missing(here, there)} == {"request_failed"}
    assert missing(there, here) == []


def test_a_cycle_that_is_redone_writes_nothing_new(past: Past) -> None:
    """A kill after the rows: the same evaluation again gives the same rows."""
    past.run(T0, 5, status="FAILED")
    past.write()
    watch(past.warehouse, T0 + HOUR)
    before = {name: past.warehouse.arrow(STOCK[name]) for name in ("incident_events", "incidents")}
    watch(past.warehouse, T0 + HOUR)
    for name, rows in before.items():
        again = past.warehouse.arrow(STOCK[name])
        assert pa.Table.equals(again.select(["incident_id"]), rows.select(["incident_id"]))
