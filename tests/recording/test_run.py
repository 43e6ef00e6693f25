"""Monitored runs: what is recorded, that it never costs the job anything, and how a cycle sees them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from monitoring_platform.recording import (
    Report,
    current_run,
    monitored_run,
    setup_monitoring_tables,
    write_pipeline_metrics,
)
from monitoring_platform.recording.tables import METRICS, QUALITY_CHECKS, TABLES
from tests.conftest import Site

START = datetime(2026, 1, 1, 6, tzinfo=timezone.utc)
UTC = timezone.utc


def rows(place: Path, table: str) -> list[dict[str, Any]]:
    """What a table of records holds."""
    return list(DeltaTable(str(place / table)).to_pyarrow_table().to_pylist())


class Clock:
    """A clock that is put forward by hand."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "records"


@pytest.fixture
def watched(make_site: Callable[..., Site], place: Path) -> Site:
    """A site that reads the place."""
    return make_site(config=f"sources:\n  - {{type: jobs, path: {place}}}\n")


def test_a_run_writes_one_row(place: Path, clock: Clock) -> None:
    """R-OWN-02, R-OWN-04, R-SLO-01: 45 minutes against 45 are met; the row says what was set."""
    with monitored_run("silver_orders", place, pipeline_version="1.2", clock=clock) as run:
        run.rows_processed = 10
        clock.forward(minutes=45)
    (row,) = rows(place, "pipeline_metrics")
    assert row == {
        "run_id": run.run_id,
        "pipeline_name": "silver_orders",
        "pipeline_version": "1.2",
        "started_at": START,
        "completed_at": START + timedelta(minutes=45),
        "duration_minutes": 45.0,
        "rows_processed": 10,
        "rows_quarantined": None,
        "slo_target_minutes": 45,
        "slo_met": True,
        "status": "success",
        "error_message": None,
    }
    assert run.problems == []
    assert list((place / "_running").iterdir()) == []


def test_a_cycle_sees_runs(watched: Site, place: Path, clock: Clock) -> None:
    """OWN and SLO for jobs: runs, steps and errors are in the marts beside the pipelines', marked by kind."""
    with monitored_run("silver_orders", place, clock=clock) as good:
        with good.step("read") as step:
            clock.forward(minutes=1)
            step.rows_out = 10
        with good.step("write") as step:
            step.rows_out, step.rows_quarantined = 7, 3
            clock.forward(minutes=2)
    clock.forward(minutes=10)
    with pytest.raises(ValueError), monitored_run("silver_orders", place, clock=clock) as bad, bad.step("read"):
        raise ValueError("boom")
    watched.cycle(clock.now)
    watched.cycle(clock.now)  # nothing is told twice
    one, two = sorted(watched.rows("pipeline_runs"), key=lambda row: row["start_ts"])
    assert (one["update_id"], one["pipeline_id"], one["pipeline_type"]) == (good.run_id, "job:silver_orders", "JOB")
    assert (one["status"], one["duration_seconds"], one["rows_written"], one["rows_dropped"]) == (
        "COMPLETED",
        180,
        17,
        3,
    )
    assert (two["update_id"], two["status"]) == (bad.run_id, "FAILED")
    assert watched.row("pipelines")["pipeline_type"] == "JOB"
    flows = {(f["update_id"], f["flow_name"]): f for f in watched.rows("flow_metrics")}
    assert flows[good.run_id, "read"]["rows_written"] == 10
    assert flows[good.run_id, "write"]["rows_dropped"] == 3
    assert flows[bad.run_id, "read"]["status"] == "FAILED"
    errors = watched.rows("pipeline_errors")
    assert {(e["flow_name"], e["exception_class"], e["message"]) for e in errors} == {
        ("read", "ValueError", "boom"),
        (None, "ValueError", "boom"),
    }
    assert len({e["fingerprint"] for e in errors}) == 1
    assert watched.row("requests", request_id=bad.run_id)["outcome"] == "FAILED"


def test_exceptions_pass_through_unchanged(place: Path) -> None:
    """R-OWN-11, E-42: the very same exception, with its traceback and cause, whatever ended the run."""

    def broken(error: BaseException) -> None:
        try:
            raise KeyError("deep")
        except KeyError as cause:
            raise error from cause

    for kind in (ValueError, KeyboardInterrupt, SystemExit):
        error = kind("outer")
        with pytest.raises(kind) as caught, monitored_run("job", place) as run, run.step("a"), run.step("b"):
            broken(error)
        assert caught.value is error
        assert isinstance(error.__cause__, KeyError)
        assert [f.name for f in traceback.extract_tb(error.__traceback__)] == [
            "test_exceptions_pass_through_unchanged",
            "broken",
        ]
        assert run.status == "failed"
    written = rows(place, "pipeline_metrics")
    assert sorted(row["error_message"] for row in written) == [
        "KeyboardInterrupt: outer",
        "SystemExit: outer",
        "ValueError: outer",
    ]
    assert not any(row["slo_met"] for row in written)  # R-SLO-01, E-39: a failed run of no time at all does not meet it
    told = [row for row in rows(place, "pipeline_run_events") if row["error"]]
    assert [row["step"] for row in told] == ["a/b"] * 3  # once, where it happened
    assert all("broken" in row["error"] for row in told)


def test_leaving_with_exit_code_0_is_a_success(place: Path) -> None:
    """`sys.exit()` at the end of a job is no failure."""
    with pytest.raises(SystemExit), monitored_run("job", place):
        sys.exit(0)
    assert rows(place, "pipeline_metrics")[0]["status"] == "success"


def test_exceptions_that_cannot_be_printed(place: Path) -> None:
    """R-OWN-11: neither a text that is no Unicode nor one that fails hides the exception or costs the row."""

    class Odd(Exception):
        def __str__(self) -> str:
            raise TypeError

    for error in (Odd(), ValueError("\ud800")):
        with pytest.raises(type(error)) as caught, monitored_run("job", place):
            raise error
        assert caught.value is error
    told = sorted(str(row["error_message"]) for row in rows(place, "pipeline_metrics"))
    assert told == ["Odd: (TypeError in its __str__)", "ValueError: ?"]


class Hanging:
    """A store that never comes back."""

    running = None

    def append(self, *_: Any) -> None:
        time.sleep(60)


class Broken(Hanging):
    """A store that always fails."""

    def append(self, *_: Any) -> None:
        raise OSError("disk full")


@pytest.mark.parametrize("store", [Hanging, Broken])
def test_a_store_that_fails_or_hangs_costs_little(
    store: type[Hanging], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """R-OWN-11, E-42: the job's result and its exception survive, within the bound, and it is reported."""
    monkeypatch.setattr("monitoring_platform.recording.run.open_store", lambda place: store())
    begun, told = time.monotonic(), list[Report]()
    with monitored_run("job", write_seconds=0.2) as run:
        pass
    error = ValueError("mine")
    with pytest.raises(ValueError) as caught, monitored_run("job", write_seconds=0.2, alert=told.append):
        raise error
    assert caught.value is error
    assert time.monotonic() - begun < 5
    (problem,) = run.problems
    assert problem in caplog.text
    assert "nobody sees that it is killed" in caplog.text  # such a store has no folder for signs of life
    assert ("not done after 0.2 s" if store is Hanging else "OSError: disk full") in problem
    assert [report.error_message for report in told] == ["ValueError: mine"]  # the alert goes out all the same


@pytest.mark.parametrize("store", [Hanging, Broken])
def test_what_is_called_by_hand_costs_little_too(
    store: type[Hanging], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    """R-OWN-05, R-OWN-11: the answer is given within the bound, whatever becomes of the row, and it is reported."""
    monkeypatch.setattr("monitoring_platform.recording.functions.open_store", lambda place: store())
    begun = time.monotonic()
    assert write_pipeline_metrics("job", START, 1, 0, "r", clock=clock, write_seconds=0.2) == (0.0, True)
    assert time.monotonic() - begun < 5
    assert ("metrics: not done after 0.2 s" if store is Hanging else "metrics: OSError: disk full") in caplog.text


def test_a_folder_that_hangs_is_waited_for_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is one for the run, not one for each of its steps; the records are whole all the same."""
    monkeypatch.setattr("monitoring_platform.recording.signs.os.replace", lambda *_: time.sleep(60))
    begun = time.monotonic()
    with monitored_run("job", place, write_seconds=0.5) as run:
        for number in range(20):
            with run.step(f"step {number}"):
                pass
    assert time.monotonic() - begun < 8
    assert len([row for row in rows(place, "pipeline_run_events") if row["event_type"] == "flow_progress"]) == 40


def test_a_sign_that_cannot_be_read(watched: Site, place: Path) -> None:
    """What is no sign of a run goes to the quarantine, and other runs are seen."""
    with monitored_run("job", place):
        pass
    (place / "_running").mkdir(exist_ok=True)
    (place / "_running" / "odd.json").write_text("half a li")
    watched.cycle()
    assert watched.row("pipeline_runs")["status"] == "COMPLETED"
    assert watched.row("quarantine")["raw"] == "half a li"


def test_a_place_that_cannot_be_written_costs_nothing(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """R-OWN-11: a file where the folder should be, and a schema without a Spark session."""
    (tmp_path / "file").write_text("")
    with monitored_run("job", tmp_path / "file" / "records") as run:
        pass
    assert run.status == "success" and run.problems
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    assert write_pipeline_metrics("job", START, 1, 0, "r", place="no.session", clock=clock) == (0.0, True)
    assert "metrics: ValueError: no.session is a schema of a catalog and there is no Spark session" in caplog.text


def test_alerts_come_after_the_row_and_may_fail(place: Path, clock: Clock) -> None:
    """R-OWN-11, E-38: one row, though the notifier is down; the alert is told what happened."""
    seen: list[tuple[str, int]] = []

    def alert(report: Report) -> None:
        seen.append((report.text, len(rows(place, "pipeline_metrics"))))
        raise ConnectionError("no network")

    def job() -> None:
        clock.forward(minutes=1)
        raise ValueError("boom")

    with pytest.raises(ValueError):
        monitored_run("job", place, alert=alert, clock=clock)(job)()
    with monitored_run("job", place, alert=alert, clock=clock):
        pass
    with monitored_run("job", place, alert=alert, clock=clock, slo_target_minutes=1) as late:
        clock.forward(seconds=61)
    assert [row["status"] for row in rows(place, "pipeline_metrics")].count("failed") == 1
    assert seen == [
        ("job: failed after 1.00 min, target missed\nValueError: boom", 1),
        ("job: success after 1.02 min, target missed", 3),
    ]
    assert late.problems == ["alert: ConnectionError: no network"]


def test_decorator_coroutine_and_nested_steps(place: Path) -> None:
    """Each call is a run; the run is at hand inside; steps in threads are on their own; generators are refused."""

    @monitored_run("job", place)
    def job(x: int) -> tuple[int, str]:
        """What it does."""
        with current_run().step("outer"), current_run().step("inner"):
            return x + 1, current_run().run_id

    @monitored_run("waiting", place)
    async def waiting(x: int) -> int:
        await asyncio.sleep(0)
        with current_run().step("in"):
            return x

    async def both() -> list[int]:
        return list(await asyncio.gather(waiting(1), waiting(2)))

    assert job.__doc__ == "What it does."
    (first, one), (second, two) = job(1), job(2)
    assert (first, second) == (2, 3) and one != two
    assert asyncio.run(both()) == [1, 2]
    assert sorted(row["pipeline_name"] for row in rows(place, "pipeline_metrics")) == [
        "job",
        "job",
        "waiting",
        "waiting",
    ]
    steps = {row["step"] for row in rows(place, "pipeline_run_events") if row["run_id"] == one and row["step"]}
    assert steps == {"outer", "outer/inner"}
    with pytest.raises(RuntimeError, match="no monitored_run"):
        current_run()
    with pytest.raises(TypeError, match="inside it"):
        monitored_run("job", place)(_generator)


def _generator() -> Any:
    yield 1


def test_steps_in_threads(place: Path) -> None:
    """Steps may run in threads of the job."""
    with monitored_run("job", place) as run:

        def work(name: str) -> None:
            with run.step(name) as step:
                step.rows_out = 1

        threads = [threading.Thread(target=work, args=(f"part {n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ended = [row for row in rows(place, "pipeline_run_events") if row["rows_out"] == 1]
    assert {row["step"] for row in ended} == {f"part {n}" for n in range(8)}
    assert len({row["id"] for row in ended}) == 8


def test_secrets_are_not_stored(place: Path) -> None:
    """Messages and stacks are redacted before they are written."""
    with pytest.raises(ValueError), monitored_run("job", place):
        raise ValueError("jdbc:postgresql://db/x?user=me&password=hunter2")
    stored = str(rows(place, "pipeline_metrics")) + str(rows(place, "pipeline_run_events"))
    assert "hunter2" not in stored


def test_setup_is_idempotent(place: Path) -> None:
    """R-OWN-01, R-OWN-02, R-OWN-03: twice is once, nothing is overwritten, the columns are as given."""
    setup_monitoring_tables(place)
    with monitored_run("job", place):
        pass
    before = {name: DeltaTable(str(place / name)).version() for name in (t.name for t in TABLES)}
    setup_monitoring_tables(place)
    assert {name: DeltaTable(str(place / name)).version() for name in before} == before
    metrics = DeltaTable(str(place / METRICS.name))
    assert [(f.name, str(f.type.type)) for f in metrics.schema().fields] == [
        ("run_id", "string"), ("pipeline_name", "string"), ("pipeline_version", "string"), ("started_at", "timestamp"),
        ("completed_at", "timestamp"), ("duration_minutes", "double"), ("rows_processed", "long"),
        ("rows_quarantined", "long"), ("slo_target_minutes", "integer"), ("slo_met", "boolean"), ("status", "string"),
        ("error_message", "string"),
    ]  # fmt: skip
    checks = DeltaTable(str(place / QUALITY_CHECKS.name))
    assert [(f.name, str(f.type.type)) for f in checks.schema().fields] == [
        ("run_id", "string"), ("pipeline_name", "string"), ("checked_at", "timestamp"), ("check_name", "string"),
        ("column_name", "string"), ("check_type", "string"), ("rows_checked", "long"), ("rows_failed", "long"),
        ("failure_pct", "double"), ("threshold_pct", "double"), ("passed", "boolean"),
    ]  # fmt: skip
    history = [entry["operation"] for entry in metrics.history()]
    assert history == ["WRITE", "CREATE TABLE"]  # R-OWN-06
    assert [entry["operationParameters"]["mode"] for entry in metrics.history()] == ["Append", "Ignore"]


def test_metrics_by_hand(watched: Site, place: Path, clock: Clock) -> None:
    """R-OWN-05, R-SLO-01, E-34, E-35: row and return value agree; judged before rounding; failure never meets it."""

    def write(run_id: str, minutes: float, **more: Any) -> tuple[float, bool]:
        return write_pipeline_metrics(
            "gold_sales", clock() - timedelta(minutes=minutes), 10, 3, run_id, place=place, clock=clock, **more
        )

    assert write("one", 45) == (45.0, True)
    assert write("two", 45.001) == (45.0, False)
    assert write("three", 1, status="failed", error_message="TimeoutError: late") == (1.0, False)
    naive = (clock() - timedelta(minutes=2)).replace(tzinfo=None)
    assert write_pipeline_metrics("gold_sales", naive, 0, 0, "four", place=place, clock=clock) == (2.0, True)
    stored = {row["run_id"]: row for row in rows(place, "pipeline_metrics")}
    assert (stored["one"]["duration_minutes"], stored["one"]["slo_met"], stored["one"]["error_message"]) == (
        45.0,
        True,
        None,
    )
    assert stored["four"]["started_at"] == clock() - timedelta(minutes=2)
    watched.cycle(clock.now)
    runs = {row["update_id"]: row for row in watched.rows("pipeline_runs")}
    assert {k: (r["status"], r["rows_written"], r["rows_dropped"]) for k, r in runs.items()} == {
        "one": ("COMPLETED", 7, 3), "two": ("COMPLETED", 7, 3), "three": ("FAILED", 7, 3), "four": ("COMPLETED", 0, 0),
    }  # fmt: skip
    assert watched.row("pipeline_errors")["exception_class"] == "TimeoutError"


JOB = """
    import os, signal, sys, time
    from monitoring_platform.recording import monitored_run
    place, name, *lives = sys.argv[1:]
    phase = "" if lives else name
    def die():
        os.kill(os.getpid(), signal.SIGKILL)
    if phase in ("before events", "before metrics", "after metrics"):
        from monitoring_platform.recording.store import FolderStore
        append = FolderStore.append
        def dying(self, table, rows):
            if phase == "before events" or (phase == "before metrics" and table.name == "pipeline_metrics"):
                die()
            append(self, table, rows)
            if table.name == "pipeline_metrics":
                die()
        FolderStore.append = dying
    with monitored_run(name, place) as run:
        if phase == "at start":
            die()
        with run.step("one") as step:
            step.rows_out = 5
        with run.step("two"):
            if phase == "in a step":
                die()
"""


def test_killed(watched: Site, place: Path) -> None:
    """SIGKILL in each phase: the run shows as running, then as lost; the tables are whole; the next run is clean."""
    phases = ["after metrics", "at start", "before events", "before metrics", "in a step"]
    command = [sys.executable, "-c", textwrap.dedent(JOB), str(place)]
    killed = [subprocess.Popen([*command, phase], env=os.environ) for phase in phases]
    assert [job.wait() for job in killed] == [-signal.SIGKILL] * 5
    now = datetime.now(UTC)
    watched.cycle(now)
    status = {row["pipeline_name"]: row["status"] for row in watched.rows("pipeline_runs")}
    assert status == {**dict.fromkeys(phases, "RUNNING"), "after metrics": "COMPLETED"}
    watched.cycle(now + timedelta(minutes=6))
    again = [subprocess.Popen([*command, phase, "lives"], env=os.environ) for phase in phases]
    assert [job.wait() for job in again] == [0] * 5
    watched.cycle(now + timedelta(minutes=7))
    runs = {(row["pipeline_name"], row["status"]): row for row in watched.rows("pipeline_runs")}
    assert len(watched.rows("pipeline_runs")) == 10
    assert set(runs) == {(p, s) for p in phases for s in ("COMPLETED", "FAILED")} - {("after metrics", "FAILED")}
    assert runs["before metrics", "FAILED"]["rows_written"] == 5  # what it told before it was killed is known
    lost = [row["pipeline_name"] for row in watched.rows("pipeline_errors") if row["error_class"] == "JOB_LOST"]
    assert sorted(lost) == phases  # once each
    written = sorted(row["pipeline_name"] for row in rows(place, "pipeline_metrics"))
    assert written == sorted([*phases, "after metrics"])


def test_a_lost_run_that_ends_after_all(watched: Site, place: Path, clock: Clock) -> None:
    """A machine that slept: lost at first, and then its real end counts, marked as a second end."""
    with monitored_run("job", place, clock=clock, heartbeat_seconds=3600) as run:
        clock.forward(minutes=20)
        watched.cycle(clock.now)
        assert watched.row("pipeline_runs")["status"] == "FAILED"
    watched.cycle(clock.now)
    row = watched.row("pipeline_runs")
    assert (row["update_id"], row["status"], row["duration_seconds"], row["has_conflicting_end"]) == (
        run.run_id,
        "COMPLETED",
        1200,
        True,
    )


def test_heartbeats_keep_a_long_run_alive(watched: Site, place: Path) -> None:
    """A run that works for longer than the silence that counts as death is not lost."""
    with monitored_run("job", place, heartbeat_seconds=0.05, lost_after_seconds=1.5):
        time.sleep(2)
        watched.cycle(datetime.now(UTC))
        assert watched.row("pipeline_runs")["status"] == "RUNNING"


WRITER = """
    import sys
    from concurrent.futures import ThreadPoolExecutor
    from monitoring_platform.recording import monitored_run
    def job(n):
        with monitored_run(f"job {n}", sys.argv[1], write_seconds=120) as run, run.step("s") as step:
            step.rows_out = n
        return run.problems
    with ThreadPoolExecutor(10) as pool:
        problems = [p for found in pool.map(job, range(int(sys.argv[2]), int(sys.argv[2]) + 10)) for p in found]
    print(problems)
    sys.exit(bool(problems))
"""


def test_50_jobs_at_once_lose_nothing(place: Path) -> None:
    """Five processes of ten threads each write to tables that none of them finds: 50 runs, each once."""
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(place)]
    jobs = [
        subprocess.Popen([*command, str(10 * n)], env=os.environ, stdout=subprocess.PIPE, text=True) for n in range(5)
    ]
    said = [job.communicate()[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0] * 5, said
    names = sorted(row["pipeline_name"] for row in rows(place, "pipeline_metrics"))
    assert names == sorted(f"job {n}" for n in range(50))
    counted = [row for row in rows(place, "pipeline_run_events") if row["rows_out"] is not None]
    assert sorted(row["rows_out"] for row in counted) == list(range(50))
    assert list((place / "_running").iterdir()) == []
