"""event_log.md 9, files: every shape is read, broken parts are named, growing files are read on, nothing is lost."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitoring_platform.event_log.normalise import Delivered, Unreadable
from monitoring_platform.sources.base import Chunk, Cursor, SourceError
from monitoring_platform.sources.files import HALF_LINE, Files
from tests.conftest import event

A, B, C = event("a"), event("b"), event("c")
BOM = b"\xef\xbb\xbf"


def line(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def read(path: Path, cursor: Cursor | None = None, limit: int = 100) -> Chunk:
    """One chunk of the one log at this path."""
    source = Files("files", str(path), None)
    (log,) = source.listing().logs
    chunk = source.read(log, cursor, limit)
    assert cursor is None or chunk.cursor == json.loads(json.dumps(chunk.cursor))  # it is kept as JSON
    return chunk._replace(rows=list(chunk.rows))


def ids(chunk: Chunk) -> list[Any]:
    """Ids of the rows; reasons of what is none."""
    return [row.members["id"] if isinstance(row, Delivered) else row.reason for row in chunk.rows]


def places(chunk: Chunk) -> list[str]:
    return [row.position for row in chunk.rows]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


# Shapes

SHAPES = {
    "lines": (line(A, B), ["line 1", "line 2"]),
    "lines without last newline": (line(A, B)[:-1], ["line 1", "line 2"]),
    "windows": (line(A, B).replace(b"\n", b"\r\n"), ["line 1", "line 2"]),
    "byte order mark": (BOM + line(A, B), ["line 1", "line 2"]),
    "byte order marks of joined files": (BOM + line(A) + BOM + line(B), ["line 1", "line 2"]),
    "blank lines": (b"\n \r\n" + line(A) + b"\n\t\n" + line(B) + b"\n\n", ["line 3", "line 6"]),
    "array": (json.dumps([A, B]).encode(), ["element 1", "element 2"]),
    "array, indented": (json.dumps([A, B], indent=2).encode() + b"\n", ["element 1", "element 2"]),
    "array, a row a line": (b"[\n" + line(A)[:-1] + b",\n" + line(B) + b"]\n", ["element 1", "element 2"]),
    "array, byte order mark": (BOM + json.dumps([A, B]).encode(), ["element 1", "element 2"]),
    "page": (json.dumps({"events": [A, B], "next_page_token": "t"}).encode(), ["element 1", "element 2"]),
    "page, indented": (json.dumps({"events": [A, B]}, indent=4).encode(), ["element 1", "element 2"]),
    "page of an old client": (
        json.dumps({"events_json": [json.dumps(A), json.dumps(B)]}).encode(),
        ["element 1", "element 2"],
    ),
    "page, both names": (json.dumps({"events": None, "events_json": [json.dumps(A), B]}).encode(), ["element 1", "element 2"]),
    "pages as lines": (line({"events": [A]}, {"events": [B]}), ["line 1, element 1", "line 2, element 1"]),
    "rows as JSON text": (json.dumps(json.dumps(A)).encode() + b"\n" + line(B), ["line 1", "line 2"]),
    "mixed": (line(A) + line({"events": [B]}), ["line 1", "line 2, element 1"]),
    "mixed, array first": (json.dumps([A]).encode() + b"\n" + line(B), ["line 1, element 1", "line 2"]),
    "mixed, page first": (line({"events": [A]}) + line(B), ["line 1, element 1", "line 2"]),
    "one indented row": (json.dumps(A, indent=1).encode(), ["element 1"]),
    "one row with a list called events": (line({**A, "events": [1]}, B), ["line 1", "line 2"]),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("shape", SHAPES)
def test_shape(path: Path, shape: str, packed: bool) -> None:
    """event_log.md 3 and 9: JSON lines, array, REST page, gzip; BOM, CRLF and blank lines; with exact positions."""
    content, expected = SHAPES[shape]
    path.write_bytes(gzip.compress(content) if packed else content)
    chunk = read(path)
    assert ids(chunk) == (["a"] if shape == "one indented row" else ["a", "b"])
    assert places(chunk) == expected
    assert not chunk.more
    assert read(path, chunk.cursor).cursor["position"] == chunk.cursor["position"]


def test_rows_come_whole(path: Path) -> None:
    """event_log.md 2: 16-digit numbers, text and nesting as they are in the file."""
    row = {**A, "sequence": {"control_plane_seq_no": 9007199254740993}, "message": "é\u2028 \x7f \U0001f600"}
    path.write_bytes(line(row))
    assert read(path).rows == [Delivered(row, "line 1")]


@pytest.mark.parametrize(
    "content", [b"", b"\n", b" \r\n\n", BOM, b"[]", b'{"events": []}', b'{"prev_page_token": "t"}\n']
)
def test_nothing_is_no_error(path: Path, content: bytes) -> None:
    """event_log.md 9, R-ING-09: an empty file, array or page is no row and no trouble."""
    path.write_bytes(content)
    chunk = read(path)
    assert (chunk.rows, chunk.more) == ([], False)


def test_elements_that_are_no_event(path: Path) -> None:
    """event_log.md 9: JSON that is no object goes to quarantine, its neighbours do not."""
    path.write_bytes(b'5\n"x"\nnull\n[1]\n' + line(A))
    chunk = read(path)
    reason = "not an event: JSON, but no object"
    assert ids(chunk) == [reason, reason, reason, reason, "a"]
    assert [row.raw for row in chunk.rows[:4]] == ["5", '"x"', "null", "1"]  # type: ignore[index, union-attr]
    assert places(chunk) == ["line 1", "line 2", "line 3", "line 4, element 1", "line 5"]
    path.write_bytes(json.dumps([A, 5, B]).encode())
    assert ids(read(path)) == ["a", reason, "b"]


# Broken parts


@pytest.mark.parametrize(
    "broken", [b'{"id": "x", bad}', b"{", b"[", b"text", b'{"id": 01}', b'{"a": NaN}', b'{"id": "x"} {"id": "y"}']
)
@pytest.mark.parametrize("at", [1, 2, 3])
def test_broken_line_between_good_ones(path: Path, broken: bytes, at: int) -> None:
    """R-NEW-04: the broken line is named, wherever it stands, the rest is read."""
    lines = [line(A), line(B)]
    lines.insert(at - 1, broken + b"\n")
    path.write_bytes(b"".join(lines))
    chunk = read(path)
    (bad,) = [row for row in chunk.rows if isinstance(row, Unreadable)]
    assert (bad.position, bad.raw) == (f"line {at}", broken.decode())
    assert bad.reason.startswith("invalid JSON: ")
    assert [i for i in ids(chunk) if len(i) == 1] == ["a", "b"]


def test_bytes_that_are_no_utf8(path: Path) -> None:
    """event_log.md 9: kept with replacement marks and a flag; neighbours unaffected."""
    path.write_bytes(line(A) + line({**B, "message": "caf?"}).replace(b"caf?", b"caf\xe9") + line(C))
    chunk = read(path)
    assert ids(chunk) == ["a", "b", "c"]
    kept = chunk.rows[1]  # type: ignore[index]
    assert (kept.members["message"], kept.flags) == ("caf\ufffd", ("invalid_utf8",))
    path.write_bytes(b'{"id": "\xff", bad\n' + line(A))
    first, second = read(path).rows
    assert (first.raw, second.members["id"]) == ('{"id": "\ufffd", bad', "a")  # type: ignore[union-attr]


def test_half_an_emoji(path: Path) -> None:
    """event_log.md 9: a message cut between two surrogates is still a row."""
    path.write_bytes(line({**A, "message": "x"}).replace(b'"x"', b'"cut \\ud83d"') + line(B))
    assert ids(read(path)) == ["a", "b"]


def test_numbers_beyond_a_double(path: Path) -> None:
    """event_log.md 9: 1e999 is valid JSON; it stays as text and fails for its own field only."""
    path.write_bytes(line({**A, "n": 0}).replace(b'"n": 0', b'"n": 1e999'))
    (row,) = read(path).rows
    assert row.members["n"] == "1e999"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "value", [b"[" * 3000 + b"]" * 3000, b"[" * 900 + b"]" * 900, b'{"events":[' * 400 + b"]}" * 400]
)
def test_deep_nesting(path: Path, value: bytes) -> None:
    """event_log.md 9: parsing has limits and fails for that row only."""
    path.write_bytes(line(A) + value + b"\n" + line(B))
    assert [i for i in ids(read(path)) if len(i) == 1] == ["a", "b"]
    path.write_bytes(value)
    read(path)


@pytest.mark.parametrize("indent", [None, 2])
def test_document_that_ends_early(path: Path, indent: int | None) -> None:
    """event_log.md 9: half an array is quarantined as half and read again when it is whole."""
    whole = json.dumps([A, B], indent=indent).encode()
    path.write_bytes(whole[:-20])
    chunk = read(path)
    assert (ids(chunk), places(chunk), chunk.more) == ([HALF_LINE], ["document"], False)
    path.write_bytes(whole)
    assert ids(read(path, chunk.cursor)) == ["a", "b"]


def test_broken_document(path: Path) -> None:
    """R-NEW-04: a document that is broken in its middle is named once, not once a line."""
    path.write_bytes(json.dumps([A, B, {"x": 7}], indent=2).encode().replace(b": 7", b": 07"))
    chunk = read(path)
    assert places(chunk) == ["document"]
    assert ids(chunk)[0].startswith("invalid JSON document: ")


# Growing files


def test_only_new_lines_are_delivered(path: Path) -> None:
    """R-ING-02, R-ING-03: read on after the last whole line; numbers count through."""
    path.write_bytes(line(A))
    first = read(path)
    path.write_bytes(line(A) + b"\n" + line(B) + b"bad\n")
    second = read(path, first.cursor)
    assert (ids(second)[0], places(second)) == ("b", ["line 3", "line 4"])
    assert read(path, second.cursor).rows == []
    with path.open("ab") as file:
        file.write(line(C))
    assert [(row.position, row.members["id"]) for row in read(path, second.cursor).rows] == [("line 5", "c")]  # type: ignore[union-attr]


def test_packed_files_grow_too(tmp_path: Path) -> None:
    """R-ING-02: a gzip file that got another member is read on."""
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(line(A)))
    first = read(path)
    path.write_bytes(gzip.compress(line(A)) + gzip.compress(line(B)))
    assert ids(read(path, first.cursor)) == ["b"]


def test_last_line_without_newline(path: Path) -> None:
    """event_log.md 9: it is a row if it parses; the newline that comes later is not another line."""
    path.write_bytes(line(A)[:-1])
    first = read(path)
    assert ids(first) == ["a"]
    path.write_bytes(line(A) + b"bad\n" + line(B))
    second = read(path, first.cursor)
    assert places(second) == ["line 2", "line 3"]
    assert ids(second)[1] == "b"


@pytest.mark.parametrize("cut", [1, 5, 40, 100])
def test_half_last_line(path: Path, cut: int) -> None:
    """event_log.md 9: reported as half and not consumed; delivered once when it is complete."""
    path.write_bytes(line(A) + line(B)[: -1 - cut])
    first = read(path)
    assert (ids(first), places(first), first.more) == (["a", HALF_LINE], ["line 1", "line 2"], False)
    again = read(path, first.cursor)
    assert (ids(again), places(again)) == ([HALF_LINE], ["line 2"])
    path.write_bytes(line(A) + line(B) + line(C))
    third = read(path, again.cursor)
    assert (ids(third), places(third)) == (["b", "c"], ["line 2", "line 3"])


def test_half_first_line(path: Path) -> None:
    """event_log.md 9: the same for a file that has just begun."""
    path.write_bytes(line(A)[:20])
    first = read(path)
    assert (ids(first), places(first)) == ([HALF_LINE], ["line 1"])
    path.write_bytes(line(A, B))
    assert ids(read(path, first.cursor)) == ["a", "b"]


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("cut", [1, 8, 12, 60])
def test_gzip_that_ends_early(tmp_path: Path, members: int, cut: int) -> None:
    """event_log.md 9: what can be unpacked is read, over all members; the rest when it is there."""
    path = tmp_path / "log.jsonl.gz"
    whole = b"".join(gzip.compress(line(*rows)) for rows in ([(A, B)] if members == 1 else [(A,), (B,)]))
    path.write_bytes(whole[:-cut])
    first = read(path)
    assert len(first.rows) <= 2  # type: ignore[arg-type]
    assert ids(first)[:1] in (["a"], [HALF_LINE])
    assert members == 1 or ids(first)[:1] == ["a"]
    assert cut > 1 or ids(first) == ["a", "b"]  # only the check sum is missing
    path.write_bytes(whole)
    seen = [i for i in ids(first) + ids(read(path, first.cursor)) if i != HALF_LINE]
    assert seen == ["a", "b"]


@pytest.mark.parametrize("content", [b"\x1f\x8b", b"\x1f\x8b\x08\x00\x00"])
def test_gzip_that_has_just_begun(path: Path, content: bytes) -> None:
    """event_log.md 9: a header alone is an empty file."""
    path.write_bytes(content)
    assert read(path).rows == []


@pytest.mark.parametrize("spoil", ["middle", "middle, cut", "after the end"])
def test_damaged_gzip(path: Path, spoil: str) -> None:
    """R-NEW-04, R-ING-07: a log that cannot be unpacked is an error with a remedy, not a crash."""
    packed = bytearray(gzip.compress(line(A, B, C) * 50))
    if spoil == "after the end":
        packed += b"garbage"
    else:
        packed[20:60] = b"\xff" * 40
    path.write_bytes(packed[:-9] if "cut" in spoil else packed)
    with pytest.raises(SourceError) as error:
        read(path)
    assert str(path) in error.value.remedy


# Replaced files


@pytest.mark.parametrize(
    "replacement",
    [line(C), line(C, event("d"), event("e"), event("f")), line(C, event("d"))],
    ids=["shorter", "longer", "same size"],
)
def test_rotation(path: Path, replacement: bytes) -> None:
    """event_log.md 7: a file with another head was replaced and is read from its start."""
    path.write_bytes(line(A, B))
    first = read(path)
    os.rename(path, path.with_name("log.jsonl.1"))
    path.write_bytes(replacement)
    source = Files("files", str(path), None)
    chunk = source.read(source.listing().logs[0], first.cursor, 100)
    assert [row.members["id"] for row in chunk.rows] == [  # type: ignore[union-attr]
        json.loads(text)["id"] for text in replacement.splitlines()
    ]
    assert places(chunk._replace(rows=list(chunk.rows)))[0] == "line 1"
    assert len(replacement) != len(line(A, B)) or chunk.cursor["offset"] == first.cursor["offset"]


def test_change_behind_an_equal_head(path: Path) -> None:
    """event_log.md 7: the same first 4 KiB, another tail: read from the start, the union drops what it has."""
    long = {**A, "message": "x" * 5000}
    path.write_bytes(line(long, B))
    first = read(path)
    path.write_bytes(line(long, {**B, "id": "z"}, C))
    assert ids(read(path, first.cursor)) == ["a", "z", "c"]


def test_array_becomes_lines(path: Path) -> None:
    """event_log.md 9: a page to which lines are appended is read as lines."""
    path.write_bytes(line({"events": [A]}))
    first = read(path)
    path.write_bytes(line({"events": [A]}) + line(B))
    second = read(path, first.cursor)
    assert ids(second) == ["a", "b"]
    path.write_bytes(json.dumps([A, B, C]).encode())
    assert ids(read(path, second.cursor)) == ["a", "b", "c"]


# Folders, positions, chunks, hints


def test_mixed_folder(tmp_path: Path) -> None:
    """event_log.md 9: all shapes and rotated names in one folder and its subfolders; other files are left alone."""
    (tmp_path / "sub").mkdir()
    good = {
        "a.json": json.dumps([A]).encode(),
        "b.jsonl": line(B),
        "b.jsonl.1": line(B),
        "b.jsonl.2.gz": gzip.compress(line(B)),
        "c.ndjson": line(C),
        "D.JSON.GZ": gzip.compress(json.dumps({"events": [A]}).encode()),
        "not packed.jsonl.gz": line(A),
        "sub/e.jsonl": line(A),
    }
    for name, content in {**good, "readme.md": b"x", "b.jsonl.bak": b"x", "x.parquet": b"x", "json": b"x"}.items():
        (tmp_path / name).write_bytes(content)
    source = Files("exports", str(tmp_path), "p-9")
    logs = source.listing().logs
    assert [log.location for log in logs] == sorted(str(tmp_path / name) for name in good)
    assert {(log.source, log.kind, log.pipeline_id) for log in logs} == {("exports", "files", "p-9")}
    assert all(len(list(source.read(log, None, 10).rows)) == 1 for log in logs)
    assert [log.location for log in Files("x", f"{tmp_path}/*.jsonl*", None).listing().logs] == sorted(
        str(tmp_path / name) for name in good if name.lower().startswith(("b.jsonl", "not"))
    )
    assert [log.location for log in Files("x", str(tmp_path / "b.jsonl"), None).listing().logs] == [
        str(tmp_path / "b.jsonl")
    ]
    assert Files("x", str(tmp_path / "nowhere"), None).listing().logs == []


def test_position_tells_news(path: Path) -> None:
    """R-ING-05: a whole read is at the log's position, a chunk inside it is not, and growth moves it."""
    path.write_bytes(line(A, B))
    source = Files("files", str(path), None)
    (log,) = source.listing().logs
    assert read(path, limit=1).cursor["position"] is None
    whole = read(path)
    assert whole.cursor["position"] == source.position(log)
    path.write_bytes(line(A, B, C))
    assert whole.cursor["position"] != source.position(log)
    path.unlink()
    for call in (lambda: source.position(log), lambda: source.read(log, None, 1), lambda: source.pipelines(log, None)):
        with pytest.raises(SourceError):
            call()


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_chunks_deliver_every_row_once(path: Path, limit: int) -> None:
    """R-ING-02: chunk by chunk, in order, with the right line numbers, and an end."""
    path.write_bytes(line(A) + b"bad\n\n" + line({"events": [B, C]}) + line(event("d")) + line(event("e"))[:-9])
    rows: list[Any] = []
    cursor = None
    for _ in range(10):
        chunk = read(path, cursor, limit)
        rows += chunk.rows
        cursor = chunk.cursor
        if not chunk.more:
            break
    assert [row.position for row in rows] == [
        "line 1",
        "line 2",
        "line 4, element 1",
        "line 4, element 2",
        "line 5",
        "line 6",
    ]
    assert rows[-1].reason == HALF_LINE
    assert not chunk.more
    assert chunk.cursor["position"] is not None


def test_hint_of_pipelines(path: Path) -> None:
    """R-UNI-11: ids in the part not yet read, in object and text form, without reading rows."""
    text = {**event("b"), "origin": json.dumps({"pipeline_id": "p-2"})}
    path.write_bytes(line(event("a", pipeline_id="p-1"), text))
    source = Files("files", str(path), None)
    (log,) = source.listing().logs
    assert source.pipelines(log, None) == {"p-1", "p-2"}
    cursor = read(path).cursor
    assert source.pipelines(log, cursor) == set()
    with path.open("ab") as file:
        file.write(line(event("c", pipeline_id="p-3")) + b'"pipeline_id": "p-4", half')
    assert source.pipelines(log, cursor) == {"p-3", "p-4"}
    path.write_bytes(gzip.compress(line(event("a", pipeline_id="p-5"))))
    assert source.pipelines(log, cursor) == {"p-5"}


PARTS = st.sampled_from(
    [line(A), line(B, C), b"bad\n", b"\n", b"\r\n", BOM, line({"events": [A, B]}), b'{"id":', b"[", b"5\n"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(st.lists(PARTS, max_size=8).map(b"".join), st.lists(st.integers(0, 2000), max_size=4), st.integers(1, 3))
def test_growth_loses_nothing(path: Path, content: bytes, cuts: list[int], limit: int) -> None:
    """R-ING-02, R-ING-04: however a file of lines grows and is chunked, each row of the whole file arrives."""
    content = line(A) + content
    arrived: list[Any] = []
    cursor = None
    for end in [*sorted(cuts), len(content)]:
        path.write_bytes(content[:end])
        more = True
        while more:
            chunk = read(path, cursor, limit)
            arrived += chunk.rows
            cursor, more = chunk.cursor, chunk.more
    path.write_bytes(content)
    whole = read(path, limit=10**6).rows
    assert [row for row in whole if row not in arrived] == []
    once = [row for row in arrived if isinstance(row, Delivered)]
    assert len(once) == len([row for row in whole if isinstance(row, Delivered)])
