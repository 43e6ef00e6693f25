"""The main job on Apache Spark as users have it: over a Spark Connect server, on a standalone cluster, into a catalog.

Each is real and runs on this machine; the tables are those of the embedded engine, row for row. The parity suite
compares all marts; here it is some of each kind, by the Dagster job.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from monitoring_platform.demo import generate
from monitoring_platform.marts.registry import BY_NAME
from monitoring_platform.warehouse.contracts import BOOKS
from tests.acceptance.engine_cycle import MARTS, VIEW
from tests.acceptance.spark_servers import QUICK, QUICK_JAVA, cluster, connect_server
from tests.acceptance.test_parity import Ran, assert_same_rows, needs_spark, repeats, retries
from tests.conftest import EVENT_LOGS, NOW, state
from tests.workspace import Workspace

ROOT = Path(__file__).parents[2]
TABLES = (*(table.name for table in BOOKS), *MARTS, VIEW)
pytestmark = needs_spark


@pytest.fixture(scope="module")
def deliveries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three pipelines with problems, one of their logs broken, two recorded logs, retries and repeats; then news."""
    fleet, folder = tmp_path_factory.mktemp("fleet"), tmp_path_factory.mktemp("deliveries")
    generate(fleet, pipelines=3, days=1, seed=5, end=NOW)
    for kind in ("logs", "delta_logs"):
        shutil.copytree(fleet / kind, folder / "1" / kind)
    for name in ("rest_whole_update_two_flows.jsonl", "table_malformed_details_and_errors.jsonl"):
        shutil.copyfile(EVENT_LOGS / "completed" / name, folder / "1" / "logs" / name)
    for make in (retries, repeats):
        lines, (first, *later) = b"", make()
        for number, rows in (("1", first), ("2", [row for part in later for row in part])):
            lines += b"".join(orjson.dumps(row) + b"\n" for row in rows)
            target = folder / number / "logs" / f"{make.__name__}.jsonl"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(lines)
    late = state("late", 90_000, "FAILED", pipeline_id="late", level="ERROR", message="it broke")
    (folder / "2" / "logs" / "late.jsonl").write_bytes(orjson.dumps(late))
    for place, file in enumerate(sorted(file for file in folder.rglob("*") if file.is_file())):
        os.utime(file, (1_700_000_000 + place, 1_700_000_000 + place))  # cursors hold it
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, deliveries: Path) -> Any:
    """Runs the job for each delivery on an engine; all runs have their logs at the same place."""
    site = tmp_path_factory.mktemp("site")

    def one(name: str, engine: dict[str, Any], warehouse: dict[str, str] | None = None, **environment: str) -> Ran:
        out = tmp_path_factory.mktemp(name)
        for place in site.iterdir():
            shutil.rmtree(place) if place.is_dir() else place.unlink()
        config = site / "monitoring.yaml"
        config.write_text(
            f"warehouse: {json.dumps(warehouse or {'path': str(out / 'warehouse')})}\n"
            f"engine: {json.dumps(engine)}\n"
            "ingest: {max_concurrent_streams: 1}\n"
            "sources:\n"
            "  - {type: files, path: ./logs/logs}\n"
            "  - {type: delta, path: './logs/delta_logs/*'}\n"
            "views:\n"
            f"  - name: {VIEW}\n"
            "    sql: SELECT pipeline_id, update_id, duration_seconds / 60 AS minutes FROM pipeline_runs\n"
            "    refresh: update\n",
            encoding="utf-8",
        )
        command = [sys.executable, "-m", "tests.acceptance.engine_cycle", *map(str, (config, deliveries, out))]
        given = {**os.environ, "DAGSTER_HOME": str(out / "dagster"), **environment}
        done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if not line.startswith("\tat ")]  # Java's stack traces
            pytest.fail(f"{name} ended with {done.returncode}: …" + "\n".join(lines[-30:]), pytrace=False)
        return Ran(out)

    return one


@pytest.fixture(scope="module")
def embedded(run: Any) -> Ran:
    ran: Ran = run("embedded", {"name": "embedded"})
    return ran


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("server")) as url:
        yield url


def assert_as_embedded(embedded: Ran, ran: Ran, but: tuple[str, ...] = ()) -> None:
    """The same tables after all, and each job says the same: what was new, what the checks found, what failed."""
    for name in TABLES:
        left, right = embedded.table("2", name), ran.table("2", name)
        if name != VIEW:  # whose types are the engine's
            assert left.schema.equals(right.schema), f"{name}: types differ"
        kept = [column for column in left.column_names if column not in but]
        assert_same_rows(name, left.select(kept), right.select(kept))
    for number, said in embedded.report.items():
        other = ran.report[number]
        assert [finding["total"] for finding in said["findings"]] == [f["total"] for f in other["findings"]]
        assert (said["success"], said["errors"]) == (other["success"], other["errors"])
        for step, facts in said["steps"].items():
            for fact in ("events_new", "events_repeated", "id_conflicts", "rows_written", "rows_removed", "row_count"):
                assert other["steps"][step].get(fact) == facts.get(fact), f"{step} after {number}: {fact}"


def test_the_deliveries_are_worth_comparing(embedded: Ran) -> None:
    """No table is empty, the news change rows, one log is broken and named."""
    assert [name for name in TABLES if not embedded.table("2", name).num_rows] == []
    steps = embedded.report["2"]["steps"]
    assert steps["all_pipelines_event_log"]["events_repeated"]
    assert all(steps[name]["rows_written"] for name in ("pipeline_runs", "pipeline_errors", "requests", VIEW))
    assert not embedded.report["1"]["success"]
    assert "broken_export" in embedded.report["1"]["errors"][0]
    assert set(BY_NAME) > set(MARTS)


def test_over_a_spark_connect_server(run: Any, embedded: Ran, server: str) -> None:
    """R-NEW-10: `engine: connect`, Apache Spark in another process, tables in a folder that both see."""
    assert_as_embedded(embedded, run("connect", {"name": "connect", "url": server}))


def test_into_a_catalog(run: Any, embedded: Ran, server: str) -> None:
    """Tables that only the engine can reach, by the one session that serverless compute of Databricks gives.

    What maintenance compacts in between is not new to the next cycle: the same events, rows and repeats are counted.
    """
    place = {"catalog": "spark_catalog", "schema": "monitoring"}
    ran = run("catalog", {"name": "spark"}, place, DATABRICKS_RUNTIME_VERSION="17.3", SPARK_REMOTE=server)
    assert_as_embedded(embedded, ran, but=("version",))  # compaction is a commit of its own there
    union = next(row for row in ran.table("2", "progress").to_pylist() if row["step"] == "flow_metrics")
    assert union["version"] > 2  # made, appended, compacted, appended


def test_doctor_tries_the_engine(server: str, tmp_path: Path) -> None:
    """Where tables are in a catalog and SQL runs on the engine: both are tried, nothing is left, what fails is said."""
    with Workspace(tmp_path / "workspace") as workspace:
        monitor = workspace.principal("monitor@example.com")
        config = tmp_path / "monitoring.yaml"

        def examined(catalog: str) -> dict[str, tuple[str, str]]:
            config.write_text(
                f"warehouse: {{catalog: {catalog}, schema: doctored}}\nengine: {{name: spark}}\n"
                f"sources: [{{type: workspace, name: prod, host: '{workspace.host}', token: '${{A_TOKEN}}'}}]\n",
                encoding="utf-8",
            )
            given = {"DATABRICKS_RUNTIME_VERSION": "17.3", "SPARK_REMOTE": server, "A_TOKEN": str(monitor.token)}
            command = [Path(sys.executable).with_name("monitoring-platform"), "doctor", "--json", "--config", config]
            given |= {"DAGSTER_HOME": str(tmp_path / "dagster")}
            done = subprocess.run(command, env=os.environ | given, capture_output=True, text=True, check=False)
            return {told["what"]: (told["verdict"], told["found"]) for told in json.loads(done.stdout)}

        for _ in range(2):  # the first leaves nothing to the second
            told = examined("spark_catalog")
            written = "spark_catalog.doctored takes tables; the first run makes the schema"
            assert told["write access"] == ("pass", written)
        assert told["source prod: SQL"] == ("pass", "the engine answers")
        assert told["source prod: pipeline events"][0] == "note"  # here is no such table; other ways are open
        verdict, found = examined("elsewhere")["write access"]
        assert verdict == "fail" and found.startswith("elsewhere.doctored cannot be written: ")
        workspace.is_clean()


def test_on_a_standalone_cluster(run: Any, embedded: Ran, tmp_path: Path) -> None:
    """R-NEW-10: `engine: {name: spark, master: spark://…}` with two workers, both at work."""
    with cluster(tmp_path / "cluster") as master:
        conf = {
            **QUICK,
            "spark.driver.extraJavaOptions": QUICK_JAVA,
            "spark.executor.extraJavaOptions": QUICK_JAVA,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.executor.memory": "700m",
        }
        ran = run("cluster", {"name": "spark", "master": master, "conf": conf})
    assert_as_embedded(embedded, ran)
    for worker in ("worker0", "worker1"):
        executors = list((tmp_path / "cluster" / worker).glob("app-*/*/stderr"))
        assert any("Finished task" in file.read_text(errors="replace") for file in executors), worker
