"""Dirty values made typed ones (section "dirty values" of docs/event_log.md). Unreadable is None, never a guess."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

INT64_MAX = 2**63 - 1
_EPOCH = date(1970, 1, 1).toordinal()
FIRST_MICROS = (1 - _EPOCH) * 86_400_000_000  # the years 1 to 9999: what every engine can hold
LAST_MICROS = (date.max.toordinal() + 1 - _EPOCH) * 86_400_000_000 - 1
_INT = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?")
_TIME = re.compile(
    r"\s*(\d{4}[-/]\d\d[-/]\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?\s*(?:([Zz])|([+-])(\d\d):?(\d\d)?)?\s*"
)


class Micros(int):
    """An instant that is already known to be microseconds since the epoch (a typed column of a table)."""


class Instant(NamedTuple):
    """Microseconds since the epoch, UTC; `assumed_utc` if the text gave no zone."""

    micros: int
    assumed_utc: bool = False


def to_int(value: Any) -> int | None:
    """A BIGINT, or None. Plain digits never pass through a double; `"1200.0"` and `4.79E8` are integers too."""
    kind = type(value)
    if kind is int:
        number = value
    elif kind is float:
        if not isfinite(value) or value != int(value):
            return None
        number = int(value)
    elif kind is str:
        text = value.strip()
        if not text or len(text) > 64:
            return None
        if _INT.fullmatch(text):
            number = int(text)
        elif _NUMBER.fullmatch(text):
            exact = Decimal(text)
            # The exponent is bounded before the number is expanded: "1e999999999" must not fill the memory.
            if exact.adjusted() > 19 or exact != exact.to_integral_value():
                return None
            number = int(exact)
        else:
            return None
    else:
        return None
    return number if -INT64_MAX - 1 <= number <= INT64_MAX else None


def to_count(value: Any) -> int | None:
    """A counter: like `to_int`, and None for negatives (−1 is the vendor's "unknown")."""
    number = to_int(value) if type(value) is not int or value > INT64_MAX else value
    return None if number is None or number < 0 else number


def to_double(value: Any) -> float | None:
    """A finite DOUBLE from a number or its text, or None."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    text = value.strip() if isinstance(value, str) else repr(value)
    if len(text) > 64 or not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if isfinite(number) else None


def to_bool(value: Any) -> bool | None:
    """true/false in any case, 1/0, as value or text; anything else None."""
    if value is True or value is False:
        return value
    if isinstance(value, (int, float)):
        return True if value == 1 else False if value == 0 else None
    if isinstance(value, str):
        return {"true": True, "1": True, "false": False, "0": False}.get(value.strip().lower())
    return None


def to_text(value: Any) -> str | None:
    """Text as it is; numbers and booleans as JSON writes them; None for null and containers."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else None


def to_id(value: Any) -> str | None:
    """An id: trimmed text, None for the empty one."""
    text = value if type(value) is str else to_text(value)
    return (text.strip() or None) if text is not None else None


def to_instant(value: Any) -> Instant | None:
    """RFC 3339 and its relatives, or epoch numbers told apart by magnitude; None if it is no time."""
    if type(value) is Micros:
        return Instant(value) if FIRST_MICROS <= value <= LAST_MICROS else None
    if type(value) is str:
        match = _TIME.fullmatch(value)
        if match:
            return _from_parts(match)
        value = to_int(value) if len(value) > 64 or "." not in value else _decimal(value.strip())
    elif isinstance(value, float):
        value = _decimal(repr(value))
    if type(value) not in (int, Decimal) or value <= 0:
        return None
    for limit, factor in ((10**11, 1_000_000), (10**14, 1000), (10**17, 1)):  # seconds, milliseconds, microseconds
        if value < limit:
            return Instant(int(value * factor))
    return None


def _decimal(text: str) -> Decimal | None:
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def from_millis(value: Any) -> Instant | None:
    """Epoch milliseconds of a field that says so (`timestamp_ms`)."""
    millis = to_int(value)
    return Instant(millis * 1000) if millis is not None and 0 < millis < 10**14 else None


@lru_cache(maxsize=4096)
def _day_micros(text: str) -> int | None:
    try:
        return (date(int(text[:4]), int(text[5:7]), int(text[8:10])).toordinal() - _EPOCH) * 86_400_000_000
    except ValueError:
        return None


def _from_parts(match: re.Match[str]) -> Instant | None:
    day, hour, minute, second, fraction, zulu, sign, off_hours, off_minutes = match.groups()
    base = _day_micros(day)
    hours, minutes, seconds = int(hour), int(minute), int(second)
    if base is None or hours > 23 or minutes > 59 or seconds > 59:
        return None
    micros = base + ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
    if fraction:
        micros += int(fraction[:6].ljust(6, "0"))
    if zulu:
        return Instant(micros)
    if sign is None:
        return Instant(micros, assumed_utc=True)
    if int(off_hours) > 23 or int(off_minutes or 0) > 59:
        return None
    offset = (int(off_hours) * 60 + int(off_minutes or 0)) * 60_000_000
    micros = micros - offset if sign == "+" else micros + offset
    return Instant(micros) if FIRST_MICROS <= micros <= LAST_MICROS else None


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Arrays as they are, a single object as one element, anything else as none."""
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


def as_objects(value: Any) -> list[dict[str, Any]]:
    """The objects of an array, or a single one; what is no object is left out."""
    return [item for item in as_list(value) if isinstance(item, dict)]
