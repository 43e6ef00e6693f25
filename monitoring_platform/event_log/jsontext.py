"""JSON as logs deliver it: strict first and fast, lenient only where nothing is guessed."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import orjson

INVALID = (ValueError, RecursionError)


def loads(text: str | bytes) -> Any:
    """Parse JSON. Numbers beyond a double stay as their text; NaN and Infinity are no JSON.

    Raises ValueError (what is wrong, where) or RecursionError.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as strict:
        if "infinity" not in str(strict) and "surrogate" not in str(strict):
            raise
        lenient = text if isinstance(text, str) else text.decode()  # bytes that are no UTF-8 are a ValueError here too
        return json.loads(lenient, parse_float=_number, parse_constant=_refuse)


def dumps(value: Any) -> str:
    """Compact JSON text. Raises RecursionError for values nested too deep."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # integers beyond 64 bits, lone surrogates, more than 254 levels
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=str)


def canonical(value: Any) -> str:
    """JSON text that is the same for equal values, whatever the order of members. Raises RecursionError."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except TypeError:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True, default=str)


def _number(text: str) -> float | str:
    number = float(text)
    return number if isfinite(number) else text


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")
