"""Doing something for the job that must neither fail nor delay it."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable

#: How long the job waits, if it does not say.
SECONDS = 30.0
_log = logging.getLogger("monitoring_platform")


def attempt(what: str, action: Callable[[], object], seconds: float = SECONDS) -> str | None:
    """Do it in a thread of its own and wait at most so long; gives what went wrong, which is logged, or None.

    What takes longer is left to itself and may still be done.
    """
    failure: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            context.run(action)
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True, name=f"monitoring {what}")
    try:
        thread.start()
        thread.join(seconds)
    except RuntimeError as error:  # no more threads, or the interpreter is ending
        failure.append(error)
    if thread.is_alive():
        return warn(what, f"not done after {seconds:g} s")
    return warn(what, failure[0]) if failure else None


def warn(what: str, reason: BaseException | str) -> str:
    """Log that something could not be done for the job; gives what was said."""
    text = reason if isinstance(reason, str) else f"{type(reason).__name__}: {reason}"
    problem = f"{what}: {text}"
    _log.warning("monitoring of this run: %s", problem)
    return problem
