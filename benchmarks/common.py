"""What the baselines share: their command line, the Spark session, and what is new in a Delta log."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def arguments(description: str | None) -> tuple[Path, Path]:
    """`--logs` and `--out`, the two folders every baseline works on."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--logs", type=Path, required=True, help="folder of the Delta event logs")
    parser.add_argument("--out", type=Path, required=True, help="folder of the tables and marks that are written")
    known = parser.parse_args()
    return known.logs.resolve(), known.out.resolve()


def log_folders(logs: Path) -> list[Path]:
    """The Delta tables directly under `logs`."""
    return sorted(path.parent for path in logs.glob("*/_delta_log"))


def spark_session(name: str) -> SparkSession:
    """Apache Spark on two cores with Delta, tuned for small tables."""
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.appName(name)
        .master("local[2]")
        .config("spark.driver.memory", "8g")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.databricks.delta.snapshotPartitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.streaming.metricsEnabled", "false")
    )
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _added_since(table: Path, version: int) -> tuple[int, list[str]]:
    """(latest version, data files added after `version`) of a table that is only appended to and has no checkpoint."""
    commits = sorted((table / "_delta_log").glob("*.json"))
    files: list[str] = []
    for commit in commits[version + 1 :]:
        for line in commit.read_text().splitlines():
            action = json.loads(line)
            if "remove" in action:
                raise ValueError(f"{commit}: this baseline reads append-only logs")
            if "add" in action:
                files.append(str(table / action["add"]["path"]))
    return len(commits) - 1, files


def new_files(logs: Path, marks: Path) -> tuple[list[str], dict[str, int]]:
    """Files of all logs that came after the versions in `marks`, and the versions to save once they are written."""
    known: dict[str, int] = json.loads(marks.read_text()) if marks.exists() else {}
    files: list[str] = []
    versions: dict[str, int] = {}
    for table in log_folders(logs):
        versions[table.name], added = _added_since(table, known.get(table.name, -1))
        files += added
    return files, versions


def save_marks(marks: Path, versions: dict[str, int]) -> None:
    """Remember up to which version each log was read."""
    marks.parent.mkdir(parents=True, exist_ok=True)
    marks.write_text(json.dumps(versions))
