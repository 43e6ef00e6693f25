"""Checks on Spark's DataFrames: one aggregate for all of them, or none where it can be taken during a write.

During a write the checks are observation metrics, where the engine surely has them (Apache Spark in this process and
Databricks; not the embedded engine). A check of uniqueness cannot be observed, and what decides whether to write has to
be known before: then one aggregate runs first, on a frame that is kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from monitoring_platform.event_log.redact import redact_value
from monitoring_platform.recording.checks import Check, Result
from monitoring_platform.recording.store import is_path

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FAILED_CHECKS = "failed_checks"
_MOST_SAMPLES, _SHOWN = 100, 200  # rows, and characters of a value
LastCount = Callable[[str], "int | None"]


class Written(NamedTuple):
    """What a write did; both parts together are the frame."""

    rows_in: int
    rows_quarantined: int
    has_quarantine: bool
    results: list[Result]


def evaluate(frame: DataFrame, checks: Sequence[Check], now: datetime, last_count: LastCount) -> list[Result]:
    """All checks in one pass over the frame."""
    joined = _with_references(frame, checks)
    return _judged(frame, checks, _aggregated(joined, checks), now, last_count)


def sampled(frame: DataFrame, results: Sequence[Result], most: int) -> list[dict[str, Any]]:
    """Rows that failed a check of rows, at most so many and 100: their values, redacted, and `failed_checks`.

    One more look at the frame, which ends when it has found them, and none where nothing failed.
    """
    from pyspark.sql import functions as F

    checks = [result.check for result in results]
    if not (most and any(result.rows_failed for result in results if result.check.is_of_rows)):
        return []
    places = [place for place, check in enumerate(checks) if check.is_of_rows]
    names = F.concat_ws(", ", *(F.when(_condition(checks[p], p), F.lit(checks[p].name)) for p in places))
    columns = [f"`{column}`" for column in frame.columns if column.lower() != _FAILED_CHECKS]
    failed = (
        _with_references(frame, checks).select(*columns, names.alias(_FAILED_CHECKS)).where(f"{_FAILED_CHECKS} > ''")
    )
    return [_shown(row.asDict(recursive=True)) for row in failed.limit(min(most, _MOST_SAMPLES)).collect()]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Values as JSON can hold them, none of them long."""
    plain = (bool, int, float, type(None))
    return {n: v if isinstance(v, plain) else str(v)[:_SHOWN] for n, v in redact_value(row).items()}


def write(
    frame: DataFrame,
    target: str,
    checks: Sequence[Check],
    now: datetime,
    last_count: LastCount,
    *,
    run_id: str,
    mode: str,
    options: dict[str, str],
    judge: Callable[[list[Result]], None],
) -> Written:
    """Write the frame, the rows of quarantine apart. `judge` gets the results and may raise, before if it has to."""
    has_quarantine = any(check.quarantine for check in checks)
    is_before = not _can_observe(frame) or any(check.action == "fail" or check.key for check in checks)
    joined = _with_references(frame, checks)
    is_kept = (is_before or has_quarantine) and _can_persist(joined)
    kept = joined.persist() if is_kept else joined
    try:
        if is_before:
            counts = _aggregated(kept, checks)
            results = _judged(frame, checks, counts, now, last_count)
            judge(results)
            _save(_good(kept, checks, frame.columns), target, mode, options)
        else:
            counts = _observed_write(kept, checks, frame.columns, target, mode, options)
            results = _judged(frame, checks, counts, now, last_count)
            judge(results)
        bad = counts.get("bad", 0)
        if bad:
            _save(_bad(kept, checks, frame.columns, run_id), f"{target}_quarantine", "append", options)
    finally:
        if is_kept:
            kept.unpersist()
    return Written(counts["n"], bad, has_quarantine, results)


def _observed_write(
    frame: DataFrame, checks: Sequence[Check], columns: list[str], target: str, mode: str, options: dict[str, str]
) -> dict[str, Any]:
    from pyspark.sql import Observation

    seen = Observation()
    first, *rest = _measures(checks)
    _save(_good(frame.observe(seen, first, *rest), checks, columns), target, mode, options)
    return dict(seen.get)


def _aggregated(frame: DataFrame, checks: Sequence[Check]) -> dict[str, Any]:
    first, *rest = _measures(checks)
    row = frame.agg(first, *rest).collect()[0]
    return dict(row.asDict())


def _measures(checks: Sequence[Check]) -> list[Column]:
    """What one pass counts: the rows, those for quarantine, and of each check the rows that fail and are unknown.

    Each count costs time for each row, above all when it is observed: checks of one column share that of its nulls.
    """
    from pyspark.sql import functions as F

    def count(condition: Column) -> Column:
        return F.count(F.when(condition, F.lit(1)))

    found = {"n": F.count(F.lit(1))}
    if any(check.quarantine for check in checks):
        found["bad"] = count(_is_bad(checks))
    for place, check in enumerate(checks):
        if check.is_of_rows:
            condition = _condition(check, place)
            if check.nulls != "any":
                found[_nulls(check)] = count(F.col(check.column).isNull())
            if check.nulls != "fail":
                found[f"failed_{place}"] = count(condition)
            if check.nulls == "any":
                found[f"unknown_{place}"] = count(condition.isNull())
        elif check.key:
            has_all = F.lit(True)
            for column in check.key:
                has_all = has_all & F.col(column).isNotNull()
            key = F.when(has_all, F.struct(*(F.col(column) for column in check.key)))
            found |= {f"unknown_{place}": count(~has_all), f"distinct_{place}": F.count_distinct(key)}
        elif check.max_age_hours is not None:
            found[f"newest_{place}"] = F.max(F.unix_micros(F.col(check.column).cast("timestamp")))
    return [measure.alias(name) for name, measure in found.items()]


def _nulls(check: Check) -> str:
    return f"nulls_{check.column}"


def _condition(check: Check, place: int) -> Column:
    """True for rows that fail, null for those of which it is not known."""
    from pyspark.sql import functions as F

    if check.condition is not None:
        return check.condition(F)
    return F.when(F.col(check.column).isNotNull(), F.col(_mark(place)).isNull())


def _is_bad(checks: Sequence[Check]) -> Column:
    """Whether a row is for quarantine: some check does not know it to be good."""
    from pyspark.sql import functions as F

    bad = F.lit(False)
    for place, check in enumerate(checks):
        if check.quarantine:
            bad = bad | F.coalesce(_condition(check, place), F.lit(True))
    return bad


def _good(frame: DataFrame, checks: Sequence[Check], columns: list[str]) -> DataFrame:
    wanted = frame.where(~_is_bad(checks)) if any(check.quarantine for check in checks) else frame
    return wanted.select(*(f"`{column}`" for column in columns))


def _bad(frame: DataFrame, checks: Sequence[Check], columns: list[str], run_id: str) -> DataFrame:
    from pyspark.sql import functions as F

    names = [
        F.when(F.coalesce(_condition(check, place), F.lit(True)), F.lit(check.name))
        for place, check in enumerate(checks)
        if check.quarantine
    ]
    added = {
        "quality_flag": F.lit("fail"),
        _FAILED_CHECKS: F.concat_ws(", ", *names),
        "run_id": F.lit(run_id),
    }
    return frame.where(_is_bad(checks)).select(
        *(f"`{column}`" for column in columns if column.lower() not in added),
        *(value.alias(name) for name, value in added.items()),
    )


def _mark(place: int) -> str:
    return f"__found_{place}"


def _with_references(frame: DataFrame, checks: Sequence[Check]) -> DataFrame:
    """The frame with a mark for each reference that is there. The other side has each key once: no row is doubled."""
    from pyspark.sql import functions as F

    for place, check in enumerate(checks):
        if check.reference is not None:
            other, column = check.reference
            key = f"__key_{place}"
            keys = other.select(F.col(column).alias(key)).where(F.col(key).isNotNull()).distinct()
            found = F.broadcast(keys.withColumn(_mark(place), F.lit(True)))
            frame = frame.join(found, F.col(check.column) == F.col(key), "left").drop(key)
    return frame


def _judged(
    frame: DataFrame, checks: Sequence[Check], counts: dict[str, Any], now: datetime, last_count: LastCount
) -> list[Result]:
    return [_judge(frame, check, place, counts, now, last_count) for place, check in enumerate(checks)]


def _judge(
    frame: DataFrame, check: Check, place: int, counts: dict[str, Any], now: datetime, last_count: LastCount
) -> Result:
    n, note = int(counts["n"]), None
    unknown = int(counts.get(_nulls(check) if check.nulls == "unknown" else f"unknown_{place}", 0))
    failed: int | None
    pct: float | None
    if check.is_of_rows or check.key:
        if check.key:
            failed = n - unknown - int(counts[f"distinct_{place}"])
        else:
            failed = int(counts[_nulls(check) if check.nulls == "fail" else f"failed_{place}"])
        pct = 100 * failed / n if n else 0.0
        note = "no rows" if not n else f"{unknown} rows could not be judged: no value" if unknown else None
    elif check.kind == "volume_check":
        failed, pct = _out_of_bounds(n, check.minimum, check.maximum)
    elif check.kind == "volume_change_check":
        before = last_count(check.name)
        failed = None if before is None else abs(n - before)
        pct = None if failed is None else 100 * failed / before if before else 100.0 * bool(n)
        note = "no earlier run to compare with" if before is None else f"{before} rows in the last run"
    elif check.max_age_hours is not None:
        newest = counts[f"newest_{place}"]
        at = None if newest is None else _EPOCH + timedelta(microseconds=newest)
        is_old = at is None or now - at > timedelta(hours=check.max_age_hours)
        failed, pct, note = None, 100.0 * is_old, f"newest: {at.isoformat() if at else 'none'}"
    else:
        there = dict(frame.dtypes)
        wrong = [f"{name} {there.get(name, 'missing')}" for name, type in (check.columns or {}).items()
                 if there.get(name) != type]  # fmt: skip
        failed, pct, note = None, 100.0 * bool(wrong), ", ".join(wrong) or None
    return Result(check, now, n, failed, unknown, pct, pct is None or pct <= check.threshold_pct, note)


def _out_of_bounds(n: int, minimum: int | None, maximum: int | None) -> tuple[int, float]:
    """How many rows are missing or too many, and what share that is of the limit."""
    limit = minimum if minimum is not None and n < minimum else maximum if maximum is not None and n > maximum else n
    off = abs(n - limit)
    return off, 100 * off / limit if limit else 100.0 * bool(off)


def _save(frame: DataFrame, target: str, mode: str, options: dict[str, str]) -> None:
    writer = frame.write.format("delta").mode(mode).options(**options)
    writer.save(target) if is_path(target) else writer.saveAsTable(target)


def _is_classic(frame: DataFrame) -> bool:
    return not type(frame).__module__.startswith("pyspark.sql.connect")


def _can_observe(frame: DataFrame) -> bool:
    return _is_classic(frame) or "DATABRICKS_RUNTIME_VERSION" in os.environ


def _can_persist(frame: DataFrame) -> bool:
    """Serverless compute keeps nothing, and the embedded engine has no need: there the frame is computed twice.

    A frame that the job keeps itself is kept already, and stays so.
    """
    return _is_classic(frame) and not (frame.storageLevel.useMemory or frame.storageLevel.useDisk)
