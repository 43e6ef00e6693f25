"""The ledger as pure functions: from what is known of logs to one state, reason and remedy for each pipeline."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import orjson
import pytest

from monitoring_platform.config import Settings
from monitoring_platform.cycle import ledger
from monitoring_platform.warehouse import contracts

NOW = datetime(2026, 1, 10, tzinfo=timezone.utc)
Row = dict[str, Any]


def settings(**more: Any) -> Settings:
    return Settings.model_validate({"warehouse": {"path": "/tmp/w"}, "sources": [], **more})


def facts(name: str = "sales", updates: int = 1, **more: Any) -> Row:
    told = [{"update_id": f"u{n}", "state": "COMPLETED", "creation_time": None} for n in range(updates)]
    return {"name": name, "updates": told, "spec": {}, "host": "https://w.example", **more}


def log(id_: str, given: Row | None = None, coverage: str | None = None, **more: Any) -> Row:
    """A row of source_logs, by default of a pipeline of a workspace."""
    row: Row = dict.fromkeys(contracts.LOGS.schema.names)
    trouble = {"error": f"{coverage}!", "remedy": "do this", "remedy_sql": "GRANT"} if coverage else {}
    told = orjson.dumps(given if given is not None else facts()).decode()
    row.update(
        location=f"prod/{id_}", source="prod", kind="table", pipeline_ids=[id_], facts=told, coverage=coverage,
        state="unreadable" if coverage else "readable", consecutive_failures=0, **trouble, **more,
    )  # fmt: skip
    return row


def seen(at: datetime = NOW, name: str = "sales", updates: bool = True) -> list[Row]:
    """What a batch of its events said."""
    return [
        {
            "first_event_ts": at - timedelta(hours=1),
            "last_event_ts": at,
            "has_updates": updates,
            "names": {name: at},
            "last_ingested_at": NOW,
            "pipeline_type": "WORKSPACE",
        }
    ]


def rows(
    *logs: Row, read: dict[str, list[Row]] | None = None, before: dict[str, Row] | None = None, **more: Any
) -> dict[str, Row]:
    found = ledger.rows(before or {}, logs, read or {}, settings(**more), NOW)
    return {row["pipeline_id"]: row for row in found}


STATES = [
    ("seen", log("p"), seen()),
    ("stale", log("p"), seen(NOW - timedelta(days=3))),
    ("never_ran", log("p", facts(updates=0)), []),
    ("never_ran", log("p"), seen(updates=False)),
    ("never_ran", log("p", facts(updates=0), "log_not_published"), []),
    ("log_not_published", log("p", coverage="log_not_published"), []),
    ("no_grant", log("p", facts(updates=0), "no_grant"), []),
    ("no_grant", log("p", coverage="no_grant"), seen()),
    ("not_owner", log("p", coverage="not_owner"), []),
    ("rate_limited", log("p", coverage="rate_limited"), seen()),
    ("unreadable", log("p", coverage="unreadable"), seen()),
    ("excluded", log("p", coverage="excluded"), []),
    ("deleted", log("p", facts(deleted=True)), seen()),
    ("deleted", log("p", facts(deleted=True), "no_grant"), []),
    ("retired", {**log("p"), "state": "gone"}, seen()),
]


@pytest.mark.parametrize(("state", "given", "read"), STATES)
def test_each_state(state: str, given: Row, read: list[Row]) -> None:
    """R-NEW-02: exactly one state; whoever has to act is told what to do, and what to paste."""
    row = rows(given, read={"p": read} if read else {})["p"]
    assert row["state"] == state
    assert row["reason"] and (row["remedy"] is not None) == (state != "seen")
    if given["coverage"] and state != "deleted":
        assert row["reason"].endswith(f"{given['coverage']}!") and row["remedy_sql"] == "GRANT"


def test_a_pipeline_is_listed_though_its_log_was_never_readable() -> None:
    """R-NEW-02: its identity is its id, whatever its log is called."""
    spec = {
        "catalog": "main", "target": "s", "event_log": {"name": "log"}, "tags": {"team": "data", "n": 1},
        "continuous": True, "channel": "PREVIEW", "edition": "PRO",
    }  # fmt: skip
    given = facts(spec=spec, creator="ana@example.com", run_as="robot")
    row = rows(
        log("p", given, "no_grant"),
        pipelines={"settings": [{"match": "sales", "owner": "sales-team", "tags": {"team": "sales"}}]},
    )["p"]
    told = {name: row[name] for name in ("pipeline_name", "workspace", "creator", "run_as", "catalog", "schema")}
    assert told == {
        "pipeline_name": "sales", "workspace": "https://w.example", "creator": "ana@example.com", "run_as": "robot",
        "catalog": "main", "schema": "s",
    }  # fmt: skip
    assert row["event_log_table"] == "main.s.log" and row["owner"] == "sales-team"
    assert dict(row["tags"]) == {"team": "sales", "n": "1"}
    assert (row["continuous"], row["development"], row["channel"], row["edition"]) == (True, None, "PREVIEW", "PRO")
    assert row["deleted"] is False and row["last_event_ts"] is None


def test_the_name_is_the_workspaces() -> None:
    row = rows(log("p", facts("new name")), read={"p": seen(name="old name")})["p"]
    assert row["pipeline_name"] == "new name" and row["names_seen"] == ["old name"]


def test_the_type_is_the_logs_else_the_system_tables() -> None:
    """R-UNI-11: what events say; before there are any, what the workspace's system table says."""
    assert rows(log("p", facts(type="DBSQL")))["p"]["pipeline_type"] == "DBSQL"
    assert rows(log("p", facts(type="DBSQL")), read={"p": seen()})["p"]["pipeline_type"] == "WORKSPACE"
    assert rows(log("p"))["p"]["pipeline_type"] is None


def test_another_log_of_the_same_pipeline_is_enough() -> None:
    """R-NEW-03: what somebody would have to open is no trouble where another way is open; damage is."""
    open_log = {**log("p"), "location": "/exports/p", "source": "exports", "kind": "delta", "facts": None}
    assert rows(log("p", coverage="no_grant"), open_log, read={"p": seen()})["p"]["state"] == "seen"
    assert rows(log("p", coverage="unreadable"), open_log, read={"p": seen()})["p"]["state"] == "unreadable"


def test_a_pipeline_made_anew_knows_its_predecessor() -> None:
    """R-UNI-11: the last one of the same source and name that is no more; others of that name are not linked."""
    day = timedelta(days=1)
    deleted = facts(deleted=True)
    found = rows(
        log("oldest", deleted), log("old", deleted), log("new"), log("other", facts("other")),
        {**log("elsewhere"), "source": "test", "location": "test/elsewhere"},
        read={
            "oldest": seen(NOW - 3 * day), "old": seen(NOW - 2 * day), "new": seen(NOW - day), "other": seen(),
            "elsewhere": seen(),
        },
    )  # fmt: skip
    linked = {id_: row["predecessor_id"] for id_, row in found.items() if row["predecessor_id"]}
    assert linked == {"new": "old", "old": "oldest"}


def test_a_source_that_cannot_be_listed() -> None:
    """R-ING-07: its pipelines say so; only if none is known yet, the source has a row of its own."""
    source = {
        **log("p", coverage="unreadable"),
        "location": "prod",
        "kind": "source",
        "pipeline_ids": [],
        "facts": None,
    }
    known = {**log("p", coverage="unreadable"), "state": "unreachable"}
    assert set(rows(source)) == {"prod"}
    found = rows(source, known, before={"p": {**rows(log("p"), read={"p": seen()})["p"]}})
    assert {id_: row["state"] for id_, row in found.items()} == {"p": "unreadable"}
    assert found["p"]["last_event_ts"] == NOW
