"""Quality checks: what is asked of the rows of a DataFrame, and how the answer is judged. All of them fit in one pass.

A check of rows counts those for which its condition is true (they fail) and those for which it is null (unknown: their
value is missing). A check of the whole compares a number or a time. An empty frame fails no check of rows, with a note;
checks of the whole judge it like any other frame.

| check | fails | empty frame | null values |
| --- | --- | --- | --- |
| `not_null` | rows without a value | passes | fail |
| `unique` | rows beyond the first of their key | passes | keys with a null are unknown |
| `in_range`, `in_set`, `matches`, `refers_to` | rows with another value | passes | unknown |
| `fails_when` | rows for which its SQL condition is true | passes | unknown, where the condition is null |
| `row_count` | the rows that are missing or too many | counts 0 | count |
| `row_count_change` | the difference to the last run, in percent of that; passes if there was none | counts 0 | count |
| `fresh` | the newest time is too old | fails: there is no time | ignored |
| `has_schema` | a column is missing or of another type; needs no pass | as any | – |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from typing_extensions import Unpack

Severity = Literal["info", "warning", "error"]
Action = Literal["record", "warn", "fail"]


class ChecksFailed(Exception):
    """Checks whose action is `fail` failed, and nothing was written; `names` are theirs."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"[CHECKS_FAILED] {', '.join(names)}")
        self.names = tuple(names)


class Options(TypedDict, total=False):
    """What every check may be given."""

    name: str
    threshold_pct: float  # largest percentage that passes; by default 0
    severity: Severity
    action: Action  # record: only keep the result; warn (default): alert; fail: write nothing and fail the run
    quarantine: bool  # rows that it does not know to be good go to quarantine


@dataclass(frozen=True)
class Check:
    """One check. Make it with the functions of this module."""

    name: str
    column: str
    kind: str
    condition: Callable[[Any], Column] | None = None  # of pyspark.sql.functions; true for rows that fail
    #: What the rows without a value in the column, and no others of them, are; any = there is no such rule.
    nulls: Literal["fail", "unknown", "any"] = "any"
    key: tuple[str, ...] = ()  # columns that are unique together
    minimum: int | None = None
    maximum: int | None = None
    max_age_hours: float | None = None
    columns: Mapping[str, str] | None = None
    reference: tuple[DataFrame, str] | None = None
    threshold_pct: float = 0.0
    severity: Severity = "warning"
    action: Action = "warn"
    quarantine: bool = False

    def __post_init__(self) -> None:
        if self.quarantine and not self.is_of_rows:
            raise ValueError(f"{self.name}: only checks of single rows can put rows into quarantine")
        if not 0 <= self.threshold_pct <= 100 and self.kind != "volume_change_check":
            raise ValueError(f"{self.name}: threshold_pct must be between 0 and 100")

    @property
    def is_of_rows(self) -> bool:
        """Whether it judges each row by itself."""
        return self.condition is not None or self.reference is not None


class Result(NamedTuple):
    """What a check found."""

    check: Check
    checked_at: datetime
    rows_checked: int | None
    rows_failed: int | None
    rows_unknown: int
    failure_pct: float | None  # exact
    passed: bool
    note: str | None = None

    def row(self, run_id: str, pipeline_name: str) -> dict[str, Any]:
        """As a row of `pipeline_quality_checks`."""
        return {
            "run_id": run_id,
            "pipeline_name": pipeline_name,
            "checked_at": self.checked_at,
            "check_name": self.check.name,
            "column_name": self.check.column,
            "check_type": self.check.kind,
            "rows_checked": self.rows_checked,
            "rows_failed": self.rows_failed,
            "failure_pct": None if self.failure_pct is None else round(self.failure_pct, 4),
            "threshold_pct": float(self.check.threshold_pct),  # Spark takes no int for a double
            "passed": self.passed,
        }

    def expectation(self, dataset: str) -> dict[str, Any]:
        """As an event log tells it. Only checks of rows have counts of rows that passed and failed."""
        told: dict[str, Any] = {"name": self.check.name, "dataset": dataset}
        told |= {"failure_pct": self.failure_pct, "passed": self.passed}
        if self.rows_failed is None or self.rows_checked is None or not (self.check.is_of_rows or self.check.key):
            return {**told, "passed_records": int(self.passed), "failed_records": int(not self.passed)}
        passed = self.rows_checked - self.rows_failed - self.rows_unknown
        return {**told, "passed_records": passed, "failed_records": self.rows_failed}

    def extra(self) -> dict[str, Any]:
        """What that table has no column for."""
        check = self.check
        told = {"name": check.name, "severity": check.severity, "action": check.action}
        return {**told, "rows_unknown": self.rows_unknown, "note": self.note}


def not_null(column: str, **options: Unpack[Options]) -> Check:
    """The column has a value; with a threshold, in nearly all rows."""
    return _check(
        f"{column}_not_null",
        column,
        "null_check",
        options,
        condition=lambda F: F.col(column).isNull(),
        nulls="fail",
    )


def unique(*columns: str, **options: Unpack[Options]) -> Check:
    """No two rows agree in all these columns."""
    name = ", ".join(columns)
    return _check(f"{'_'.join(columns)}_unique", name, "unique_check", options, key=columns)


def in_range(column: str, minimum: Any = None, maximum: Any = None, **options: Unpack[Options]) -> Check:
    """The value lies between the two, both included; None = no limit. Raises ValueError without any limit."""
    if minimum is None and maximum is None:
        raise ValueError(f"in_range of {column} needs a minimum or a maximum")

    def condition(F: Any) -> Column:
        value = F.col(column)
        below = [value < F.lit(minimum)] if minimum is not None else []
        above = [value > F.lit(maximum)] if maximum is not None else []
        return reduce(or_, below + above)  # type: ignore[no-any-return]

    return _check(f"{column}_in_range", column, "range_check", options, condition=condition, nulls="unknown")


def in_set(column: str, values: Sequence[Any], **options: Unpack[Options]) -> Check:
    """The value is one of these. None among them changes nothing: rows without a value are unknown."""
    known = [value for value in values if value is not None]  # in SQL a null would make all other values unknown
    what: dict[str, Any] = {"condition": lambda F: ~F.col(column).isin(*known), "nulls": "unknown"}
    return _check(f"{column}_in_set", column, "set_check", options, **what)


def matches(column: str, pattern: str, **options: Unpack[Options]) -> Check:
    """The whole text matches a regular expression."""
    whole = f"^(?:{pattern})$"
    what: dict[str, Any] = {"condition": lambda F: ~F.col(column).rlike(whole), "nulls": "unknown"}
    return _check(f"{column}_matches", column, "pattern_check", options, **what)


def refers_to(column: str, other: DataFrame, other_column: str, **options: Unpack[Options]) -> Check:
    """The value is there in a column of another frame, which is joined in: it should be small enough to broadcast."""
    reference = other, other_column
    return _check(f"{column}_refers_to", column, "reference_check", options, reference=reference, nulls="unknown")


def fails_when(condition: str, column: str = "*", **options: Unpack[Options]) -> Check:
    """A condition of one's own in SQL, true for rows that fail, such as `amount < discount`; it is the name too."""
    return _check(condition, column, "sql_check", options, condition=lambda F: F.expr(condition))


def row_count(minimum: int | None = None, maximum: int | None = None, **options: Unpack[Options]) -> Check:
    """There are at least and at most so many rows. The threshold is in percent of the limit that is broken."""
    return _check("row_count", "*", "volume_check", options, minimum=minimum, maximum=maximum)


def row_count_change(max_pct: float, **options: Unpack[Options]) -> Check:
    """The number of rows differs from that of the last run by at most so many percent of it."""
    allowed: Options = {"threshold_pct": max_pct, **options}
    return _check("row_count_change", "*", "volume_change_check", allowed)


def fresh(column: str, hours: float, **options: Unpack[Options]) -> Check:
    """The newest time of the column is at most so old."""
    return _check(f"{column}_fresh", column, "freshness_check", options, max_age_hours=hours)


def has_schema(columns: Mapping[str, str], **options: Unpack[Options]) -> Check:
    """These columns are there, with these types as Spark spells them (`bigint`, `string`); others may be there too."""
    return _check("schema", "*", "schema_check", options, columns=dict(columns))


def _check(name: str, column: str, kind: str, options: Options, **what: Any) -> Check:
    return Check(**{"name": name, "column": column, "kind": kind, **what, **options})
