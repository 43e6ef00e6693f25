"""What Spark says of a pipeline while it runs: text and nothing else. Only its exact sentences are understood.

A text of any other form is kept as it is and changes no status.
"""

from __future__ import annotations

import re
import traceback
from typing import Any, NamedTuple

ErrorChain = list[dict[str, Any]]


class Said(NamedTuple):
    """One message. `flow` and `status`: the flow that it names and its status; without a flow, the state of the run."""

    text: str
    status: str | None = None
    flow: str | None = None
    exceptions: ErrorChain | None = None  # outermost first


_FLOW = "'?(?P<flow>[^\\n]+?)'?"
_STATUS = [
    (re.compile(pattern, re.S), status)
    for pattern, status in (
        (rf"Flow {_FLOW} is QUEUED\.", "QUEUED"),
        (rf"Flow {_FLOW} is PLANNING\.", "PLANNING"),
        (rf"Flow {_FLOW} is STARTING\.", "STARTING"),
        (rf"Flow {_FLOW} is RUNNING\.", "RUNNING"),
        (rf"Flow {_FLOW} has COMPLETED\.", "COMPLETED"),
        (rf"Flow {_FLOW} has STOPPED\.", "STOPPED"),
        (rf"Flow {_FLOW} is EXCLUDED\.", "EXCLUDED"),
        (rf"Flow {_FLOW} is IDLE, waiting for new data\.", "IDLE"),
        (rf"Flow {_FLOW} SKIPPED due to upstream failure\(s\)\.", "SKIPPED"),
        (rf"Flow {_FLOW} has been processed by a previous iteration and will not be rerun\.", "SKIPPED"),
        (rf"Flow {_FLOW} has FAILED(?: more than \d+ times and will not be restarted)?\.", "FAILED"),
        (rf"Flow {_FLOW} has failed to stop\.", "FAILED"),
        (rf"Failed to resolve flow: {_FLOW}\.", "FAILED"),
        (rf"Failed to resolve flow due to upstream failure: {_FLOW}\.", "SKIPPED"),
        (r"Run is COMPLETED\.", "COMPLETED"),
        (r"Run is CANCELED\.", "CANCELED"),
    )
]
_CANCELED = "Pipeline run was canceled."  # all that Spark says when somebody stops a run
_ERROR = "\nError: "
_NEXT = re.compile(r"\n(?=\[[A-Z][A-Z0-9_.]*\] )")  # the messages of a chain of exceptions are joined by line ends
_FRAME = re.compile(r"\n\s+at [^\n]*|\n\s+\.\.\. \d+ more")


def understand(text: str) -> Said:
    """A message of the event stream."""
    sentence, _, error = text.partition(_ERROR)
    exceptions = [{"message": message} for message in _NEXT.split(error)] if error else None
    for pattern, status in _STATUS:
        if match := pattern.fullmatch(sentence):
            return Said(sentence, status, match.groupdict().get("flow"), exceptions)
    return Said(sentence, exceptions=exceptions)


def failure(error: BaseException) -> Said:
    """What ended the run: an error of the server with the causes that it sends along, or one of this process."""
    if isinstance(error, KeyboardInterrupt) or _CANCELED in str(error):
        return Said("the run was canceled", "CANCELED")
    stack = getattr(error, "getStackTrace", lambda: None)()
    exceptions = _causes(stack, str(error).partition("\n\nJVM stacktrace:")[0].strip()) if stack else _raised(error)
    return Said(exceptions[-1]["message"], "FAILED", exceptions=exceptions)


def _causes(stack: str, outermost: str) -> ErrorChain:
    """The exceptions of a Java stack trace, without its frames; the message of the first is known better."""
    parts = [text.partition(": ") for text in _FRAME.sub("", stack).split("\nCaused by: ")]
    found = [{"class_name": name.strip(), "message": message.strip() or name.strip()} for name, _, message in parts]
    found[0]["message"] = outermost
    return found


def _raised(error: BaseException) -> ErrorChain:
    """An exception of this process with its causes, as its traceback would name them."""
    cause: BaseException | None = error
    found: ErrorChain = []
    while cause is not None and len(found) < 20:  # a chain can be made to go in a circle
        text = "".join(traceback.format_exception_only(cause)).strip()
        found.append({"class_name": type(cause).__qualname__, "message": text.partition(": ")[2] or text})
        cause = cause.__cause__
    return found
