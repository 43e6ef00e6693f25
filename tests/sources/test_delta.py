"""Event logs in Delta tables: what arrives, once, whatever happens to the table between two runs.

Plain tables are written with delta-rs, those with deletion vectors or mapped columns with the embedded engine. How
Apache Spark writes them is read in tests/acceptance/test_parity.py.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from monitoring_platform.config import DeltaSource, Engine
from monitoring_platform.cycle.ingest import Ingested, ingest
from monitoring_platform.cycle.union import unite
from monitoring_platform.sources.base import NeedsEngine, SourceError
from monitoring_platform.sources.delta import DeltaLogs
from monitoring_platform.warehouse.session import session
from tests.conftest import NOW, Site

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
ORIGIN = pa.struct([("pipeline_id", pa.string()), ("pipeline_name", pa.string()), ("update_id", pa.string())])
COLUMNS: dict[str, pa.DataType] = {
    "id": pa.string(),
    "sequence": pa.struct(
        [
            ("data_plane_id", pa.struct([("instance", pa.string()), ("seq_no", pa.int64())])),
            ("control_plane_seq_no", pa.int64()),
        ]
    ),
    "origin": ORIGIN,
    "timestamp": pa.timestamp("us", "UTC"),
    "message": pa.string(),
    "level": pa.string(),
    "maturity_level": pa.string(),
    "error": pa.struct([("fatal", pa.bool_()), ("exceptions", pa.list_(pa.struct([("message", pa.string())])))]),
    "details": pa.string(),
    "event_type": pa.string(),
}
Row = dict[str, Any]


def row(id: str, seconds: float = 0, pipeline: str = "p", **members: Any) -> Row:
    """A row of a log in table shape."""
    return {
        "id": id,
        "sequence": {"data_plane_id": {"instance": "i", "seq_no": 2**53 + 1}, "control_plane_seq_no": None},
        "origin": {"pipeline_id": pipeline, "pipeline_name": f"name of {pipeline}", "update_id": "u"},
        "timestamp": START + timedelta(seconds=seconds),
        "message": "m",
        "level": "INFO",
        "maturity_level": "STABLE",
        "error": None,
        "details": '{"update_progress": {"state": "RUNNING"}}',
        "event_type": "update_progress",
        **members,
    }


def as_table(rows: list[Row], **types: pa.DataType) -> pa.Table:
    """Rows with the ten columns, or with those that they have, in their order."""
    known = {**COLUMNS, **types}
    return pa.Table.from_pylist(rows, pa.schema([(name, known[name]) for name in rows[0]]))


def write(path: Path, *rows: Row, mode: Any = "append", **types: pa.DataType) -> Path:
    """Write rows to a plain log."""
    write_deltalake(str(path), as_table(list(rows), **types), mode=mode)
    return path


@pytest.fixture
def delta(make_site: Callable[..., Site]) -> Site:
    """A site whose source is the folder `tables`."""
    return make_site(config="sources: [{type: delta, path: ./tables}]\n")


@pytest.fixture
def log(delta: Site) -> Path:
    """The place of one log of that site."""
    return delta.folder / "tables" / "log"


def take(site: Site, now: datetime = NOW) -> tuple[Ingested, int]:
    """Ingest and union; the report, and how many events were new."""
    read = ingest(site.warehouse, now)
    return read, unite(site.warehouse).added


def counts(site: Site, now: datetime = NOW) -> tuple[int, int]:
    """Ingest and union; how many rows were read, and how many events were new."""
    read, added = take(site, now)
    assert not read.failed, read.failed
    return sum(read.events.values()), added


def ids(site: Site) -> Counter[str]:
    return Counter(found["event_id"] for found in site.rows("all_pipelines_event_log"))


def once(*names: str) -> Counter[str]:
    return Counter(dict.fromkeys(names, 1))


def fingerprint(folder: Path) -> dict[str, tuple[str, int]]:
    """Every file with its content and time."""
    return {
        str(file.relative_to(folder)): (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in folder.rglob("*")
        if file.is_file()
    }


# ---- tables that delta-rs does not write ----

_numbers = itertools.count()


class Engineered:
    """A log with deletion vectors or mapped columns, written by the embedded engine."""

    def __init__(self, path: Path, settings: str) -> None:
        self.path, self.name = path, f"log_{next(_numbers)}"
        session(Engine()).sql(
            f"CREATE TABLE {self.name} (id STRING, timestamp TIMESTAMP, event_type STRING, "
            f"origin STRUCT<pipeline_id: STRING, update_id: STRING>, details STRING) "
            f"USING delta LOCATION '{path}' TBLPROPERTIES ({settings})"
        ).collect()

    def add(self, *rows: tuple[str, float]) -> None:
        values = ", ".join(
            f"('{id}', TIMESTAMP'{(START + timedelta(seconds=seconds)).isoformat()}', 'update_progress', "
            f"named_struct('pipeline_id', 'p', 'update_id', 'u'), '{{\"update_progress\": {{\"state\": \"RUNNING\"}}}}')"
            for id, seconds in rows
        )
        session(Engine()).sql(f"INSERT INTO {self.name} VALUES {values}").collect()

    def delete(self, id: str) -> None:
        session(Engine()).sql(f"DELETE FROM {self.name} WHERE id = '{id}'").collect()


DELETION_VECTORS = "'delta.enableDeletionVectors' = 'true'"
MAPPED = "'delta.columnMapping.mode' = 'name'"


def has_deletion_vectors(path: Path) -> bool:
    return any(b'"deletionVector":{' in file.read_bytes() for file in (path / "_delta_log").glob("*.json"))


# ---- which logs ----


@pytest.mark.parametrize("path", ["./tables", "./tables/*", "./tables/team_*/*", "./tables/team_a/one"])
def test_a_folder_a_glob_or_one_table(make_site: Callable[..., Site], path: str) -> None:
    """The configured path names a table, a folder of tables or a glob (R-ING-10, R-ING-14)."""
    site = make_site(config=f"sources: [{{type: delta, path: '{path}'}}]\n")
    one = write(site.folder / "tables" / "team_a" / "one", row("1", pipeline="a"))
    write(site.folder / "tables" / "team_b" / "two", row("2", pipeline="b"))
    (site.folder / "tables" / "team_b" / "no table").mkdir()
    read, _ = take(site)
    expected = {"a": 1} if path.endswith("one") else {"a": 1, "b": 1}
    assert read.events == expected
    assert str(one) in {found["location"] for found in site.rows("source_logs")}
    write(site.folder / "tables" / "team_a" / "three", row("3", pipeline="c"))
    read, _ = take(site)
    assert read.events == ({} if path.endswith("one") else {"c": 1})


def test_legacy_storage_layout(delta: Site) -> None:
    """`<storage>/system/events`, with the pipeline's id from the rows, and old rows without later columns (R-ING-13)."""
    old = {name: value for name, value in row("1", pipeline="from rows").items() if name != "maturity_level"}
    write(delta.folder / "tables" / "some storage" / "system" / "events", old)
    assert counts(delta) == (1, 1)
    found = delta.row("all_pipelines_event_log")
    assert (found["pipeline_id"], found["maturity_level"]) == ("from rows", None)


def test_many_pipelines_in_one_table(delta: Site, log: Path) -> None:
    """One table may hold the events of many pipelines; each has its row in the ledger (R-ING-01, R-UNI-02)."""
    write(log, *(row(f"{n}", n, pipeline=f"p{n % 3}") for n in range(9)))
    read, _ = take(delta)
    assert read.events == {"p0": 3, "p1": 3, "p2": 3}
    assert {found["pipeline_id"]: found["logs"] for found in delta.rows("pipelines")} == {
        f"p{n}": [str(log)] for n in range(3)
    }


# ---- columns ----


def test_all_ten_columns_survive(delta: Site, log: Path) -> None:
    """Each of the ten values can be got back from the union, big numbers and microseconds exactly (R-UNI-04)."""
    error = {"fatal": True, "exceptions": [{"message": "[CODE.SUB] text"}]}
    write(log, row("1", 1.000001, error=error, level="ERROR"))
    counts(delta)
    found = delta.row("all_pipelines_event_log")
    assert found["event_ts"] == START + timedelta(seconds=1, microseconds=1)
    assert found["sequence"]["data_plane_id"] == {"instance": "i", "seq_no": 2**53 + 1}
    assert found["origin"]["pipeline_name"] == "name of p"
    assert found["error"]["exceptions"][0]["message"] == "[CODE.SUB] text"
    assert found["error_class"] == "CODE.SUB"
    names = ("event_id", "message", "level", "maturity_level", "details", "event_type")
    assert [found[name] for name in names] == ["1", "m", "ERROR", "STABLE", row("1")["details"], "update_progress"]


def test_columns_in_another_order_missing_and_extra(delta: Site) -> None:
    """Union is by name; what has no column is kept in `extra` (R-UNI-05, R-ING-19)."""
    tables = delta.folder / "tables"
    write(tables / "reversed", dict(reversed(row("1", pipeline="a").items())))
    write(tables / "few", {name: row("2", pipeline="b")[name] for name in ("timestamp", "origin", "id")})
    more = {"surprise": 2**60, "deep": {"when": START, "list": [1.5, float("nan")]}, "amount": 1.25, "bytes": b"\xff{}"}
    write(
        tables / "more", {**row("3", pipeline="c"), **more},
        surprise=pa.int64(), amount=pa.float64(), bytes=pa.binary(),
        deep=pa.struct([("when", pa.timestamp("us", "UTC")), ("list", pa.list_(pa.float64()))]),
    )  # fmt: skip
    assert counts(delta) == (3, 3)
    assert delta.row("all_pipelines_event_log", pipeline_id="a")["update_state"] == "RUNNING"
    few = delta.row("all_pipelines_event_log", pipeline_id="b")
    assert (few["event_id"], few["event_type"], few["details"]) == ("2", None, None)
    extra = orjson.loads(delta.row("all_pipelines_event_log", pipeline_id="c")["extra"])
    assert (extra["surprise"], extra["amount"], extra["bytes"]) == (2**60, 1.25, "�{}")
    assert extra["deep"]["list"] == [1.5, None]
    assert extra["deep"]["when"].startswith("2026-01-01")


def test_a_column_that_comes_later(delta: Site, log: Path) -> None:
    """A runtime that adds a column does not stop the log; rows before and after keep their values (R-ING-19)."""
    write(log, row("1"))
    assert counts(delta) == (1, 1)
    later = as_table([{**row("2"), "surprise": "new"}], surprise=pa.string())
    write_deltalake(str(log), later, mode="append", schema_mode="merge")
    assert counts(delta) == (1, 1)
    found = {r["event_id"]: r["extra"] for r in delta.rows("all_pipelines_event_log")}
    assert found == {"1": None, "2": '{"surprise":"new"}'}


def test_structs_as_json_text(delta: Site, log: Path) -> None:
    """origin, sequence and error may be JSON text (R-UNI-05)."""
    texts = {
        "origin": '{"pipeline_id": "p", "org_id": 9007199254740993}',
        "sequence": '{"control_plane_seq_no": 9007199254740993}',
        "error": '{"exceptions": [{"message": "[A] b"}]}',
    }
    write(log, {**row("1"), **texts}, origin=pa.string(), sequence=pa.string(), error=pa.string())
    assert counts(delta) == (1, 1)
    found = delta.row("all_pipelines_event_log")
    assert found["origin"]["org_id"] == found["sequence"]["control_plane_seq_no"] == 2**53 + 1
    assert found["error_class"] == "A"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("us", "UTC"), START + timedelta(microseconds=123456)),
        (pa.timestamp("us"), datetime(2026, 1, 1, 0, 0, 0, 123456)),
        (pa.string(), "2026-01-01T01:00:00.123456789+0100"),
        (pa.int64(), 1767225600123456),
    ],
)
def test_precision_of_times(delta: Site, log: Path, kind: pa.DataType, value: Any) -> None:
    """Times keep their microseconds, whatever the column's type (R-UNI-10)."""
    write(log, row("1", timestamp=value), timestamp=kind)
    counts(delta)
    assert delta.row("all_pipelines_event_log")["event_ts"] == START + timedelta(microseconds=123456)


def test_partitioned_log(delta: Site, log: Path) -> None:
    """Partition columns are not in the data files, and come with their values all the same (R-UNI-04)."""
    rows = [
        row("1", level="INFO", day="a b/c:%20é"),
        row("2", level="ERROR", day=None),
        row("3", level="it's =", day="x"),
    ]
    write_deltalake(str(log), as_table(rows, day=pa.string()), partition_by=["level", "day"])
    assert counts(delta) == (3, 3)
    write_deltalake(str(log), as_table([row("4", level="INFO", day="a b/c:%20é")], day=pa.string()), mode="append")
    assert counts(delta) == (1, 1)
    found = {r["event_id"]: (r["level"], r["extra"]) for r in delta.rows("all_pipelines_event_log")}
    same = ("INFO", '{"day":"a b/c:%20é"}')
    assert found == {"1": same, "2": ("ERROR", None), "3": ("IT'S =", '{"day":"x"}'), "4": same}


def test_empty_table(delta: Site, log: Path) -> None:
    """A log without rows is no failure (R-ING-09)."""
    write_deltalake(str(log), as_table([row("1")]).slice(0, 0))
    assert counts(delta) == (0, 0)
    write(log, row("1"))
    assert counts(delta) == (1, 1)


# ---- increments ----


def test_increments_read_only_what_was_added(delta: Site, log: Path) -> None:
    """The work is what is new: rows read equal rows added, none when nothing was (R-ING-02, R-ING-03)."""
    write(log, *(row(f"a{n}", n) for n in range(50)))
    assert counts(delta) == (50, 50)
    assert counts(delta) == (0, 0)
    write(log, row("b1", 100), row("b2", 101))
    write(log, row("b3", 102))
    assert counts(delta) == (3, 3)
    assert counts(delta) == (0, 0)


def test_rows_that_appear_late(delta: Site, log: Path) -> None:
    """A row with an older, or the same, time as the newest one read is taken when it appears, once (R-ING-04)."""
    write(log, row("1", 86_400))
    counts(delta)
    write(log, row("late", -40 * 86_400), row("tie", 86_400))
    assert counts(delta) == (2, 2)
    assert ids(delta) == once("1", "late", "tie")


def test_bounded_chunks_of_a_log_that_grows(log: Path) -> None:
    """A first read in several chunks finishes the version it began with, though the log grows all the time (R-ING-05)."""
    for number in range(3):
        write(log, *(row(f"{number}-{n}") for n in range(10)))
    source = DeltaLogs("logs", str(log), None, 24)
    cursor, seen, chunks = None, Counter[str](), 0
    while True:
        chunk = source.read(source.listing().logs[0], cursor, limit=5)
        seen.update(id for table in chunk.rows for id in table["id"].to_pylist())
        cursor, chunks = orjson.loads(orjson.dumps(chunk.cursor)), chunks + 1
        if not chunk.more:
            break
        write(log, row(f"grown-{chunks}"))
        if chunks == 1:
            DeltaTable(str(log)).optimize.compact()
    assert chunks == 3
    assert seen == once(*(f"{number}-{n}" for number in range(3) for n in range(10)))
    rest = source.read(source.listing().logs[0], cursor, limit=100)
    assert sorted(id for table in rest.rows for id in table["id"].to_pylist()) == ["grown-1", "grown-2"]


def test_vacuum_between_two_chunks(log: Path) -> None:
    """Files that vanish in the middle of a first read only make it start again (R-PEER-03)."""
    for number in range(3):
        write(log, row(str(number)))
    source = DeltaLogs("logs", str(log), None, 24)
    first = source.read(source.listing().logs[0], None, limit=1)
    assert first.more
    table = DeltaTable(str(log))
    table.optimize.compact()
    vacuum(table)
    rest = source.read(source.listing().logs[0], first.cursor, limit=100)
    assert sorted(id for table in rest.rows for id in table["id"].to_pylist()) == ["0", "1", "2"]
    assert not rest.more


# ---- what happens to tables ----


def vacuum(table: DeltaTable) -> None:
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def test_compaction_brings_nothing_again(delta: Site, log: Path) -> None:
    """Rewritten rows are not new ones: nothing is read after OPTIMIZE (R-PEER-03, R-ING-02)."""
    for number in range(4):
        write(log, row(str(number), number))
    assert counts(delta) == (4, 4)
    DeltaTable(str(log)).optimize.compact()
    assert counts(delta) == (0, 0)
    write(log, row("4"))
    DeltaTable(str(log)).optimize.z_order(["id"])
    assert counts(delta) == (1, 1)


def test_vacuum_after_compaction_loses_nothing(delta: Site, log: Path) -> None:
    """Rows whose files were compacted away and vacuumed before they were read arrive from the new file (R-PEER-03)."""
    write(log, row("1"))
    counts(delta)
    write(log, row("2"))
    write(log, row("3"))
    table = DeltaTable(str(log))
    table.optimize.compact()
    vacuum(table)
    assert counts(delta)[1] == 2
    assert ids(delta) == once("1", "2", "3")


def test_overwritten_table(delta: Site, log: Path) -> None:
    """An overwrite brings its new rows; the union keeps the old ones (R-UNI-07)."""
    write(log, row("1"), row("2"))
    counts(delta)
    write(log, row("2"), row("3"), mode="overwrite")
    assert counts(delta) == (2, 1)
    assert ids(delta) == once("1", "2", "3")


@pytest.mark.parametrize("commits", [1, 3, 5], ids=["smaller", "equal", "larger"])
def test_recreated_table(delta: Site, log: Path, commits: int) -> None:
    """A table deleted and written again is read whole, whatever its version number (R-ING-04, R-PEER-03)."""
    for number in range(3):
        write(log, row(f"old{number}"))
    counts(delta)
    shutil.rmtree(log)
    for number in range(commits):
        write(log, row(f"new{number}"))
    assert counts(delta) == (commits, commits)
    assert counts(delta) == (0, 0)
    assert ids(delta) == once(*(f"old{n}" for n in range(3)), *(f"new{n}" for n in range(commits)))


def test_restored_table(delta: Site, log: Path) -> None:
    """A table set back to an older copy of itself (same identity, smaller version) goes on without loss (R-ING-04)."""
    write(log, row("1"))
    shutil.copytree(log, delta.folder / "backup")
    write(log, row("2"))
    counts(delta)
    shutil.rmtree(log)
    shutil.copytree(delta.folder / "backup", log)
    counts(delta)
    write(log, row("3"))
    counts(delta)
    assert ids(delta) == once("1", "2", "3")


def test_deleted_rows(delta: Site, log: Path) -> None:
    """A DELETE in the source neither fails nor duplicates; the union keeps the history (R-PEER-03, R-UNI-07)."""
    write(log, row("1"), row("2"), row("3"))
    counts(delta)
    DeltaTable(str(log)).delete("id = '1'")
    write(log, row("4"))
    assert counts(delta)[1] == 1
    assert ids(delta) == once("1", "2", "3", "4")


def test_cleaned_up_commits(delta: Site, log: Path) -> None:
    """Commits that were cleaned up after a checkpoint only make a log be read whole (R-ING-04)."""
    write(log, row("1"))
    counts(delta)
    for number in range(2, 5):
        write(log, row(str(number)))
    DeltaTable(str(log)).create_checkpoint()
    for version in range(3):
        (log / "_delta_log" / f"{version:020d}.json").unlink()
    assert counts(delta) == (4, 3)
    write(log, row("5"))
    assert counts(delta) == (1, 1)
    assert ids(delta) == once("1", "2", "3", "4", "5")


@pytest.mark.parametrize("garbage", [b"\x00\x01 no JSON", b'{"add": {"path": '])
def test_a_broken_log_heals(delta: Site, log: Path, garbage: bytes) -> None:
    """A log with a broken commit is named with its remedy, the others go on; after repair all arrives (R-NEW-04)."""
    other = delta.folder / "tables" / "other"
    write(log, row("1", pipeline="broken"))
    write(other, row("a", pipeline="whole"))
    counts(delta)
    write(log, row("2", pipeline="broken"))
    write(other, row("b", pipeline="whole"))
    commit = log / "_delta_log" / f"{1:020d}.json"
    whole = commit.read_bytes()
    commit.write_bytes(garbage)
    read, added = take(delta)
    assert read.events == {"whole": 1}
    assert list(read.failed) == [str(log)]
    assert added == 1
    found = delta.row("source_logs", location=str(log))
    assert (found["state"], found["consecutive_failures"]) == ("unreadable", 1)
    assert str(log) in found["remedy"]
    assert "bug" not in found["remedy"]
    assert delta.row("pipelines", pipeline_id="broken")["state"] == "unreadable"
    commit.write_bytes(whole)
    assert counts(delta) == (1, 1)
    assert ids(delta) == once("1", "2", "a", "b")


@pytest.mark.parametrize(
    "settings", [None, "'delta.enableDeletionVectors' = 'true'"], ids=["plain", "deletion vectors"]
)
def test_a_commit_that_was_read_half_written(delta: Site, log: Path, settings: str | None) -> None:
    """A commit that is complete only after it was read brings its rows then (R-ING-04, R-NEW-04)."""
    if settings is None:
        write(log, row("1", 50 * 86_400))
        counts(delta)
        write(log, row("2"))
    else:
        made = Engineered(log, settings)
        made.add(("1", 50 * 86_400))
        counts(delta)
        made.add(("2", 0))
    commit = max((log / "_delta_log").glob("*.json"))
    whole = commit.read_bytes()
    commit.write_bytes(b"")
    assert counts(delta)[1] == 0
    commit.write_bytes(whole)
    assert counts(delta)[1] == 1
    assert ids(delta) == once("1", "2")


def test_a_missing_data_file(delta: Site, log: Path) -> None:
    """A data file that is gone is a failure that names the table, and heals (R-ING-07, R-NEW-04)."""
    write(log, row("1"))
    write(delta.folder / "tables" / "other", row("a", pipeline="whole"))
    (file,) = log.glob("*.parquet")
    file.rename(delta.folder / "kept")
    read, _ = take(delta)
    assert (read.events, list(read.failed)) == ({"whole": 1}, [str(log)])
    assert "bug" not in delta.row("source_logs", location=str(log))["remedy"]
    (delta.folder / "kept").rename(file)
    assert counts(delta) == (1, 1)


def test_a_folder_without_commits_is_told(delta: Site, log: Path) -> None:
    """A half-made table is named with its remedy (R-ING-08)."""
    (log / "_delta_log").mkdir(parents=True)
    source = DeltaLogs.from_settings(DeltaSource(type="delta", path=str(log)), delta.folder)
    with pytest.raises(SourceError) as told:
        source.position(source.listing().logs[0])
    assert str(log) in told.value.remedy
    write(delta.folder / "tables" / "other", row("a"))
    read, _ = take(delta)
    assert (read.events, list(read.failed)) == ({"p": 1}, [str(log)])


# ---- deletion vectors, mapped columns ----


def test_log_with_deletion_vectors(delta: Site, log: Path) -> None:
    """Deleted rows are not read, late ones are, deletions neither fail nor duplicate (R-PEER-03, R-ING-04, R-UNI-07)."""
    made = Engineered(log, DELETION_VECTORS)
    made.add(("1", 0), ("2", 1.000001), ("gone", 2))
    made.delete("gone")
    assert has_deletion_vectors(log)
    source = DeltaLogs("logs", str(log), None, 24)
    with pytest.raises(NeedsEngine):
        source.read(source.listing().logs[0], None, 100)
    assert counts(delta) == (2, 2)
    assert counts(delta) == (0, 0)
    made.add(("new", 5 * 86_400))
    assert counts(delta)[1] == 1
    made.add(("late", -40 * 86_400 + 0.000001))
    assert counts(delta)[1] == 1
    made.delete("1")
    assert counts(delta)[1] == 0
    assert ids(delta) == once("1", "2", "new", "late")
    found = {r["event_id"]: r["event_ts"] for r in delta.rows("all_pipelines_event_log")}
    assert found["2"] == START + timedelta(seconds=1, microseconds=1)


def test_log_with_mapped_columns(delta: Site, log: Path) -> None:
    """Names in the files are not the table's names: rows come rightly, late ones too (R-ING-10, R-ING-04)."""
    made = Engineered(log, MAPPED)
    made.add(("1", 0), ("2", 10 * 86_400))
    assert counts(delta) == (2, 2)
    made.add(("late", -40 * 86_400))
    assert counts(delta)[1] == 1
    made.add(("new", 20 * 86_400))
    read, added = counts(delta)
    assert (read, added) == (2, 1)  # what is newer than the newest time seen less the overlap, and not all
    made.delete("1")
    assert counts(delta)[1] == 0
    assert ids(delta) == once("1", "2", "late", "new")
    assert {r["update_state"] for r in delta.rows("all_pipelines_event_log")} == {"RUNNING"}


@pytest.mark.parametrize("commits", [1, 2, 4], ids=["smaller", "equal", "larger"])
def test_recreated_log_with_deletion_vectors(delta: Site, log: Path, commits: int) -> None:
    """Read whole, whatever its version number (R-ING-04)."""
    made = Engineered(log, DELETION_VECTORS)
    for number in range(2):
        made.add((f"old{number}", 10 * 86_400))
    counts(delta)
    shutil.rmtree(log)
    made = Engineered(log, DELETION_VECTORS)
    for number in range(commits):
        made.add((f"new{number}", number))
    assert counts(delta)[1] == commits
    assert ids(delta) == once("old0", "old1", *(f"new{n}" for n in range(commits)))


def test_a_log_gets_deletion_vectors_later(delta: Site, log: Path) -> None:
    """A table that is upgraded between two runs goes on, its deletions seen (R-PEER-03)."""
    made = Engineered(log, "'delta.appendOnly' = 'false'")
    made.add(("1", 0), ("2", 1))
    assert counts(delta) == (2, 2)
    version = DeltaTable(str(log)).version()
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors"],
    }
    table = DeltaTable(str(log))
    fields = table.schema().to_json()
    metadata = {"id": str(table.metadata().id), "format": {"provider": "parquet", "options": {}}, "schemaString": fields,
                "partitionColumns": [], "configuration": {"delta.enableDeletionVectors": "true"}}  # fmt: skip
    lines = b"".join(orjson.dumps(action) + b"\n" for action in ({"protocol": protocol}, {"metaData": metadata}))
    (log / "_delta_log" / f"{version + 1:020d}.json").write_bytes(lines)
    assert counts(delta)[1] == 0
    made.add(("3", -40 * 86_400), ("gone", 3))
    made.delete("gone")
    assert has_deletion_vectors(log)
    assert counts(delta)[1] == 1
    assert ids(delta) == once("1", "2", "3")


# ---- sources are only read ----


def test_sources_are_not_changed(delta: Site, log: Path) -> None:
    """Sources are byte for byte the same after reading, failing and discovering (R-ING-17)."""
    write(log, row("1"), row("2"))
    DeltaTable(str(log)).create_checkpoint()
    made = Engineered(delta.folder / "tables" / "deleted", DELETION_VECTORS)
    made.add(("3", 1), ("4", 2))
    made.delete("4")
    Engineered(delta.folder / "tables" / "mapped", MAPPED).add(("5", 3))
    broken = write(delta.folder / "tables" / "broken", row("6"))
    (broken / "_delta_log" / f"{1:020d}.json").write_bytes(b"garbage")
    before = fingerprint(delta.folder / "tables")
    for folder in [d for d in (delta.folder / "tables").rglob("*") if d.is_dir()]:
        os.chmod(folder, 0o555)
    try:
        for _ in range(2):
            read, _, _ = delta.cycle()
            assert list(read.failed) == [str(broken)]
    finally:
        for folder in [d for d in (delta.folder / "tables").rglob("*") if d.is_dir()]:
            os.chmod(folder, 0o755)
    assert fingerprint(delta.folder / "tables") == before
    assert ids(delta) == once("1", "2", "3", "5")
