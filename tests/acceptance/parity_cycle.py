"""Cycles over prepared deliveries on one engine, in a process of its own (one session for each process).

    python -m tests.acceptance.parity_cycle '{"name": "spark"}' DELIVERIES SITE OUT

DELIVERIES/1, /2, … are copied over SITE's sources one after the other, each followed by a cycle; OUT/1, /2, … get all
tables after that cycle, OUT/rebuilt the marts after a rebuild, and OUT/report.json what the cycles said and took.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from monitoring_platform.config import load
from monitoring_platform.marts.refresh import MARTS, rebuild
from monitoring_platform.marts.registry import TABLES
from monitoring_platform.warehouse.contracts import STANDING
from monitoring_platform.warehouse.store import Warehouse
from tests.conftest import NOW, Site


def site(folder: Path, engine: dict[str, Any], warehouse: Path) -> Site:
    """A site whose logs are read one after the other, so that the order of arrival is the same on every engine."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "monitoring.yaml"
    file.write_text(
        f"warehouse: {{path: {warehouse}}}\n"
        f"engine: {json.dumps(engine)}\n"
        "ingest: {max_concurrent_streams: 1}\n"
        "sources:\n"
        "  - {type: files, path: ./sources/files}\n"
        "  - {type: delta, path: './sources/delta/*'}\n",
        encoding="utf-8",
    )
    return Site(folder, Warehouse(load(file)))


def dump(place: Site, folder: Path) -> None:
    """All tables as Parquet files."""
    folder.mkdir(parents=True)
    for table in (*STANDING, *TABLES):
        pq.write_table(place.warehouse.arrow(table), folder / f"{table.name}.parquet")


def make_spark_tables(place: Site, folder: Path) -> None:
    """Event logs as Apache Spark writes them by default: plain, with deletion vectors, with mapped column names."""
    spark = place.warehouse.spark
    spark.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    rows = [(f"s{i}", f"2026-01-01T00:00:{i:02d}Z") for i in range(5)] + [("s5", "2999-01-01T00:00:00.000001Z")]
    spark.createDataFrame(rows, "id string, time string").createOrReplaceTempView("made")
    for name, settings in (
        ("plain", "'delta.enableDeletionVectors' = 'false'"),
        ("deleted", "'delta.enableDeletionVectors' = 'true', 'delta.enableRowTracking' = 'true'"),
        ("mapped", "'delta.columnMapping.mode' = 'name'"),
    ):
        spark.sql(
            f"CREATE TABLE delta.`{folder / name}` USING delta TBLPROPERTIES ({settings}) AS "
            f"SELECT id, CAST(time AS TIMESTAMP) AS timestamp, 'update_progress' AS event_type, "
            f"named_struct('pipeline_id', '{name}', 'update_id', 'u') AS origin, "
            f'\'{{"update_progress": {{"state": "RUNNING"}}}}\' AS details FROM made'
        )
    spark.sql(f"DELETE FROM delta.`{folder / 'deleted'}` WHERE id = 's0'")
    spark.sql(f"ALTER TABLE delta.`{folder / 'mapped'}` RENAME COLUMN details TO renamed")
    spark.sql(f"ALTER TABLE delta.`{folder / 'mapped'}` RENAME COLUMN renamed TO details")


def main(engine_json: str, deliveries: Path, folder: Path, out: Path) -> None:
    engine = json.loads(engine_json)
    place = site(folder, engine, out / "warehouse")
    shutil.rmtree(folder / "sources", ignore_errors=True)
    report: dict[str, Any] = {}
    started = time.perf_counter()
    place.warehouse.spark.sql("SELECT 1").collect()
    report["seconds_to_start"] = round(time.perf_counter() - started, 1)
    for number, delivery in enumerate(sorted(deliveries.iterdir()), start=1):
        shutil.copytree(delivery, folder / "sources", dirs_exist_ok=True)
        started = time.perf_counter()
        read, united, refreshed = place.cycle(NOW + timedelta(hours=number))
        report[delivery.name] = {
            "seconds": round(time.perf_counter() - started, 1),
            "read": asdict(read),
            "united": asdict(united),
            "refreshed": [asdict(one) for one in refreshed],
        }
        dump(place, out / delivery.name)
    started = time.perf_counter()
    for mart in MARTS:
        rebuild(place.warehouse, mart)
    report["seconds_to_rebuild"] = round(time.perf_counter() - started, 1)
    dump(place, out / "rebuilt")
    if engine["name"] == "spark":
        make_spark_tables(place, out / "made")
    (out / "report.json").write_text(json.dumps(report, indent=1, default=str), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], *(Path(argument) for argument in sys.argv[2:5]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # the embedded server would be waited for
