"""Ingest, union and ledger: what is read, how often, and what is said about what is not."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from monitoring_platform import sources
from monitoring_platform.config import load
from monitoring_platform.cycle import ahead
from monitoring_platform.cycle import ingest as ingest_module
from monitoring_platform.cycle.ingest import discover, ingest
from monitoring_platform.cycle.union import unite
from monitoring_platform.event_log.normalise import Delivered
from monitoring_platform.sources import Chunk, Listing, Log, Look, SourceError
from monitoring_platform.warehouse import folder
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import NOW, Site, event, flow, state


def test_many_logs_one_ingest_and_only_what_is_new(site: Site) -> None:
    """R-ING-01, R-ING-02: 120 logs in one run; nothing new reads 0; three more events read exactly 3."""
    for number in range(120):
        site.write(f"{number}.jsonl", state("1", 0, "RUNNING", pipeline_id=f"p{number}"))
    read, united, _ = site.cycle()
    assert (len(read.events), read.logs, united.added) == (120, 120, 120)
    read, united, marts = site.cycle()
    assert (read.logs, sum(read.events.values()), united.added) == (0, 0, 0)
    assert all(mart.written == 0 for mart in marts)
    site.write("7.jsonl", *(state(str(i), i, "RUNNING", pipeline_id="p7") for i in (2, 3, 4)))
    read, united, _ = site.cycle()
    assert (read.events, united.added) == ({"p7": 3}, 3)


def test_what_was_read_ahead_is_read_once(site: Site) -> None:
    """Logs read while Dagster was imported, a broken one among them, and others: all events are there, once."""
    for number in range(6):
        site.write(f"{number}.jsonl", *(state(str(i), i, "RUNNING", pipeline_id=f"p{number}") for i in range(2)))
    (site.logs / "broken.jsonl.gz").write_bytes(b"\x1f\x8b\x08 no gzip")
    ahead.begin(site.warehouse.settings, NOW)
    site.write("later.jsonl", state("1", 0, "RUNNING", pipeline_id="later"))
    read, united, _ = site.cycle()
    assert (sum(read.events.values()), united.added) == (13, 13)
    assert [Path(location).name for location in read.failed] == ["broken.jsonl.gz"]
    assert ahead.begun(site.warehouse.settings) is None
    read, united, _ = site.cycle()
    assert (read.events, united.added) == ({}, 0)


def test_progress_is_kept_for_each_log(site: Site) -> None:
    """R-ING-03: adding one pipeline and removing another makes no other one read old events again."""
    for name in "abc":
        site.write(f"{name}.jsonl", state("1", 0, "RUNNING", pipeline_id=name))
    site.cycle()
    (site.logs / "a.jsonl").unlink()
    site.write("d.jsonl", state("1", 0, "RUNNING", pipeline_id="d"))
    read, _, _ = site.cycle()
    assert read.events == {"d": 1}
    states = {row["pipeline_id"]: row["state"] for row in site.rows("pipelines")}
    assert states == {"a": "retired", "b": "seen", "c": "seen", "d": "seen"}
    assert len(site.rows("all_pipelines_event_log", pipeline_id="a")) == 1


def test_late_and_equal_timestamps_are_taken(site: Site) -> None:
    """R-ING-04, E-05: an event as old as, or older than, the newest one that appears later is present once."""
    site.write("a.jsonl", state("2", 50, "RUNNING"))
    site.cycle()
    site.write("a.jsonl", state("3", 50, "RUNNING"), state("1", 0, "INITIALIZING"))
    site.cycle()
    assert sorted(row["event_id"] for row in site.rows("all_pipelines_event_log")) == ["1", "2", "3"]
    assert site.row("pipeline_runs")["initializing_seconds"] == 50.0


def test_a_run_ends_although_the_source_grows(site: Site) -> None:
    """R-ING-05: what is available at the start is processed; the rest is news for the next run."""
    site.write("a.jsonl", state("0", 0, "RUNNING"))
    stop = threading.Event()

    def grow() -> None:
        for number in range(1, 5000):
            if stop.is_set():
                return
            site.write("a.jsonl", state(str(number), number / 100, "RUNNING"))
            time.sleep(0.001)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        site.cycle()
    finally:
        stop.set()
        writer.join()
    site.cycle()
    lines = len((site.logs / "a.jsonl").read_bytes().splitlines())
    assert len(site.rows("all_pipelines_event_log")) == lines


class _Slow:
    """A source of 30 slow logs that counts how many are read at once; two of them cannot be read."""

    name = "slow"
    open = most = 0
    lock = threading.Lock()

    def listing(self, look: Look) -> Listing:
        return Listing([Log(f"log{number}", self.name, "slow") for number in range(30)])

    def position(self, log: Log) -> Any:
        return 1

    def pipelines(self, log: Log, cursor: Any) -> set[str]:
        return set()

    def read(self, log: Log, cursor: Any, limit: int, engine: Any = None) -> Chunk:
        with self.lock:
            _Slow.open += 1
            _Slow.most = max(_Slow.most, _Slow.open)
        time.sleep(0.02)
        with self.lock:
            _Slow.open -= 1
        if log.location in ("log3", "log7"):
            raise SourceError("no access", "grant it")
        return Chunk([Delivered(state("1", 0, "RUNNING", pipeline_id=log.location), "")], {"position": 1}, more=False)


def test_bounded_parallelism_and_isolation(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-ING-06, R-ING-07: with the limit at 5 never more than 5 reads are open; failures are named, the others finish."""
    site = make_site("slow", "ingest: {max_concurrent_streams: 5}\n")
    monkeypatch.setattr(ingest_module, "configured", lambda settings: [_Slow()])
    monkeypatch.setattr(ingest_module, "_MANY_LOGS", 1000)  # threads: this source counts in one process
    read, united, _ = site.cycle()
    assert 2 <= _Slow.most <= 5
    assert (read.failed, united.added) == ({"log3": "no access", "log7": "no access"}, 28)
    unreadable = {
        r["pipeline_id"]: (r["reason"], r["remedy"], r["consecutive_failures"])
        for r in site.rows("pipelines", state="unreadable")
    }
    assert unreadable == {"log3": ("no access", "grant it", 1), "log7": ("no access", "grant it", 1)}


def test_failing_logs_back_off(make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch) -> None:
    """R-NEW-04: the sensor's runs wait 1, 2, 4 … minutes; a run by hand tries at once."""
    site = make_site("slow")
    monkeypatch.setattr(ingest_module, "configured", lambda settings: [_Slow()])
    monkeypatch.setattr(ingest_module, "_MANY_LOGS", 1000)
    ingest(site.warehouse, NOW)
    assert site.row("source_logs", location="log3")["next_retry_at"] == NOW + timedelta(minutes=1)
    assert discover(site.warehouse, NOW + timedelta(seconds=30), force=False).readable == []
    assert len(discover(site.warehouse, NOW + timedelta(seconds=30)).readable) == 2
    ingest(site.warehouse, NOW + timedelta(minutes=2), force=False)
    row = site.row("source_logs", location="log3")
    assert (row["consecutive_failures"], row["next_retry_at"]) == (2, NOW + timedelta(minutes=4))


class _Down(_Slow):
    """Thirty logs of a workspace that does not answer."""

    name = "down"
    tried = 0

    def read(self, log: Log, cursor: Any, limit: int, engine: Any = None) -> Chunk:
        with self.lock:
            _Down.tried += 1
        raise SourceError("no answer", "wait", "rate_limited", transient=True, wait=3600)


def test_a_source_that_does_not_answer_is_left_alone(
    make_site: Callable[..., Site], monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-ING-07, ING-16: not every log of it is waited for; each says why; what the service asks to wait is waited."""
    site = make_site("down", "ingest: {max_concurrent_streams: 5}\n")
    site.write("a.jsonl", state("1", 0, "RUNNING", pipeline_id="a"))
    others = sources.configured(site.warehouse.settings)
    monkeypatch.setattr(ingest_module, "configured", lambda settings: [_Down(), *others])
    monkeypatch.setattr(ingest_module, "_MANY_LOGS", 1000)
    report = ingest(site.warehouse, NOW)
    assert 10 <= _Down.tried <= 15 and len(report.failed) == 30 and report.succeeded == ["pipe"]
    rows = site.rows("source_logs", source="down")
    assert {row["next_retry_at"] for row in rows} == {NOW + timedelta(hours=1)}
    assert {row["coverage"] for row in rows} == {"rate_limited"} and all("no answer" in row["error"] for row in rows)
    assert sum("not tried" in row["error"] for row in rows) == 30 - _Down.tried


def test_only_unreadable_sources(make_site: Callable[..., Site]) -> None:
    """R-ING-08: all that were tried are named with their cause, and the tables are whole and empty."""
    site = make_site("broken", "sources:\n  - {type: delta, path: ./delta/*}\n")
    for name in ("x", "y"):
        log = site.folder / "delta" / name / "_delta_log"
        log.mkdir(parents=True)
        (log / f"{0:020d}.json").write_text("{}")
    read, _, _ = site.cycle()
    assert {Path(location).name for location in read.failed} == {"x", "y"}
    assert site.rows("all_pipelines_event_log") == []
    assert {row["state"] for row in site.rows("pipelines")} == {"unreadable"}


def test_excluded_pipelines_are_not_ingested_and_come_back(make_site: Callable[..., Site]) -> None:
    """R-ING-16: old rows remain, the ledger says so; included again, what was left out is read."""
    site = make_site()
    site.write("a.jsonl", state("1", 0, "RUNNING", pipeline_id="a"), state("1", 0, "RUNNING", pipeline_id="b"))
    site.cycle()
    file = site.folder / "monitoring.yaml"
    text = file.read_text()
    file.write_text(text + "pipelines: {exclude: [b]}\n")
    site.warehouse = open_warehouse(load(file))
    site.write("a.jsonl", state("2", 1, "COMPLETED", pipeline_id="b"), state("2", 1, "COMPLETED", pipeline_id="a"))
    site.cycle()
    assert {r["pipeline_id"]: r["state"] for r in site.rows("pipelines")} == {"a": "seen", "b": "excluded"}
    assert [r["event_id"] for r in site.rows("all_pipelines_event_log", pipeline_id="b")] == ["1"]
    file.write_text(text)
    site.warehouse = open_warehouse(load(file))
    site.cycle()
    assert site.row("pipeline_runs", pipeline_id="b")["status"] == "COMPLETED"


def test_a_renamed_pipeline_keeps_its_history(site: Site) -> None:
    """R-UNI-02, R-UNI-11: the id identifies; the newest name is shown, all names are kept."""
    site.write(
        "a.jsonl", state("2", 60, "COMPLETED", pipeline_name="new"), state("1", 0, "RUNNING", pipeline_name="old")
    )
    site.cycle()
    row = site.row("pipelines")
    assert (row["pipeline_name"], row["names_seen"]) == ("new", ["new", "old"])
    assert {r["_source_pipeline"] for r in site.rows("all_pipelines_event_log")} == {"new", "old"}
    assert site.row("pipeline_runs")["duration_seconds"] == 60.0


def test_states_of_the_ledger(site: Site) -> None:
    """R-UNI-11: stale and never_ran, each with a reason and a remedy; owner and tags from the configuration."""
    site.write("a.jsonl", state("1", 0, "RUNNING", pipeline_id="old"))
    site.write("b.jsonl", event("1", 0, "user_action", {"action": "CREATE"}, pipeline_id="new", update_id=None))
    site.cycle(NOW + timedelta(days=2))
    found = {row["pipeline_id"]: (row["state"], row["reason"]) for row in site.rows("pipelines")}
    assert found == {
        "old": ("stale", "last event 2026-01-01 00:00 UTC, more than 48 h ago"),
        "new": ("never_ran", "no update in its log yet"),
    }
    assert all(row["remedy"] for row in site.rows("pipelines"))


def test_all_ten_columns_survive(site: Site) -> None:
    """R-UNI-04, R-UNI-08, R-UNI-09, R-UNI-10: every value of the log's ten columns can be got back."""
    details = '{"flow_progress": {"status": "RUNNING",  "metrics": {"num_output_rows": 1}}}'
    row = {
        "id": "e1",
        "sequence": {"data_plane_id": {"instance": "execution", "seq_no": 1700000000000001}, "control_plane_seq_no": 9007199254740993},
        "origin": {"cloud": "AWS", "org_id": 1234567890123456, "pipeline_id": "p", "flow_name": "f", "update_id": "u"},
        "timestamp": "2026-01-01T00:00:01.123456Z",
        "message": "Flow 'f' is RUNNING.",
        "level": "METRICS",
        "maturity_level": None,
        "error": {"fatal": False, "exceptions": [{"class_name": "E", "message": "m", "stack": [
            {"declaring_class": "c", "method_name": "x", "file_name": "f.py", "line_number": 3}]}]},
        "details": details,
        "event_type": "flow_progress",
    }  # fmt: skip
    site.write("a.jsonl", row)
    site.cycle()
    stored = site.row("all_pipelines_event_log")
    assert stored["sequence"] == row["sequence"]
    assert {k: v for k, v in stored["origin"].items() if v is not None} == row["origin"]
    assert stored["event_ts"].isoformat() == "2026-01-01T00:00:01.123456+00:00"
    same = ("message", "level", "maturity_level", "details", "event_type")
    assert {name: stored[name] for name in same} == {name: row[name] for name in same}
    assert stored["error"]["exceptions"][0]["stack"] == row["error"]["exceptions"][0]["stack"]  # type: ignore[index]
    assert (stored["event_id"], stored["flow_name"], stored["num_output_rows"]) == ("e1", "f", 1)


def test_repeats_in_one_batch_and_later(site: Site) -> None:
    """R-UNI-03, E-08, E-22: delivered three times, twice within one batch: each key once, whatever cursor is lost."""
    site.write("a.jsonl", state("1", 0, "RUNNING"), state("1", 0, "RUNNING"))
    _, united, _ = site.cycle()
    assert (united.added, united.repeated) == (1, 1)
    site.write("b.jsonl", state("1", 0, "RUNNING"))
    _, united, _ = site.cycle()
    assert (united.added, united.repeated) == (0, 1)
    shutil.rmtree(site.warehouse.path("source_logs"))
    shutil.rmtree(site.warehouse.path("progress"))
    _, united, _ = site.cycle()
    assert united.added == 0
    assert len(site.rows("all_pipelines_event_log")) == 1


def test_id_conflict_goes_to_quarantine_once(site: Site) -> None:
    """event_log 7: same key, other level; the first is kept, the other is reported, however often it comes."""
    site.write("a.jsonl", state("1", 0, "RUNNING"))
    site.cycle()
    site.write("a.jsonl", state("1", 0, "FAILED", level="ERROR"))
    site.cycle()
    site.write("b.jsonl", state("1", 0, "FAILED", level="ERROR"))
    site.cycle()
    assert site.row("all_pipelines_event_log")["level"] == "INFO"
    assert "id conflict" in site.row("quarantine")["reason"]


def test_union_is_partitioned_and_append_only(site: Site) -> None:
    """R-UNI-06, R-UNI-13, R-AUD-03: one day's query reads one partition; every commit only adds."""
    for day in (0, 86_400):
        site.write("a.jsonl", flow(str(day), day, "f", {"status": "RUNNING"}))
        site.cycle()
    union = site.warehouse.open("all_pipelines_event_log")
    assert union.metadata().partition_columns == ["event_date"]
    assert {entry["operation"] for entry in union.history()} <= {"CREATE TABLE", "WRITE"}
    assert all(
        entry.get("operationParameters", {}).get("mode") in (None, "Append", "Ignore") for entry in union.history()
    )
    day_two = [uri for uri in union.file_uris() if "event_date=2026-01-02" in uri]
    assert len(day_two) == 1


def test_landing_survives_a_kill_before_the_cursor(site: Site) -> None:
    """At least once into landing, exactly once into the union."""
    site.write("a.jsonl", state("1", 0, "RUNNING"))
    ingest(site.warehouse, NOW)
    shutil.rmtree(site.warehouse.path("source_logs"))
    ingest(site.warehouse, NOW)
    assert len(site.rows("pipeline_event_log")) == 2
    assert unite(site.warehouse).added == 1


def test_batches_are_bounded_and_lose_nothing(make_site: Callable[..., Site]) -> None:
    """Large logs are read in chunks and land in several commits."""
    site = make_site("big", "ingest: {batch_events: 1000, max_concurrent_streams: 2}\n")
    for name in "ab":
        site.write(f"{name}.jsonl", *(state(str(i), i % 50, "RUNNING", pipeline_id=name) for i in range(2500)))
    read, united, _ = site.cycle()
    assert (read.events, united.added) == ({"a": 2500, "b": 2500}, 5000)
    assert len(site.warehouse.open("pipeline_event_log").history()) > 3


def test_a_batch_larger_than_a_message(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that no Spark Connect message could carry go by way of a file, which is gone afterwards."""
    monkeypatch.setattr(folder, "_MESSAGE_BYTES", 100)
    site.write("a.jsonl", *(state(str(i), i, "RUNNING") for i in range(5)))
    with site.warehouse.lock():
        site.cycle()
        site.write("a.jsonl", state("5", 5, "COMPLETED"))
        site.cycle()
        assert list((site.warehouse.root / ".staging").iterdir())
    assert not (site.warehouse.root / ".staging").exists()
    assert site.row("pipeline_runs")["event_count"] == 6
