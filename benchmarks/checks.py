"""Quality checks and monitored runs on Apache Spark: what they cost.

    python -m benchmarks.checks --rows 10000000 --json checks.json

Times 20 checks in one pass against 20 pairs of separate counts, as the article makes them (R-OWN-09, E-37), and a write
in a monitored run with these checks against the plain write. Each is done in turn, several times; the medians count.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common import spark_session
from monitoring_platform.recording import Check, fails_when, in_range, in_set, matches, monitored_run, not_null
from monitoring_platform.recording.frames import evaluate
from monitoring_platform.recording.run import utc_now

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The 20 checks as conditions that are true for rows that fail; each as often as the others in both ways.
CONDITIONS = [
    *(f"{column} IS NULL" for column in ("order_id", "customer", "amount", "status", "discount")),
    "amount < 0", "amount > 1000", "discount < 0", "discount > 100", "order_id < 0",
    "status NOT IN ('paid', 'open')", "customer = ''", "NOT customer RLIKE '^c[0-9]+$'", "NOT status RLIKE '^[a-z]+$'",
    "discount > amount", "amount * 0.5 < discount AND status = 'open'", "length(customer) > 12",
    "amount - discount < 0", "status = 'open' AND amount = 0", "order_id % 1000003 = 1",
]  # fmt: skip


def checks() -> list[Check]:
    """The same 20 as checks: those of a ready-made kind, and the rest by their conditions."""
    ready = [
        *(not_null(column) for column in ("order_id", "customer", "amount", "status", "discount")),
        in_range("amount", minimum=0, name="amount_low"), in_range("amount", maximum=1000, name="amount_high"),
        in_range("discount", minimum=0, name="discount_low"), in_range("discount", maximum=100, name="discount_high"),
        in_range("order_id", minimum=0), in_set("status", ["paid", "open"]), fails_when("customer = ''"),
        matches("customer", "c[0-9]+"), matches("status", "[a-z]+"),
    ]  # fmt: skip
    return [*ready, *(fails_when(condition) for condition in CONDITIONS[len(ready) :])]


def orders(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    """Orders of a Delta table, filtered and with a derived column: what a job has in its hands before it writes.

    Without the filter Delta would answer the plain counts from its log, which it cannot for a transformed frame.
    """
    made = spark.range(rows).selectExpr(
        "id AS order_id",
        "concat('c', id % 100000) AS customer",
        "CASE WHEN id % 997 = 0 THEN NULL ELSE cast(id % 1100 AS double) END AS amount",
        "CASE WHEN id % 3 = 0 THEN 'open' WHEN id % 1009 = 0 THEN 'sent' ELSE 'paid' END AS status",
    )
    made.write.format("delta").save(f"{folder}/orders")
    return (
        spark.read.format("delta")
        .load(f"{folder}/orders")
        .where("order_id % 50 > 0")
        .selectExpr("*", "amount * 0.1 AS discount")
    )


def measured(rows: int, rounds: int) -> dict[str, Any]:
    """All figures, in seconds, and the two ratios."""
    spark = spark_session("checks")
    folder = Path(tempfile.mkdtemp(prefix="checks-"))
    try:
        frame, asked = orders(spark, folder, rows), checks()
        failed: dict[str, list[int]] = {}

        def one_pass() -> None:
            found = evaluate(frame, asked, utc_now(), lambda name: None)
            failed["one pass"] = [result.rows_failed or 0 for result in found]

        def pairs() -> None:
            found = [(frame.count(), frame.where(condition).count()) for condition in CONDITIONS]
            failed["pairs"] = [bad for _, bad in found]

        def plain_write() -> None:
            frame.write.format("delta").mode("overwrite").save(f"{folder}/plain")

        def monitored_write() -> None:
            with monitored_run("silver_orders", folder / "records") as run:
                run.write(frame, f"{folder}/monitored", asked, mode="overwrite")

        # What is compared takes turns, so that both see the same machine.
        compared = timed([one_pass, pairs], rounds) | timed([plain_write, monitored_write], 2 * rounds)
        if failed["one pass"] != failed["pairs"]:
            raise AssertionError(f"the two ways do not agree: {failed}")
        medians = {name: statistics.median(values) for name, values in compared.items()}
        return {
            "rows": rows,
            "checks": len(asked),
            "seconds": compared,
            "pairs_by_one_pass": medians["pairs"] / medians["one_pass"],
            "monitored_by_plain_write": medians["monitored_write"] / medians["plain_write"],
        }
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def timed(actions: list[Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each action in each round, after one round that does not count."""
    seconds: dict[str, list[float]] = {action.__name__: [] for action in actions}
    for turn in range(rounds + 1):
        for action in actions:
            begun = time.monotonic()
            action()
            if turn:
                seconds[action.__name__].append(round(time.monotonic() - begun, 3))
    return seconds


def main() -> None:
    """Measure and print; `--json` also writes a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the frame (10,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count (3; writes twice as many)")
    parser.add_argument("--json", type=Path, help="file for the result")
    given = parser.parse_args()
    result = measured(given.rows, given.rounds)
    print(json.dumps(result, indent=2))
    if given.json:
        given.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
