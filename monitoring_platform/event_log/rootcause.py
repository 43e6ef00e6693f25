"""What went wrong, out of an error as logged: the deepest cause, its code, and a fingerprint that survives names.

An error's exceptions run from the outermost to the deepest cause. The same error in another pipeline, run or batch
differs in ids, numbers, names in quotes and paths only: with those masked both have one fingerprint.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any

CODE = re.compile(r"\[([A-Za-z0-9_.:]+)\]")
_SQL_STATE = re.compile(r"SQLSTATE:?\s*([0-9A-Z]{5})\b")
_LIMIT = 2_000  # characters that take part in a fingerprint
_MASKS = [
    (re.compile(p), mask)
    for p, mask in [
        (r"\b[0-9a-fA-F]{8}(?:[-_][0-9a-fA-F]{4}){3}[-_][0-9a-fA-F]{12}\b", "<id>"),
        (r"`[^`]*`(?:\.`[^`]*`)*|(?<!\w)(?:'[^']*')+|\"[^\"]*\"", "<name>"),
        (r"\b[a-zA-Z][a-zA-Z0-9+.-]*:/+[^\s,;)\]]+|(?<![\w<])/(?:[\w.@=%+-]+/?)+", "<path>"),
        (r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
        (r"\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{6,}\b", "<n>"),  # or digits only
        (r"\d+(?:[.,]\d+)*", "<n>"),
        (r"\b(?!\w+\.\w+\.\w*(?:Exception|Error)\b)\w+(?:\.\w+){2}\b", "<name>"),
        (r"\s+", " "),
    ]
]


def mask(message: str) -> str:
    """The message without what differs from one occurrence to the next."""
    text = message[:_LIMIT]
    for pattern, replacement in _MASKS:
        text = pattern.sub(replacement, text)
    return text.strip()


def root_error(exceptions: list[dict[str, Any]], message: str | None, mark: str) -> dict[str, Any] | None:
    """The deepest cause of a list of exceptions, or of an error that has only the event's message; None for neither.

    `mark` is what redaction puts in place of a secret: no code. Code and SQL state come from the deepest exception
    that has one.
    """
    deepest: dict[str, Any] = next((e for e in reversed(exceptions) if e.get("message") or e.get("class_name")), {})
    text = deepest.get("message") or message
    class_name = deepest.get("class_name")
    if not text and not class_name:
        return None
    chain = [*reversed(exceptions)] or [{"message": message}]
    error_class = next((code for e in chain if (code := code_of(e, mark))), None)
    states = (e.get("sql_state") or _stated(e.get("message")) for e in chain)
    digest = hashlib.sha256(f"{error_class or class_name}\0{mask(text or '')}".encode("utf-8", "replace"))
    return {
        "message": text,
        "class_name": class_name,
        "error_class": error_class,
        "sql_state": next((state for state in states if state), None),
        "fingerprint": digest.hexdigest()[:16],
    }


def code_of(exception: dict[str, Any], mark: str) -> str | None:
    """The code in brackets at the start of the message, else the error class that is given."""
    match = CODE.match(exception.get("message") or "")
    return match.group(1) if match and match.group() != mark else exception.get("error_class")


def _stated(message: str | None) -> str | None:
    match = _SQL_STATE.search(message or "")
    return match.group(1) if match else None
