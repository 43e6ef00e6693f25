"""Exported log files: JSON lines, a JSON array, a REST response page, each also gzipped; shapes may be mixed.

A growing file of lines is read on from the byte where the last whole line ended. A file whose head or tail before that
byte changed was replaced (rotation) and is read from its start; the union drops what it has already. The mark of a
recorded run that is lost is a log of one event.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from monitoring_platform.config import FilesSource
from monitoring_platform.event_log import jsontext
from monitoring_platform.event_log.normalise import Delivered, Unreadable
from monitoring_platform.event_log.running import SUFFIX, is_lost
from monitoring_platform.sources.base import Chunk, Cursor, Listing, Log, Look, SourceError
from monitoring_platform.sources.paths import expand, resolve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = re.compile(r".*\.(?:jsonl|ndjson|json)(?:\.\d+)?(?:\.gz)?", re.I)
_PIPELINE = re.compile(rb'"pipeline_id\\?"\s*:\s*\\?"((?:[^"\\]|\\u[0-9a-fA-F]{4})+)')
_MARK = 4096  # bytes at either end of what was read that must be unchanged
_BOM = b"\xef\xbb\xbf"
_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*")
_TOKENS = frozenset({"next_page_token", "prev_page_token"})
HALF_LINE = "invalid JSON: the end is missing; it is read again when the file grows"


class Files(NamedTuple):
    """A folder (searched with its subfolders), a file or a glob."""

    name: str
    path: str
    pipeline_id: str | None

    @classmethod
    def from_settings(cls, entry: FilesSource, base_dir: Path) -> Files:
        return cls(str(entry.name), resolve(base_dir, entry.path), entry.pipeline_id)

    def listing(self, look: Look | None = None) -> Listing:
        found: set[Path] = set()
        for path in expand(self.path):
            found.update(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else found.add(path)
        paths = sorted(path for path in found if _NAME.fullmatch(path.name) or (look and _is_lost(path, look.now)))
        return Listing([Log(str(path), self.name, "files", self.pipeline_id) for path in paths])

    def position(self, log: Log) -> Any:
        try:
            stat = Path(log.location).stat()
        except OSError as error:
            raise _unreadable(log, error) from error
        return [stat.st_size, stat.st_mtime_ns]

    def pipelines(self, log: Log, cursor: Cursor | None) -> set[str]:
        content = _content(log)
        start = _resume(content, cursor) if cursor else 0
        found = {match.decode("utf-8", "replace") for match in _PIPELINE.findall(content[start:])}
        return {text for text in found if "\\" not in text}

    def read(
        self, log: Log, cursor: Cursor | None, limit: int, engine: Callable[[], SparkSession] | None = None
    ) -> Chunk:
        seen = self.position(log)  # before the bytes: what is appended in between is news again
        content = _content(log)
        document = _document(content)
        if document is not None:
            return Chunk(document, {"position": seen, "offset": 0, "line": 0, "head": "", "tail": ""}, more=False)
        start = _resume(content, cursor) if cursor else 0
        line = cursor["line"] if cursor and start == cursor["offset"] else 0
        return _lines(content, start, line, limit, seen)


def _is_lost(path: Path, now: datetime) -> bool:
    return path.name.endswith(SUFFIX) and is_lost(path, now)


def _unreadable(log: Log, error: Exception) -> SourceError:
    return SourceError(
        f"{type(error).__name__}: {error}", f"check that {log.location} exists and may be read by this user"
    )


def _content(log: Log) -> bytes:
    """The bytes of a file, unpacked. A gzip file that ends early gives what can be read."""
    try:
        raw = Path(log.location).read_bytes()
        return _unpacked(raw) if raw.startswith(b"\x1f\x8b") else raw
    except (OSError, zlib.error) as error:
        raise _unreadable(log, error) from error


def _unpacked(raw: bytes) -> bytes:
    try:
        return gzip.decompress(raw)
    except EOFError:
        parts = []
        while raw:
            member = zlib.decompressobj(wbits=31)
            parts.append(member.decompress(raw))
            raw = member.unused_data
        return b"".join(parts)


def _document(content: bytes) -> list[Delivered | Unreadable] | None:
    """The rows of one JSON document over the whole file (an array or a REST page); None if the file is of lines."""
    start = _START.match(content).end()  # type: ignore[union-attr]
    if content[start : start + 1] not in (b"[", b"{"):
        return None
    newline = content.find(b"\n", start)
    first, rest = (content[start:], b"") if newline < 0 else (content[start:newline], content[newline:])
    try:
        value = jsontext.loads(first)
        if rest and not rest.isspace():
            return None
        return _elements(value) if isinstance(value, list) or _events(value) is not None else None
    except jsontext.INVALID:  # a pretty-printed document starts with a line that is no JSON by itself
        pass
    try:
        value = jsontext.loads(content[start:])
        return _elements(value if isinstance(value, list) or _events(value) is not None else [value])
    except jsontext.INVALID as error:
        if not (first.startswith(b"[") or first.strip() == b"{") or _has_lines(rest):
            return None
        half = "unexpected end" in str(error)
        reason = HALF_LINE if half else f"invalid JSON document: {error}"
        return [Unreadable(reason, content.decode("utf-8", "replace"), "document")]


def _has_lines(content: bytes) -> bool:
    """Whether this reads as lines of which the one before is broken, not as what is left of an indented document."""
    lines = [line.strip() for line in content.split(b"\n")]
    return sum(map(_is_object, lines)) > sum(line.endswith(b",") for line in lines)


def _is_object(text: bytes) -> bool:
    try:
        return text.startswith(b"{") and bool(jsontext.loads(text))
    except jsontext.INVALID:
        return False


def _events(value: Any) -> list[Any] | None:
    """The rows of a REST page; None if this is no page. A page without rows may hold its tokens only."""
    if not isinstance(value, dict) or "timestamp" in value or "event_time" in value:
        return None
    for name in ("events", "events_json"):
        if isinstance(value.get(name), list):
            return list(value[name])
    return [] if value and value.keys() <= _TOKENS else None


def _elements(value: Any) -> list[Delivered | Unreadable]:
    listed = value if isinstance(value, list) else _events(value) or []
    return [row for number, element in enumerate(listed, 1) for row in _row(element, f"element {number}", ())]


def _row(value: Any, position: str, flags: tuple[str, ...]) -> Iterator[Delivered | Unreadable]:
    """One parsed line or element: an event, a page or array of events, or an event as JSON text (`events_json`)."""
    if isinstance(value, str):
        with suppress(*jsontext.INVALID):
            value = jsontext.loads(value)
    inner = value if isinstance(value, list) else _events(value)
    if inner is not None:
        for number, element in enumerate(inner, 1):
            yield from _row(element, f"{position}, element {number}", flags)
    elif isinstance(value, dict):
        yield Delivered(value, position, flags)
    else:
        yield Unreadable("not an event: JSON, but no object", jsontext.dumps(value), position)


def _resume(content: bytes, cursor: Cursor) -> int:
    """Where to read on: after the last whole line if that part of the file is unchanged, else at the start."""
    offset = int(cursor["offset"])
    same = offset <= len(content) and _marks(content, offset) == (cursor["head"], cursor["tail"])
    return offset if same else 0


def _marks(content: bytes, offset: int) -> tuple[str, str]:
    head, tail = content[: min(_MARK, offset)], content[max(0, offset - _MARK) : offset]
    return hashlib.sha256(head).hexdigest()[:16], hashlib.sha256(tail).hexdigest()[:16]


def _lines(content: bytes, start: int, line: int, limit: int, seen: Any) -> Chunk:
    """Whole lines from `start` on. A half last line is delivered as unreadable but not consumed."""
    rows: list[Delivered | Unreadable] = []
    offset, size, is_half = start, len(content), False
    while offset < size and len(rows) < limit and not is_half:
        newline = content.find(b"\n", offset)
        text = content[offset : size if newline < 0 else newline]
        text = text.strip().removeprefix(_BOM).strip()
        position = f"line {line + 1}"
        if text:
            try:
                rows.extend(_row(jsontext.loads(text), position, ()))
            except jsontext.INVALID as error:
                if newline < 0:
                    is_half = True
                    rows.append(Unreadable(HALF_LINE, text.decode("utf-8", "replace"), position))
                    continue
                rows.extend(_lenient(text, position, error))
        # The newline that a last line lacks belongs to it and may come with the next read.
        offset, line = (size, line) if newline < 0 else (newline + 1, line + 1)
    head, tail = _marks(content, offset)
    more = offset < size and not is_half
    cursor: Cursor = {"position": None if more else seen, "offset": offset, "line": line, "head": head, "tail": tail}
    return Chunk(rows, cursor, more)


def _lenient(text: bytes, position: str, error: Exception) -> Iterator[Delivered | Unreadable]:
    """A line with bytes that are no UTF-8 is kept with replacement marks; any other broken line is unreadable."""
    decoded = text.decode("utf-8", "replace")
    if "\ufffd" in decoded:
        try:
            yield from _row(jsontext.loads(decoded), position, ("invalid_utf8",))
            return
        except jsontext.INVALID:
            pass
    yield Unreadable(f"invalid JSON: {error}", decoded, position)
