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
from pyspark.sql import SparkSession

from monitoring_platform.config import load
from monitoring_platform.cycle.context import keep
from monitoring_platform.marts.refresh import MARTS, rebuild
from monitoring_platform.marts.registry import TABLES
from monitoring_platform.warehouse.contracts import CONTEXT_TABLES, JOB_RUNS, KNOWN_UPDATES, STANDING
from monitoring_platform.warehouse.maintenance import maintain
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import NOW, Site

#: Differs between Sail and Apache Spark, or one of them cannot do it: not to be used. See docs/architecture.md.
AVOIDED = {
    "GROUP BY ALL": "SELECT a, count(*) FROM VALUES (1), (1) t(a) GROUP BY ALL",
    "* EXCEPT": "SELECT * EXCEPT (b) FROM VALUES (1, 2) t(a, b)",
    "PIVOT": "SELECT * FROM VALUES ('x', 1) t(k, v) PIVOT (sum(v) FOR k IN ('x'))",
    "QUALIFY": "SELECT a FROM VALUES (1), (2) t(a) QUALIFY row_number() OVER (ORDER BY a) = 1",
    "explode of a map": "SELECT explode(map('a', 1))",
    "sum that overflows": "SELECT sum(a) FROM VALUES (9223372036854775807L), (1L) t(a)",
    "addition that overflows": "SELECT a + 1L FROM VALUES (9223372036854775807L) t(a)",
    "try_sum that comes back": "SELECT try_sum(a) FROM VALUES (9223372036854775807L), (1L), (-5L) t(a)",
    "max of structs with null members": "SELECT max(struct(a, b)) FROM VALUES (1, NULL), (1, 2) t(a, b)",
    "sum of doubles": "SELECT sum(a) FROM VALUES (0.1D), (0.2D), (0.3D), (1e16D), (-1e16D) t(a)",
    "stddev to the last digit": "SELECT stddev(a) FROM VALUES (1.1D), (2.3D), (7.7D) t(a)",
    "percentile_approx": "SELECT percentile_approx(a, 0.5) FROM VALUES (1.1D), (2.3D), (7.7D), (9D) t(a)",
    "round": "SELECT round(a, 2) FROM VALUES (1.005D), (0.285D) t(a)",
    "decimal division": "SELECT CAST(a AS DECIMAL(10, 2)) / CAST(3 AS DECIMAL(10, 2)) FROM VALUES (2) t(a)",
    "weekday": "SELECT weekday(DATE'1969-12-28')",
    "double as text": "SELECT CAST(1e20D AS STRING)",
    "timestamp as JSON": "SELECT to_json(named_struct('t', TIMESTAMP'2026-01-01 00:00:00.120'))",
}
#: Agrees, and is relied on.
RELIED_ON = {
    "overflow to null": "SELECT try_sum(a), try_add(max(a), 1L) FROM VALUES (9223372036854775807L), (1L) t(a)",
    "order of nulls": "SELECT a, lag(a) OVER (ORDER BY a) FROM VALUES (1), (NULL), (2) t(a) ORDER BY a DESC",
    "order of text": "SELECT a FROM VALUES ('b'), ('B'), ('é'), ('a'), ('😀'), ('\uffee') t(a) ORDER BY a",
    "max_by with nulls": "SELECT max_by(a, b), bool_or(c) FROM VALUES ('x', NULL, NULL), (NULL, 1, NULL) t(a, b, c)",
    "texts without nulls": "SELECT concat_ws('.', NULL, 'a'), array_join(array_sort(collect_set(a)), ',') "
    "FROM VALUES ('b'), (NULL), ('a'), ('b') t(a)",
    "parts of names": "SELECT regexp_extract_all('`a.b`.c``d', '(`(?:[^`]|``)*`|[^.`]+)', 1), upper('straße i')",
    "nothing to explode": "SELECT explode(CAST(NULL AS ARRAY<INT>))",
    "microseconds": "SELECT unix_micros(TIMESTAMP'2999-01-01 00:00:00.000001Z'), "
    "(unix_micros(TIMESTAMP'2026-01-01 00:00:00.1Z') - unix_micros(TIMESTAMP'2026-01-01 00:00:00Z')) / 1e6",
    "exact percentile": "SELECT percentile(a, 0.3), median(a) FROM VALUES (1.1D), (2.3D), (7.7D) t(a)",
    "local time": "SELECT from_utc_timestamp(TIMESTAMP'2026-03-29 01:30:00Z', 'Europe/Berlin'), dayofweek(DATE'1969-12-28')",
    "lambdas": "SELECT filter(array('a', NULL), x -> x IS NOT NULL), aggregate(array(1L, 2L), CAST(NULL AS BIGINT), "
    "(t, x) -> try_add(coalesce(t, 0L), x))",
    "explode of structs": "SELECT a, s.x FROM (SELECT a, explode(l) AS s FROM (SELECT 1 AS a, "
    "array(named_struct('x', 'p'), named_struct('x', 'q')) AS l UNION ALL SELECT 2, NULL))",
    "last part of a name": r"SELECT regexp_extract('`m`.`s`.`t`', '([^.`]+)`?$', 1), regexp_extract('t', '([^.`]+)`?$', 1)",
    "windows to the end": "SELECT a, min(a) OVER (ORDER BY a ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) "
    "FROM VALUES (1), (3), (2) t(a) ORDER BY a",
    "hours and weeks": "SELECT date_trunc('HOUR', TIMESTAMP'2026-03-29 01:59:59Z'), "
    "CAST(date_trunc('WEEK', DATE'2026-03-01') AS DATE), date_sub(DATE'2026-03-01', 7)",
    "hour in a zone that a column names": "SELECT hour(from_utc_timestamp(TIMESTAMP'2026-03-29 01:30:00Z', z)), "
    "(dayofweek(DATE'2026-03-29') + 5) % 7 + 1 FROM VALUES ('Europe/Berlin') t(z)",
    "percentile of integers": "SELECT percentile(a, 0.95) FROM VALUES (1L), (2L), (10L) t(a)",
    "null-safe comparison": "SELECT NOT NULL <=> 'a', NOT NULL <=> NULL, greatest(0L, NULL), least(2L, 1L)",
    "rounding by hand": "SELECT floor(a * 100 + 0.5) / 100 FROM VALUES (1.005D), (0.285D), (2.675D) t(a)",
}


def answer(spark: SparkSession, query: str) -> str:
    """The rows as text, or that the query fails."""
    try:
        return repr([tuple(row) for row in spark.sql(query).collect()])
    except Exception:
        return "fails"


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
        "  - {type: delta, path: './sources/delta/*'}\n"
        "costs: {usage: './sources/billing/usage*.csv', list_prices: ./sources/billing/prices.csv}\n",
        encoding="utf-8",
    )
    return Site(folder, open_warehouse(load(file)))


def learn(place: Site) -> None:
    """What a workspace would have said."""
    place.warehouse.create(CONTEXT_TABLES)
    for table in (KNOWN_UPDATES, JOB_RUNS):
        rows = pq.read_table(place.folder / "sources" / "context" / f"{table.name}.parquet", schema=table.schema)
        keep(place.warehouse, table, rows)


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


def stream_union(place: Site, folder: Path) -> list[int]:
    """What a streaming reader of the union gets: events at first, and distinct ones after maintenance and a cycle."""
    spark, union = place.warehouse.spark, str(place.warehouse.path("all_pipelines_event_log"))

    def read() -> list[Any]:
        stream = spark.readStream.format("delta").load(union).select("pipeline_id", "event_id").writeStream
        stream = stream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        stream.trigger(availableNow=True).start(str(folder / "read")).awaitTermination()
        return spark.read.parquet(str(folder / "read")).collect()

    first = len(read())
    later = NOW + timedelta(days=9)
    for day in (later, later + timedelta(days=1)):
        maintain(place.warehouse, (*STANDING, *TABLES), day)
    line = json.dumps({"id": "streamed", "timestamp": "2026-01-01T00:00:09Z", "origin": {"pipeline_id": "p"}})
    (place.folder / "sources" / "files" / "streamed.jsonl").write_text(line + "\n", encoding="utf-8")
    place.cycle(later)
    rows = read()
    return [first, len(rows), len(set(rows))]


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
        learn(place)
        started = time.perf_counter()
        read, united, refreshed = place.cycle(NOW + timedelta(hours=number))
        report[delivery.name] = {
            "seconds": round(time.perf_counter() - started, 1),
            "read": asdict(read),
            "united": asdict(united) | {"lags": united.lag_seconds()},
            "refreshed": [asdict(one) for one in refreshed],
        }
        dump(place, out / delivery.name)
    if engine["name"] != "spark":  # there a rebuild is what the first cycle was, and takes minutes
        for mart in MARTS:
            rebuild(place.warehouse, mart)
        dump(place, out / "rebuilt")
    report["answers"] = {name: answer(place.warehouse.spark, query) for name, query in (AVOIDED | RELIED_ON).items()}
    if engine["name"] == "spark":
        make_spark_tables(place, out / "made")
        report["streamed"] = stream_union(place, out / "streamed")
    (out / "report.json").write_text(json.dumps(report, indent=1, default=str), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], *(Path(argument) for argument in sys.argv[2:5]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # the embedded server would be waited for
