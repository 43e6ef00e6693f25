"""Exported log files: JSON lines, a JSON array, a REST response page, each also gzipped; shapes may be mixed.

A growing file of lines is read on from the byte where the last whole line ended. A file whose head or tail before that
byte changed was replaced (rotation) and is read from its start; the union drops what it has already.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from monitoring_platform.config import FilesSource
from monitoring_platform.event_log import jsontext
from monitoring_platform.event_log.normalise import Delivered, Unreadable
from monitoring_platform.sources.base import Chunk, Cursor, Log, SourceError
from monitoring_platform.sources.paths import expand, resolve

_NAME = re.compile(r".*\.(?:jsonl|ndjson|json)(?:\.\d+)?(?:\.gz)?", re.I)
_PIPELINE = re.compile(rb'"pipeline_id\\?"\s*:\s*\\?"((?:[^"\\]|\\u[0-9a-fA-F]{4})+)')
_MARK = 4096  # bytes at either end of what was read that must be unchanged
_BOM = b"\xef\xbb\xbf"
HALF_LINE = "invalid JSON: last line is incomplete; it is read again when the file grows"


class Files(NamedTuple):
    """A folder (searched with its subfolders), a file or a glob."""

    name: str
    path: str
    pipeline_id: str | None

    @classmethod
    def from_settings(cls, entry: FilesSource, base_dir: Path) -> Files:
        return cls(str(entry.name), resolve(base_dir, entry.path), entry.pipeline_id)

    def logs(self) -> list[Log]:
        found: set[Path] = set()
        for path in expand(self.path):
            found.update(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else found.add(path)
        return [Log(str(p), self.name, "files", self.pipeline_id) for p in sorted(found) if _NAME.fullmatch(p.name)]

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
        if _is_document(content):
            rows = list(_document(content))
            return Chunk(rows, {"position": seen, "offset": 0, "line": 0, "head": "", "tail": ""}, more=False)
        start = _resume(content, cursor) if cursor else 0
        resumed = cursor if cursor and start == cursor["offset"] else None
        chunk = _lines(content, start, resumed["line"] if resumed else 0, limit, seen)
        half = resumed.get("half") if resumed else None
        return chunk._replace(settled=(half,)) if half else chunk


def _unreadable(log: Log, error: Exception) -> SourceError:
    return SourceError(
        f"{type(error).__name__}: {error}", f"check that {log.location} exists and may be read by this user"
    )


def _content(log: Log) -> bytes:
    """The bytes of a file, unpacked. A gzip file that ends early gives what can be read."""
    path = Path(log.location)
    try:
        raw = path.read_bytes()
        if not raw.startswith(b"\x1f\x8b"):
            return raw
        return gzip.decompress(raw)
    except EOFError:
        return zlib.decompressobj(wbits=31).decompress(raw)
    except (OSError, zlib.error) as error:
        raise _unreadable(log, error) from error


def _is_document(content: bytes) -> bool:
    """One JSON document over the whole file (an array or a REST page), not lines."""
    body = content.removeprefix(_BOM).lstrip()
    if body[:1] == b"[":
        return True
    if body[:1] != b"{":
        return False
    first, _, rest = body.partition(b"\n")
    try:
        value = jsontext.loads(first)
    except jsontext.INVALID:  # a pretty-printed object starts with a line that is no JSON by itself
        return first.strip() == b"{" or _parses(body)
    return isinstance(value, dict) and _is_page(value) and not rest.strip()


def _parses(body: bytes) -> bool:
    try:
        return isinstance(jsontext.loads(body), dict)
    except jsontext.INVALID:
        return False


def _is_page(value: dict[str, Any]) -> bool:
    return "timestamp" not in value and isinstance(value.get("events", value.get("events_json")), list)


def _document(content: bytes) -> Iterator[Delivered | Unreadable]:
    try:
        value = jsontext.loads(content.removeprefix(_BOM))
    except jsontext.INVALID as error:
        yield Unreadable(f"invalid JSON document: {error}", content.decode("utf-8", "replace"), "document")
        return
    if isinstance(value, dict):
        value = value.get("events", value.get("events_json")) if _is_page(value) else [value]
    for number, element in enumerate(value, 1):
        yield from _row(element, f"element {number}", ())


def _row(value: Any, position: str, flags: tuple[str, ...]) -> Iterator[Delivered | Unreadable]:
    """One parsed line or element: an event, a page of events, or an event as JSON text (`events_json`)."""
    if isinstance(value, str):
        try:
            value = jsontext.loads(value)
        except jsontext.INVALID:
            pass
    if isinstance(value, dict) and _is_page(value):
        for number, element in enumerate(value.get("events", value.get("events_json")), 1):
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
    offset, size, half = start, len(content), None
    while offset < size and len(rows) < limit and half is None:
        newline = content.find(b"\n", offset)
        text = content[offset : size if newline < 0 else newline]
        text = (text.removeprefix(_BOM) if offset == 0 else text).strip()
        position = f"line {line + 1}"
        if text:
            try:
                rows.extend(_row(jsontext.loads(text), position, ()))
            except jsontext.INVALID as error:
                if newline < 0:
                    half = position
                    rows.append(Unreadable(HALF_LINE, text.decode("utf-8", "replace"), position))
                    continue
                rows.extend(_lenient(text, position, error))
        offset, line = (size if newline < 0 else newline + 1), line + 1
    head, tail = _marks(content, offset)
    more = offset < size and half is None
    cursor: Cursor = {"position": None if more else seen, "offset": offset, "line": line, "head": head, "tail": tail}
    if half is not None:
        cursor["half"] = half
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
