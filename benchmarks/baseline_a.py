"""Baseline (a), the usual solution on Apache Spark: one stream per pipeline into one table, then a full recompute.

Each pipeline's log is an `availableNow` stream with its own checkpoint, ten at a time, all appending to
`<out>/all_events`; `<out>/events_summary` is then recomputed from the whole table.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.common import arguments, log_folders, spark_session

STREAMS_AT_ONCE = 10

PROGRESS = """
    status STRING,
    metrics STRUCT<num_output_rows: BIGINT, num_upserted_rows: BIGINT, num_deleted_rows: BIGINT>,
    data_quality STRUCT<dropped_records: BIGINT,
        expectations: ARRAY<STRUCT<name: STRING, dataset: STRING, passed_records: BIGINT, failed_records: BIGINT>>>
"""

SUMMARY = f"""
WITH parsed AS (
    SELECT
        pipeline_id, pipeline_name, update_id, timestamp, event_type, level,
        CASE WHEN event_type = 'update_progress' THEN get_json_object(details, '$.update_progress.state') END AS state,
        CASE WHEN event_type = 'create_update' THEN get_json_object(details, '$.create_update.cause') END AS cause,
        CASE WHEN event_type = 'flow_progress'
             THEN from_json(details, 'flow_progress STRUCT<{PROGRESS}>').flow_progress END AS flow
    FROM events
    WHERE update_id IS NOT NULL
)
SELECT
    pipeline_id,
    max(pipeline_name) AS pipeline_name,
    update_id,
    max_by(state, timestamp) FILTER (WHERE state IS NOT NULL) AS run_status,
    max(cause) AS trigger_cause,
    min(timestamp) AS run_start_time,
    max(timestamp) FILTER (WHERE state IN ('COMPLETED', 'FAILED', 'CANCELED')) AS run_end_time,
    count_if(level = 'ERROR') AS errors,
    sum(flow.metrics.num_output_rows) AS output_rows,
    sum(flow.metrics.num_upserted_rows) AS upserted_rows,
    sum(flow.metrics.num_deleted_rows) AS deleted_rows,
    sum(flow.data_quality.dropped_records) AS dropped_records,
    sum(aggregate(flow.data_quality.expectations, 0L, (total, rule) -> total + rule.passed_records)) AS passed_records,
    sum(aggregate(flow.data_quality.expectations, 0L, (total, rule) -> total + rule.failed_records)) AS failed_records
FROM parsed
GROUP BY pipeline_id, update_id
"""


def normalised(events: DataFrame) -> DataFrame:
    """The log's columns with the ids that everything is grouped by in front."""
    return events.select(
        F.col("origin.pipeline_id").alias("pipeline_id"),
        F.col("origin.update_id").alias("update_id"),
        F.col("origin.pipeline_name").alias("pipeline_name"),
        F.current_timestamp().alias("_ingested_at"),
        "*",
    )


def create_target(spark: SparkSession, sample: Path, target: Path) -> None:
    """Create the common table before the streams start, for they cannot do it at the same time."""
    if not (target / "_delta_log").exists():
        empty = normalised(spark.read.format("delta").load(str(sample))).limit(0)
        empty.write.format("delta").save(str(target))


def run_stream(spark: SparkSession, out: Path, target: Path, log: Path) -> None:
    """Append what is new in one log to the common table."""
    query = (
        normalised(spark.readStream.format("delta").load(str(log)))
        .writeStream.format("delta")
        .option("checkpointLocation", str(out / "checkpoints" / log.name))
        .trigger(availableNow=True)
        .start(str(target))
    )
    query.awaitTermination()


def recompute_summary(spark: SparkSession, out: Path, target: Path) -> None:
    """Rebuild the summary from all events."""
    spark.read.format("delta").load(str(target)).createOrReplaceTempView("events")
    spark.sql(SUMMARY).write.format("delta").mode("overwrite").save(str(out / "events_summary"))


def main() -> None:
    """One cycle: all streams, then the summary."""
    logs, out = arguments(__doc__)
    folders, target = log_folders(logs), out / "all_events"
    spark = spark_session("baseline_a")
    create_target(spark, folders[0], target)
    with ThreadPoolExecutor(STREAMS_AT_ONCE) as pool:
        list(pool.map(partial(run_stream, spark, out, target), folders))
    recompute_summary(spark, out, target)
    spark.stop()


if __name__ == "__main__":
    main()
