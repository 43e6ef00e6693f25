"""All kinds of checks on one small frame, on either engine: `python -m tests.recording.scenario ENGINE FOLDER`.

Prints what was found as JSON. The same answers are expected of both engines and of both ways: one aggregate, and
observation during the write.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from monitoring_platform.config import Engine
from monitoring_platform.recording import (
    Check,
    Result,
    fails_when,
    fresh,
    has_schema,
    in_range,
    in_set,
    matches,
    monitored_run,
    not_null,
    refers_to,
    row_count,
    row_count_change,
    run_quality_check,
    setup_monitoring_tables,
    unique,
)
from monitoring_platform.recording.tables import TABLES
from monitoring_platform.warehouse.session import session
from tests.acceptance.spark_servers import QUICK, QUICK_JAVA

NOW = datetime(2026, 1, 3, 12, tzinfo=timezone.utc)
ROWS = [
    (1, "a", 10.0, "x", "2026-01-01 00:00:00"),
    (2, "b", -1.0, "y", "2026-01-02 00:00:00"),
    (2, None, None, "q", "2026-01-03 00:00:00"),
    (None, "password=hunter2", 5.0, "x", None),
]


def checks(spark: SparkSession) -> list[Check]:
    """One of each kind."""
    known = spark.createDataFrame([("x",), ("y",), ("x",)], "k string")
    return [
        not_null("id"),
        in_range("amount", 0, 100, quarantine=True),
        in_set("kind", ["x", "y"]),
        matches("code", "[a-z]"),
        row_count(minimum=3),
        row_count(minimum=8, name="many"),
        row_count(maximum=2, name="few"),
        row_count_change(10),
        fresh("at", 24),
        fresh("at", 6, name="fresher"),
        has_schema({"id": "bigint", "amount": "int", "no": "string"}),
        refers_to("kind", known, "k", quarantine=True),
        fails_when("amount < 0 and id = 2"),
    ]


def told(results: list[Result]) -> dict[str, Any]:
    """What counts of results, by check."""
    return {r.check.name: [r.rows_checked, r.rows_failed, r.rows_unknown, r.failure_pct, r.passed] for r in results}


def frame(spark: SparkSession, scans: Path) -> Any:
    """The rows, in a frame that leaves a file for each time that it is computed."""
    scans.mkdir()
    columns = "id long, code string, amount double, kind string, at string"
    plain = spark.createDataFrame(ROWS, columns).coalesce(1)

    def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import uuid

        (scans / uuid.uuid4().hex).touch()
        yield from batches

    return plain.mapInArrow(counted, columns).selectExpr("id", "code", "amount", "kind", "cast(at as timestamp) as at")


def run(engine: str, folder: Path) -> dict[str, Any]:
    """Everything that is asked of one engine."""
    quick = {**QUICK, "spark.driver.extraJavaOptions": QUICK_JAVA, "spark.sql.warehouse.dir": f"{folder}/catalog"}
    conf = quick if engine == "spark" else {}
    spark = session(Engine(name=engine, master="local[1]", conf=conf))  # type: ignore[arg-type]
    scans, place, said = folder / "scans", folder / "records", dict[str, Any]()
    rows, of_rows = frame(spark, scans), checks(spark)

    def scanned() -> int:
        found = list(scans.iterdir())
        for file in found:
            file.unlink()
        return len(found)

    with monitored_run("silver_things", place, clock=lambda: NOW) as done, done.step("all") as step:
        said["checked"] = told(step.check(rows, [*of_rows, unique("id"), unique("id", "code")]))
        said["scans of a check"] = scanned()
        said["empty"] = told(step.check(rows.where("false"), [*of_rows, unique("id")]))
        scanned()
        plain = [check for check in of_rows if not check.quarantine]
        said["plain write"] = told(step.write(rows, f"{folder}/plain", plain))
        said["scans of a plain write"] = scanned()
        said["write"] = told(step.write(rows, f"{folder}/target", of_rows))
        said["scans of a write"] = scanned()
        said["samples of those above"] = list(step.samples)
        step.check(rows, of_rows, "things", sample=3)
        said["scans of a check with samples"], said["samples"] = scanned(), list(step.samples)
        step.check(rows.where("id = 1"), of_rows, sample=3)
        step.check(rows, of_rows, "things", sample=1)
        said["more samples"] = len(step.samples) - len(said["samples"])
    with monitored_run("silver_things", place, clock=lambda: NOW) as again:
        changed = again.check(
            rows.union(rows).where("id is not null"), [row_count_change(49), row_count_change(50, name="other")]
        )
        said["change"] = [[r.rows_checked, r.rows_failed, r.failure_pct, r.passed, r.note] for r in changed]
    said["problems"] = done.problems + again.problems
    hundred = spark.range(100)
    said["by hand"] = [
        run_quality_check(hundred, "r", "p", "c1", "id", "range_check", "id = 7", place=place),
        run_quality_check(hundred, "r", "p", "c2", "id", "range_check", "id = 7", 0.5, place=place),
        run_quality_check(hundred, "r", "p", "c3", "*", "volume_check", "", 0.0, minimum_rows=101, place=place),
        run_quality_check(hundred.where("false"), "r", "p", "c4", "id", "null_check", "id is null", 0.0, place=place),
        run_quality_check(hundred, "r", "p", "c5", "id", "range_check", "if(id < 3, null, false)", 0.0, place=place),
    ]
    if engine == "spark":
        said["kept by the job"] = kept_by_the_job(spark, folder)
        said["catalog"] = in_catalog(spark)
    return said


def kept_by_the_job(spark: SparkSession, folder: Path) -> bool:
    """Whether a frame that a job keeps is still kept after it was written."""
    rows = spark.range(3).persist()
    with monitored_run("job", folder / "records") as run:
        run.write(rows, f"{folder}/kept", [not_null("id", action="fail")])
    return rows.storageLevel.useMemory


def in_catalog(spark: SparkSession) -> dict[str, Any]:
    """Records in a schema of a catalog, through the session."""
    place = "pipeline_ops"
    setup_monitoring_tables(place)
    setup_monitoring_tables(place)
    for _ in range(2):
        with monitored_run("job", place, clock=lambda: NOW) as run:
            run.check(spark.range(3), [row_count(1), row_count_change(0)])
    tables = {t.name: spark.table(f"{place}.{t.name}") for t in TABLES}
    history = spark.sql(f"describe history {place}.pipeline_metrics").select("operation", "operationParameters.mode")
    return {
        "columns": {name: table.dtypes for name, table in tables.items()},
        "metrics": [[r.status, r.slo_met, r.started_at.isoformat()] for r in tables["pipeline_metrics"].collect()],
        "checks": sorted([r.check_name, r.rows_checked, r.passed] for r in tables["pipeline_quality_checks"].collect()),
        "history": [list(row) for row in history.collect()],
        "problems": run.problems,
    }


if __name__ == "__main__":
    print("\n" + json.dumps(run(sys.argv[1], Path(sys.argv[2]))))
