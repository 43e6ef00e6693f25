"""What a look at something that has to work comes to."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Diagnosis(NamedTuple):
    """One thing that was tried: whether it works, what was found, and what to do if it does not.

    `note`: it does not work or was not tried, and nothing that is configured needs it.
    """

    what: str
    verdict: Literal["pass", "fail", "note"]
    found: str
    remedy: str | None = None
    remedy_sql: str | None = None


def passed(what: str, found: str) -> Diagnosis:
    """It works."""
    return Diagnosis(what, "pass", found)


def failed(what: str, found: str, remedy: str, remedy_sql: str | None = None) -> Diagnosis:
    """It does not work, and has to."""
    return Diagnosis(what, "fail", found, remedy, remedy_sql)


def noted(what: str, found: str, remedy: str | None = None, remedy_sql: str | None = None) -> Diagnosis:
    """Nothing depends on it."""
    return Diagnosis(what, "note", found, remedy, remedy_sql)
