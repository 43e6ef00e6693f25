"""The filters that the service understands, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.workspace.refusal import invalid
from tests.workspace.shapes import Json, instant

Keeps = Callable[[Json], bool]

_COMPARISON = re.compile(r"(\w+)\s*(=|!=|<>|>=|<=|>|<|(?:NOT\s+)?\b(?:IN|LIKE)\b)\s*", re.I)
_TEXT = re.compile(r"'((?:[^'\\]|\\.|'')*)'")
_TEXTS = re.compile(r"\(\s*'[^']*'(?:\s*,\s*'[^']*')*\s*\)")
_LEVELS = {"INFO", "WARN", "ERROR", "METRICS"}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
}


def events(text: str | None) -> Keeps:
    """`level` = or in, `id` =, `timestamp` compared with a time; combined with AND."""
    if text is None:
        return lambda event: True
    tests: list[Keeps] = []
    rest = text.strip()
    while rest:
        found = _COMPARISON.match(rest)
        if found is None:
            raise invalid(f"Failed to parse filter: {text}")
        column, operator = found[1].lower(), found[2].upper()
        rest = rest[found.end() :]
        values = (_TEXTS if operator == "IN" else _TEXT).match(rest)
        if values is None:
            raise invalid(f"Failed to parse filter: {text}")
        tests.append(_test(column, operator, [one[0] for one in _TEXT.finditer(values[0])], found[1]))
        rest = rest[values.end() :].strip()
        if rest:
            if not re.match(r"AND\s", rest, re.I):
                raise invalid(f"Failed to parse filter: {text}")
            rest = rest[3:].strip()
            if not rest:
                raise invalid(f"Failed to parse filter: {text}")
    return lambda event: all(test(event) for test in tests)


def _test(column: str, operator: str, texts: list[str], written: str) -> Keeps:
    values = [text[1:-1] for text in texts]
    allowed = {"level": ("=", "IN"), "id": ("=",), "timestamp": tuple(_ORDERS)}
    if operator not in allowed.get(column, ()):
        raise invalid(f"Operation '{operator}' not allowed on '{written}'")
    if column == "level":
        if not set(values) <= _LEVELS:
            raise invalid(f"Invalid level in filter: {', '.join(values)}")
        return lambda event: event.get("level") in values
    if column == "id":
        return lambda event: event.get("id") == values[0]
    try:
        limit: datetime = instant(values[0])
    except ValueError:
        raise invalid(f"Invalid timestamp in filter: {values[0]}") from None
    if limit.tzinfo is None:
        raise invalid(f"Invalid timestamp in filter: {values[0]}")
    order = _ORDERS[operator]
    return lambda event: order(instant(event["timestamp"]), limit)


_NAME = re.compile(r"name\s+LIKE\s+'((?:[^'])*)'", re.I)
_NOTEBOOK = re.compile(r"notebook\s*=\s*'([^']*)'", re.I)


def pipelines(text: str | None) -> Callable[[str, Json], bool]:
    """`name LIKE` or `notebook =`, not both, as a test of a name and settings."""
    if text is None:
        return lambda name, spec: True
    if name := _NAME.fullmatch(text.strip()):
        pattern = re.compile("".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in name[1]), re.S)
        return lambda name, spec: pattern.fullmatch(name) is not None
    if notebook := _NOTEBOOK.fullmatch(text.strip()):
        path = notebook[1]
        return lambda name, spec: any(
            (library.get("notebook") or {}).get("path") == path for library in spec.get("libraries", ())
        )
    raise invalid(f"Unsupported filter: {text}. Supported are name LIKE '<pattern>' and notebook='<path>'.")
