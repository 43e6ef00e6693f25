"""A plain PySpark job under monitoring: bronze → silver with quarantine → gold, checks, a target, an alert.

    python examples/orders_job.py ./orders            # a run that succeeds, with three rows in quarantine
    python examples/orders_job.py ./orders --twice    # order 10 comes twice: the run fails before silver is written

Then let the platform read `./orders/records`:

    sources:
      - {type: jobs, path: ./orders/records}
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from monitoring_platform.recording import Report, Run, in_range, in_set, monitored_run, not_null, row_count, unique
from monitoring_platform.recording.run import utc_now

Order = tuple[int, "str | None", "float | None", str]
ORDERS: list[Order] = [
    (1, "anna", 20.0, "paid"),
    (2, "anna", 30.0, "paid"),
    (3, "ben", 15.5, "paid"),
    (4, None, 9.0, "paid"),  # no customer: quarantine
    (5, "ben", -4.0, "paid"),  # an amount that cannot be: quarantine
    (6, "cleo", None, "open"),  # nobody knows the amount: quarantine
    (7, "cleo", 12.0, "open"),
    (8, "dora", 50.0, "paid"),
    (9, "dora", 8.0, "sent"),  # a status that is new: counted, and let through
    (10, "anna", 5.0, "paid"),
]


def orders_job(
    spark: SparkSession,
    folder: Path,
    orders: Sequence[Order],
    alert: Callable[[Report], object] = lambda report: print(report.text),
    clock: Callable[[], datetime] = utc_now,
) -> Run:
    """One run. Raises ChecksFailed if an order comes twice."""
    with monitored_run(
        "gold_orders", folder / "records", pipeline_version="1.0", slo_target_minutes=10, alert=alert, clock=clock
    ) as run:
        # Each row says which run brought it: the next steps read what is new, not the whole table again.
        raw = spark.createDataFrame(list(orders), "order_id bigint, customer string, amount double, status string")
        run.write(raw.withColumn("run_id", F.lit(run.run_id)), f"{folder}/bronze_orders", [row_count(1, action="fail")])
        run.write(
            of_run(spark, folder / "bronze_orders", run),
            f"{folder}/silver_orders",
            [
                unique("order_id", action="fail"),
                not_null("customer", quarantine=True),
                in_range("amount", minimum=0.01, threshold_pct=20.0, quarantine=True),
                in_set("status", ["open", "paid"], threshold_pct=10.0, action="record"),
            ],
        )
        totals = of_run(spark, folder / "silver_orders", run).groupBy("customer").agg(F.sum("amount").alias("total"))
        run.write(totals, f"{folder}/gold_totals", [in_range("total", minimum=0.0)], mode="overwrite")
    return run


def of_run(spark: SparkSession, table: Path, run: Run) -> DataFrame:
    """Rows that this run brought."""
    return spark.read.format("delta").load(str(table)).where(F.col("run_id") == run.run_id)


if __name__ == "__main__":
    from monitoring_platform.config import Engine
    from monitoring_platform.warehouse.session import session

    twice = [ORDERS[-1]] if "--twice" in sys.argv else []
    orders_job(session(Engine()), Path(sys.argv[1]).absolute(), [*ORDERS, *twice])
