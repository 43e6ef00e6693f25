"""Waiting for what may hang, such as a login, whose own limits are minutes or none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import TypeVar

_Found = TypeVar("_Found")


def within(seconds: float, work: Callable[[], _Found]) -> _Found | None:
    """What the work gives, or None if it takes longer: then it is left to itself. Raises what it raises in time."""
    done: Future[_Found] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        return done.result(seconds)
    except FutureTimeout:
        if done.done():  # the work itself raised it
            raise
        return None
