"""Baseline (b), the floor of Apache Spark: one job that reads the new files of all logs and appends them."""

from __future__ import annotations

from benchmarks.common import arguments, new_files, save_marks, spark_session


def main() -> None:
    """One cycle: read what came since the last one, append it to `<out>/all_events`."""
    logs, out = arguments(__doc__)
    files, versions = new_files(logs, out / "versions.json")
    spark = spark_session("baseline_b")
    if files:
        spark.read.parquet(*files).write.format("delta").mode("append").save(str(out / "all_events"))
    save_marks(out / "versions.json", versions)
    spark.stop()


if __name__ == "__main__":
    main()
