"""event_log.md 9: dirty values become typed ones, what cannot be read is None and never a guess."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitoring_platform.event_log.values import (
    Instant,
    Micros,
    from_millis,
    to_bool,
    to_count,
    to_id,
    to_instant,
    to_int,
    to_text,
)

MAX, MIN = 9223372036854775807, -9223372036854775808
NEW_YEAR = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z in microseconds
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.from_regex(r"[-+0-9eE.:TZ/ ]{1,40}"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


# Booleans


@pytest.mark.parametrize("value", [True, "true", "TRUE", "True", " true ", 1, 1.0, "1"])
def test_true(value: Any) -> None:
    """event_log.md 9, quirk 16: true in any case, 1 and "1"."""
    assert to_bool(value) is True


@pytest.mark.parametrize("value", [False, "false", "FALSE", "False", 0, 0.0, "0"])
def test_false(value: Any) -> None:
    """event_log.md 9, quirk 16: false in any case, 0 and "0"."""
    assert to_bool(value) is False


@pytest.mark.parametrize("value", [None, "", "yes", "no", "t", 2, -1, 0.5, "1.0", [], {}, [True], float("nan")])
def test_unknown_is_not_false(value: Any) -> None:
    """event_log.md ground rule 2: anything else is unknown."""
    assert to_bool(value) is None


# Integers


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (0, 0),
        (MAX, MAX),
        (MIN, MIN),
        ("9223372036854775807", MAX),
        ("-9223372036854775808", MIN),
        ("9007199254740993", 9007199254740993),  # 2^53 + 1: a double would say …992
        ("1234567890123456", 1234567890123456),
        (" 42 ", 42),
        ("+42", 42),
        ("007", 7),
        (4.79e8, 479_000_000),
        ("4.79E8", 479_000_000),
        ("1200.0", 1200),
        ("12e2", 1200),
        ("9223372036854775807.0", MAX),
        (-1, -1),
    ],
)
def test_integer(value: Any, number: int) -> None:
    """event_log.md 9: numbers, digits in text, integral floats; plain digits never pass through a double."""
    assert to_int(value) == number


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            "",
            " ",
            "abc",
            "12 rows",
            "1_000",
            "0x10",
            "1,000",
            "--1",
            "1.5",
            1.5,
            True,
            False,
            {},
            [],
            [1],
            {"a": 1},
        ),
        *(MAX + 1, MIN - 1, "9223372036854775808", "-9223372036854775809", 2.0**63, "1e19", "9" * 500),
        *(float("nan"), float("inf"), "NaN", "Infinity", "-inf"),
    ],
)
def test_no_integer(value: Any) -> None:
    """event_log.md 9: `{}`, "", text, fractions and values beyond int64 are null."""
    assert to_int(value) is None


@pytest.mark.parametrize("text", ["1e999999999", "-1e999999999", "1e-999999999", "1e99999999999999999999", "9" * 10**6])
def test_huge_exponent_is_refused_at_once(text: str) -> None:
    """event_log.md 9: a short text must not become a number of gigabytes."""
    begin = time.perf_counter()
    assert to_int(text) is None
    assert to_instant(text) is None
    assert time.perf_counter() - begin < 1


@pytest.mark.parametrize(("value", "count"), [(0, 0), ("7", 7), (-1, None), ("-1", None), (-5, None), ({}, None)])
def test_negative_counter_is_unknown(value: Any, count: int | None) -> None:
    """event_log.md 9: −1 is the vendor's "unknown"; absent is not zero."""
    assert to_count(value) == count


@given(st.integers(MIN, MAX))
def test_int64_round_trips(number: int) -> None:
    """event_log.md 9: every BIGINT survives as number and as text."""
    assert to_int(number) == to_int(str(number)) == to_int(f" {number}\n") == to_int(f"{number}.0") == number


# Text and ids


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        (" a ", " a "),
        (True, "true"),
        (False, "false"),
        (5, "5"),
        (1.5, "1.5"),
        (None, None),
        ({}, None),
        ([], None),
    ],
)
def test_text(value: Any, text: str | None) -> None:
    """event_log.md 9: text as it is, scalars as JSON writes them, containers are no text."""
    assert to_text(value) == text


@pytest.mark.parametrize(("value", "text"), [(" a-1 ", "a-1"), ("", None), (" \t", None), (17, "17"), ({}, None)])
def test_id(value: Any, text: str | None) -> None:
    """event_log.md 9: ids are trimmed, the empty id is null."""
    assert to_id(value) == text


# Times


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01t00:00:00z",
        "2026-01-01 00:00:00Z",
        " 2026-01-01T00:00:00.000Z ",
        "2026-01-01T00:00:00+0000",
        "2026-01-01T00:00:00+00:00",
        "2026-01-01T00:00:00-00",
        "2026-01-01T05:30:00+05:30",
        "2026-01-01T05:30:00+0530",
        "2025-12-31T16:00:00-08:00",
        "2026-01-01 00:00:00 +0000",
    ],
)
def test_time_with_zone(text: str) -> None:
    """event_log.md 9, quirk 18: RFC 3339 with Z or offset, `+0000`, a blank instead of T."""
    assert to_instant(text) == Instant(NEW_YEAR, assumed_utc=False)


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00", "2026-01-01 00:00:00.000", "2026/01/01 00:00:00", "2026/01/01T00:00:00"]
)
def test_time_without_zone_is_taken_as_utc(text: str) -> None:
    """event_log.md 9: no zone, or slashes: UTC, and said to be assumed."""
    assert to_instant(text) == Instant(NEW_YEAR, assumed_utc=True)


@pytest.mark.parametrize(
    ("fraction", "micros"),
    [
        ("", 0),
        (".1", 100_000),
        (".12", 120_000),
        (".123", 123_000),
        (".1234", 123_400),
        (".12345", 123_450),
        (".123456", 123_456),
        (".1234567", 123_456),
        (".12345678", 123_456),
        (".999999999", 999_999),
    ],
)
def test_fraction_is_cut_to_microseconds(fraction: str, micros: int) -> None:
    """event_log.md 9: 0 to 9 digits; cut, not rounded, so that no event moves into the next second."""
    assert to_instant(f"2026-01-01T00:00:00{fraction}Z") == Instant(NEW_YEAR + micros)


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        (1_767_225_600, NEW_YEAR),
        ("1767225600", NEW_YEAR),
        (1_767_225_600_000, NEW_YEAR),
        ("1767225600000", NEW_YEAR),
        (" 1767225600000 ", NEW_YEAR),
        (1_767_225_600_000_000, NEW_YEAR),
        (1_767_225_600_000.0, NEW_YEAR),
        (1.7672256e9, NEW_YEAR),
        (1_767_225_600.25, NEW_YEAR + 250_000),
        ("1767225600.123456", NEW_YEAR + 123_456),
        ("1767225600123.5", NEW_YEAR + 123_500),
        (99_999_999_999, 99_999_999_999_000_000),  # the last second that is no millisecond: the year 5138
        (100_000_000_000, 100_000_000_000_000),  # the first millisecond: 1973
    ],
)
def test_epoch_is_told_apart_by_magnitude(value: Any, micros: int) -> None:
    """event_log.md 9: seconds next to milliseconds, as number and as text; the fraction is not lost."""
    assert to_instant(value) == Instant(micros)


@pytest.mark.parametrize(
    "value",
    [
        *(None, "", " ", "string", "yesterday", "2026-01-01", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z"),
        *("2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z", "2026-01-01T00:00:00.1234567890Z"),
        *("2026-01-01T00:00:00+24:00", "2026-01-01T00:00:00+01:60", "0000-01-01T00:00:00Z"),
        *("0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"),  # outside the years that engines can hold
        *(
            0,
            -1,
            -1_767_225_600,
            10**18,
            "-1767225600",
            True,
            False,
            {},
            [],
            [1_767_225_600],
            float("nan"),
            float("inf"),
        ),
    ],
)
def test_no_time(value: Any) -> None:
    """event_log.md 9: what is no time is no time, however much it looks like one."""
    assert to_instant(value) is None


def test_typed_time_is_exact() -> None:
    """R-UNI-04: a TIMESTAMP column is taken as it is, also before 1970, when a number would be refused."""
    assert to_instant(Micros(-1)) == Instant(-1)
    assert to_instant(Micros(NEW_YEAR)) == Instant(NEW_YEAR)
    assert to_instant(Micros(10**18)) is None  # the year 33658


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        (1_767_225_600_000, NEW_YEAR),
        ("1767225600000", NEW_YEAR),
        (1, 1000),
        (0, None),
        ({}, None),
        ("x", None),
        (10**15, None),
    ],
)
def test_timestamp_ms(value: Any, micros: int | None) -> None:
    """event_log.md 9: the field `timestamp_ms` says its unit; magnitude is not asked."""
    instant = from_millis(value)
    assert (instant and instant.micros) == micros


@given(
    st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29)),
    st.integers(-14 * 60, 14 * 60),
    st.sampled_from("Tt "),
    st.booleans(),
    st.integers(0, 999),
)
def test_any_offset_is_the_same_instant(utc: datetime, offset: int, between: str, colon: bool, nanos: int) -> None:
    """event_log.md ground rule 3: one instant, however it is written."""
    local = utc + timedelta(minutes=offset)
    hours, minutes = divmod(abs(offset), 60)
    zone = f"{'-' if offset < 0 else '+'}{hours:02d}{':' if colon else ''}{minutes:02d}"
    fraction = f"{local.microsecond:06d}{nanos:03d}"
    date = f"{local.year:04d}-{local:%m-%d}"
    text = f"{date}{between}{local:%H:%M:%S}.{fraction}{zone}"
    micros = (utc.replace(tzinfo=timezone.utc) - EPOCH) // timedelta(microseconds=1)
    assert to_instant(text) == Instant(micros)


@given(JSON)
def test_any_json_is_survived(value: Any) -> None:
    """event_log.md 11: no value of any shape raises, and results have the type they promise."""
    assert to_int(value) is None or MIN <= to_int(value) <= MAX  # type: ignore[operator]
    assert to_count(value) is None or to_count(value) >= 0  # type: ignore[operator]
    assert to_bool(value) in (None, True, False)
    assert isinstance(to_text(value), (str, type(None)))
    assert to_id(value) != ""
    assert isinstance(to_instant(value), (Instant, type(None)))
    assert isinstance(from_millis(value), (Instant, type(None)))
