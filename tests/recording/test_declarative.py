"""Open-source Spark Declarative Pipelines: runs of the example, by Spark itself, in the platform's tables."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path

import orjson
import pyspark.sql.connect.proto as pb2
import pytest

from monitoring_platform.event_log.running import SILENCE, is_lost, mark_of
from monitoring_platform.health.watch import watch
from monitoring_platform.recording.declarative import EVENTS, capture
from monitoring_platform.recording.declarative.graph import Graph, dotted, spelled
from monitoring_platform.recording.declarative.journal import Journal, Pipeline, close_lost
from monitoring_platform.recording.declarative.messages import Said, failure, understand
from monitoring_platform.recording.declarative.rows import counted
from tests.acceptance.spark_servers import QUICK, QUICK_JAVA
from tests.conftest import HAS_SPARK, NOW, Site, by

EXAMPLE = Path(__file__).parents[2] / "examples" / "declarative_pipeline"
PROGRAM = Path(__file__).with_name("connect_program.py")
#: Begins to record a run, says its update id and waits.
KILLED = """
import sys, time
from datetime import datetime, timezone
from monitoring_platform.recording.declarative.journal import Journal, Pipeline

from pathlib import Path

journal = Journal(Path(sys.argv[1]), Pipeline("killed", "s"), lambda: datetime.now(timezone.utc))
journal.write("update_progress", {"state": "RUNNING"}, "running")
journal.write("flow_progress", {"status": "RUNNING"}, "running", flow_name="f")
print(journal.update_id, flush=True)
time.sleep(600)
"""
needs_spark = pytest.mark.skipif(not HAS_SPARK, reason="Java 17+ not found")


def example(folder: Path) -> dict[str, str]:
    """The example with everything that it writes below the folder; the environment to run it in."""
    shutil.copytree(EXAMPLE, folder)
    for spec in folder.glob("*.yml"):
        text = spec.read_text("utf-8").replace("file:///tmp", folder.as_uri())
        spec.write_text(text, encoding="utf-8")
    settings = {
        **QUICK,
        "spark.driver.extraJavaOptions": f"{QUICK_JAVA} -Dderby.system.home={folder}",
        "spark.ui.enabled": "false",
        "spark.connect.grpc.binding.port": "0",
    }
    with (folder / "conf" / "spark-defaults.conf").open("a", encoding="utf-8") as file:
        file.writelines(f"{name} {value}\n" for name, value in settings.items())
    left_out = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED")  # of an engine that this process may have
    return {name: value for name, value in os.environ.items() if name not in left_out} | {
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_TESTING": "1",
    }


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A Python in a folder with the example."""
    environment = example(folder)
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )


def killed_run(events: Path) -> str:
    """A run whose process is killed while it writes; gives its update id."""
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(events)], stdout=subprocess.PIPE, text=True)
    update_id = child.stdout.readline().strip()  # type: ignore[union-attr]
    child.send_signal(signal.SIGKILL)
    child.communicate()
    return update_id


@needs_spark
def test_runs_of_the_example(make_site: Callable[..., Site], tmp_path: Path) -> None:
    """R-OWN: a run by the command, one that fails and was started by a program, and one that was killed before them."""
    site = make_site()
    lost = killed_run(site.logs)
    happy, failing = tmp_path / "happy", tmp_path / "failing"
    call = ["spark-pipelines", "--events", str(site.logs), "run", "--spec", "spark-pipeline.yml"]
    command = ["-c", "from monitoring_platform.cli import main; main()", *call]
    with ThreadPoolExecutor(2) as pool:  # most of the time is Java's start
        both = pool.submit(run, happy, *command), pool.submit(run, failing, str(PROGRAM), "failing.yml", str(site.logs))
    done, failed = (future.result() for future in both)
    assert (done.returncode, "Run is COMPLETED." in done.stdout) == (0, True), done.stdout + done.stderr
    assert (failed.returncode, "CAST_INVALID_INPUT" in failed.stdout) == (1, True), failed.stdout + failed.stderr
    assert not list(site.logs.rglob("*.running"))

    now = datetime.now(timezone.utc)
    site.cycle(now)
    columns = ("pipeline_name", "pipeline_type", "status", "flow_count", "rows_written", "error_count")
    assert by(site.rows("pipeline_runs"), *columns) == [
        ("killed", "SPARK_DECLARATIVE", "FAILED", 1, None, 1),
        ("orders", "SPARK_DECLARATIVE", "COMPLETED", 2, 13, 0),
        ("orders, failing", "SPARK_DECLARATIVE", "FAILED", 4, 13, 2),
    ]
    good, bad = (site.row("pipeline_runs", pipeline_name=name) for name in ("orders", "orders, failing"))
    assert (good["catalog"], good["target"], good["is_full_refresh"]) == ("spark_catalog", "default", False)
    phases = [good[f"{phase}_seconds"] for phase in ("initializing", "setting_up", "running")]
    assert round(sum(phases), 3) == round(good["duration_seconds"], 3)

    default = "spark_catalog.default."
    flows = by(site.rows("flow_metrics", update_id=bad["update_id"]), "flow_name", "dataset", "status", "rows_written")
    assert flows == [
        (default + name, default + name, status, rows)
        for name, status, rows in (
            ("customers", "COMPLETED", 3),
            ("deliveries", "FAILED", None),
            ("late_deliveries", "SKIPPED", None),
            ("orders", "COMPLETED", 10),
        )
    ]
    edges = by(
        site.rows("flow_lineage", update_id=good["update_id"]), "qualified_input", "qualified_output", "flow_type"
    )
    assert edges == [
        (default + "big_orders", default + "customers", "MATERIALIZED_VIEW"),
        (default + "orders", default + "big_orders", "VIEW"),
    ]

    errors = site.rows("pipeline_errors", update_id=bad["update_id"])
    assert by(errors, "level", "flow_name", "error_class", "root_error_class", "root_sql_state") == [
        ("ERROR", default + "deliveries", "TASK_WRITE_FAILED", "CAST_INVALID_INPUT", "22018"),
        ("ERROR", None, "TASK_WRITE_FAILED", "CAST_INVALID_INPUT", "22018"),
        *[("WARN", default + "deliveries", "TASK_WRITE_FAILED", "CAST_INVALID_INPUT", "22018")] * 2,  # and its retry
    ]
    assert len({row["fingerprint"] for row in errors}) == 1
    step = watch(site.warehouse, now + timedelta(hours=1))  # a retry is waited for
    assert by(step.incidents, "pipeline_names", "rule", "title") == [
        (["killed"], "request_failed", "failed: RUN_LOST"),
        (["orders, failing"], "request_failed", "failed: CAST_INVALID_INPUT"),
    ]
    assert site.row("pipeline_runs", update_id=lost)["status"] == "FAILED"


def test_a_killed_run_is_ended_by_the_next_start(tmp_path: Path) -> None:
    """A log whose process is gone gets the state FAILED, after its last line; one that is being written does not."""
    killed_run(tmp_path)
    (lost,) = tmp_path.rglob("*.jsonl")
    with lost.open("ab") as file:
        file.write(b'{"id": "cut')
    running = Journal(tmp_path, Pipeline("other", "s"), lambda: NOW)
    lines = lost.read_bytes().splitlines()
    assert lines[-2] == b'{"id": "cut'
    end = orjson.loads(lines[-1])
    assert end["details"] == {"update_progress": {"state": "FAILED"}}
    assert end["level"] == "ERROR" and end["timestamp"] >= orjson.loads(lines[-3])["timestamp"]
    assert end["origin"] == orjson.loads(lines[0])["origin"]
    running.write("update_progress", {"state": "RUNNING"}, "running")
    close_lost(tmp_path)
    assert [orjson.loads(line)["message"] for line in running.path.read_bytes().splitlines()] == ["running"]
    assert [path.name for path in tmp_path.rglob("*.running")] == [running.path.name + ".running"]
    running.close()
    assert not list(tmp_path.rglob("*.running"))


def test_a_run_of_a_machine_that_is_gone(make_site: Callable[..., Site]) -> None:
    """Nothing is started there again: the run is lost once nobody has renewed its mark for five minutes, and stays it."""
    site = make_site()
    update_id = killed_run(site.logs)
    now = datetime.now(timezone.utc)
    site.cycle(now + timedelta(minutes=4))
    assert site.row("pipeline_runs")["status"] == "RUNNING"
    site.cycle(now + timedelta(minutes=6))
    row = site.row("pipeline_runs")
    assert (row["update_id"], row["status"], row["end_ts"] <= now) == (update_id, "FAILED", True)
    close_lost(site.logs)  # the machine is back
    site.cycle(now + timedelta(minutes=8))
    assert site.row("pipeline_runs")["status"] == "FAILED"
    assert site.row("pipeline_errors")["error_class"] == "RUN_LOST"  # told once


def test_a_run_that_lives_renews_its_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow that says nothing for hours is not lost; what the server said last comes before the loss."""
    monkeypatch.setattr("monitoring_platform.recording.declarative.journal.SILENCE", timedelta(seconds=0.1))
    journal = Journal(tmp_path, Pipeline("p", "s"), lambda: datetime.now(timezone.utc))
    mark = mark_of(journal.path)
    assert not is_lost(mark, journal.began + SILENCE)
    deadline = time.monotonic() + 30
    while is_lost(mark, journal.began + timedelta(seconds=0.1) + SILENCE):
        assert time.monotonic() < deadline, "nothing renewed the mark"
        time.sleep(0.02)
    later = journal.now() + timedelta(hours=1)
    journal.write("update_progress", {"state": "RUNNING"}, "by the server's clock", at=later)
    assert orjson.loads(mark.read_bytes())["timestamp"] == later.isoformat().replace("+00:00", "Z")
    journal.close()
    assert not is_lost(mark, later + 2 * SILENCE)


def test_a_signal_goes_on_to_spark(tmp_path: Path) -> None:
    """SIGTERM to the command stops Spark too; how Spark ended is its exit code, and the log is ended at once."""
    (tmp_path / "bin").mkdir()
    spark = tmp_path / "bin" / "spark-class"
    spark.write_text(f'#!{sys.executable}\nimport os, sys\nsys.argv[1:] = [os.environ["{EVENTS}"]]\n{KILLED}', "utf-8")
    spark.chmod(0o755)
    call = ["spark-pipelines", "--events", str(tmp_path / "logs"), "run"]
    command = [sys.executable, "-c", "from monitoring_platform.cli import main; main()", *call]
    environment = {**os.environ, "SPARK_HOME": str(tmp_path)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    update_id = process.stdout.readline().strip()  # type: ignore[union-attr]
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    (log,) = (tmp_path / "logs").rglob("*.jsonl*")
    end = orjson.loads(log.read_bytes().splitlines()[-1])
    assert (end["origin"]["update_id"], end["details"]) == (update_id, {"update_progress": {"state": "FAILED"}})


def test_an_event_has_the_shape_of_the_api(tmp_path: Path) -> None:
    """R-UNI-04: ids, times in UTC, the order of writing; secrets of the spec are not written."""
    journal = Journal(tmp_path, Pipeline("p", "file:///s"), lambda: NOW)
    config = {"configuration": {"spark.hadoop.fs.s3a.secret.key": "hunter2", "spark.sql.ansi.enabled": "true"}}
    journal.write("create_update", {"config": config, "cause": None}, "first")
    journal.write(
        "flow_progress", {"status": "FAILED"}, "f", level="ERROR", exceptions=[{"message": "m"}], flow_name="f"
    )
    first, second = (orjson.loads(line) for line in journal.path.read_bytes().splitlines())
    settings = first["details"]["create_update"]["config"]["configuration"]
    assert settings == {"spark.hadoop.fs.s3a.secret.key": "[REDACTED]", "spark.sql.ansi.enabled": "true"}
    assert (first["timestamp"], first["details"]["create_update"].keys()) == ("2026-01-02T00:00:00.000000Z", {"config"})
    assert second["origin"] == first["origin"] | {"flow_name": "f"}
    assert second["error"] == {"fatal": True, "exceptions": [{"message": "m"}]}
    assert [event["sequence"]["data_plane_id"]["seq_no"] for event in (first, second)] == [1, 2]
    assert first["id"] != second["id"]
    assert Pipeline("p", "file:///s").id == first["origin"]["pipeline_id"] != Pipeline("p", "file:///t").id
    journal.close()


@pytest.mark.parametrize(
    ("text", "flow", "status"),
    [
        ("Flow c.s.f is QUEUED.", "c.s.f", "QUEUED"),
        ("Flow c.s.f is RUNNING.", "c.s.f", "RUNNING"),
        ("Flow c.s.f has COMPLETED.", "c.s.f", "COMPLETED"),
        ("Flow 'c.s.f' has FAILED more than 2 times and will not be restarted.", "c.s.f", "FAILED"),
        ("Flow 'c.s.f' SKIPPED due to upstream failure(s).", "c.s.f", "SKIPPED"),
        ("Flow 'c.s.f' is IDLE, waiting for new data.", "c.s.f", "IDLE"),
        ("Failed to resolve flow: 'c.s.f'.", "c.s.f", "FAILED"),
        ("Failed to resolve flow due to upstream failure: 'c.s.f'.", "c.s.f", "SKIPPED"),
        ("Run is COMPLETED.", None, "COMPLETED"),
        ("Flow c.s.f is GLOWING.", None, None),
        ("A note: Flow c.s.f has COMPLETED.", None, None),
        ("Flow c.s.f\nis RUNNING.", None, None),
    ],
)
def test_only_exact_sentences_are_understood(text: str, flow: str | None, status: str | None) -> None:
    """What Spark says in any other way is kept as text and is no status."""
    said = understand(text)
    assert (said.text, said.flow, said.status, said.exceptions) == (text, flow, status, None)


def test_the_chain_of_an_error() -> None:
    """R-ERR-01: joined messages are told apart by their codes; a stack trace of the server by its causes."""
    said = understand("Flow 'f' has FAILED.\nError: [A] outer\nmore\n[B.C] inner\n== SQL ==")
    assert (said.flow, said.status) == ("f", "FAILED")
    assert said.exceptions == [{"message": "[A] outer\nmore"}, {"message": "[B.C] inner\n== SQL =="}]

    class Remote(Exception):
        def getStackTrace(self) -> str:
            return (
                "org.x.Outer\n\tat org.x.f(F.scala:1)\nCaused by: org.x.Inner: [B.C] inner\n\tat a.b(C:2)\n\t... 3 more"
            )

    assert failure(Remote("[A] outer\n\nJVM stacktrace:\norg.x.Outer")) == Said(
        "[B.C] inner",
        "FAILED",
        exceptions=[
            {"class_name": "org.x.Outer", "message": "[A] outer"},
            {"class_name": "org.x.Inner", "message": "[B.C] inner"},
        ],
    )
    assert failure(KeyboardInterrupt()).status == "CANCELED"
    assert failure(RuntimeError("Pipeline run was canceled.")).status == "CANCELED"
    try:
        raise ImportError("no such module") from KeyError("k")
    except ImportError as error:
        chain = failure(error).exceptions
    assert chain == [
        {"class_name": "ImportError", "message": "no such module"}, {"class_name": "KeyError", "message": "'k'"}
    ]  # fmt: skip


SQL = """
CREATE MATERIALIZED VIEW a COMMENT 'x; y' AS
WITH c AS (SELECT * FROM b.raw) SELECT * FROM c JOIN `odd name` USING (id) JOIN read_files('/x') USING (id);
CREATE STREAMING TABLE s; -- filled by two flows
CREATE FLOW one AS INSERT INTO s BY NAME SELECT * FROM STREAM(a);
CREATE FLOW `two` AS INSERT INTO s BY NAME SELECT * FROM x.y.z;
CREATE STREAMING TABLE t;
CREATE TEMPORARY VIEW v AS SELECT * FROM delta.`/path/to` JOIN a USING (id);
CREATE MATERIALIZED VIEW w AS WITH v AS (SELECT * FROM v WHERE id IN (SELECT id FROM t)) SELECT * FROM v JOIN a USING (id);
NOT SQL AT ALL (;
USE CATALOG elsewhere;
CREATE MATERIALIZED VIEW unknown AS SELECT * FROM a;
"""


def test_the_graph_of_sql_files() -> None:
    """R-LIN-01: flows with what they read, by qualified names; what is no table and what cannot be told is left out."""
    graph = Graph("c", "s")
    command = pb2.PipelineCommand(define_sql_graph_elements={"sql_text": SQL})
    graph.add(command)
    assert [(spelled(output.name), output.kind) for output in graph.outputs] == [
        ("c.s.a", "MATERIALIZED_VIEW"),
        ("c.s.s", "STREAMING_TABLE"),
        ("c.s.t", "STREAMING_TABLE"),
        ("v", "VIEW"),
        ("c.s.w", "MATERIALIZED_VIEW"),
    ]
    found = [(dotted(f.name), dotted(f.target), sorted(map(spelled, f.inputs)), f.kind) for f in graph.flows]
    assert found == [
        ("c.s.a", "c.s.a", ["c.b.raw", "c.s.`odd name`"], "MATERIALIZED_VIEW"),
        ("c.s.one", "c.s.s", ["c.s.a"], "APPEND"),
        ("c.s.two", "c.s.s", ["x.y.z"], "APPEND"),
        ("v", "v", ["c.s.a"], "VIEW"),
        ("c.s.w", "c.s.w", ["c.s.a", "c.s.t", "v"], "MATERIALIZED_VIEW"),
    ]


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({"numFiles": "1", "numOutputRows": "0", "numOutputBytes": "9"}, {"num_output_rows": 0, "num_output_bytes": 9}),
        ({"numRemovedFiles": "2", "numOutputBytes": "9"}, {}),
        ({}, {}),
    ],
)
def test_what_a_commit_counted(metrics: dict[str, str], expected: dict[str, int]) -> None:
    """R-ROW-01: none is reported as none, and what was not counted not at all."""
    assert counted(metrics) == expected


def test_a_monitor_that_fails_fails_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The pipeline's own result and exception come through, whatever becomes of the log."""
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    with capture(tmp_path / "file", "p", "s"):
        reached = True
    assert reached and "not recorded" in capfd.readouterr().err
    with pytest.raises(ZeroDivisionError), capture(tmp_path / "logs", "p", "s"):
        1 / 0  # noqa: B018
    (log,) = (tmp_path / "logs").rglob("*.jsonl")
    events = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    assert [event["event_type"] for event in events] == ["update_progress", "create_update", "update_progress"]
    assert events[-1]["error"]["exceptions"] == [{"class_name": "ZeroDivisionError", "message": "division by zero"}]
