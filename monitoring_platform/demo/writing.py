"""How the logs of a fleet lie on disk: files of several shapes and Delta tables, delivered in parts as time went by."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import orjson
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from monitoring_platform.demo.events import (
    Event,
    Json,
    arrow_table,
    older_arrow_table,
    rearranged_arrow_table,
    rest_shape,
    table_shape,
)
from monitoring_platform.demo.journal import Journal

DELTA_SHARE = 0.4
PIPELINES_IN_SHARED_TABLE = 5
PIPELINES_IN_SHARED_FILE = 4
LATE_SHARE = 0.004
REPEATED_SHARE = 0.003

_PARTS_OF_FILES = (0.5, 0.35, 0.15)
_PARTS_OF_TABLES = ((0.5, 0.3, 0.2), (0.4, 0.3, 0.2, 0.1), (0.3, 0.2, 0.2, 0.2, 0.1))


@dataclass(frozen=True)
class FileSet:
    """The files of one pipeline, or of a few that share theirs."""

    stem: str
    journals: tuple[Journal, ...]
    shape: Callable[[Event], Json] = rest_shape
    container: str = "lines"
    compressed: bool = False
    newest_first: bool = False


@dataclass(frozen=True)
class TableLog:
    """A Delta table with the log of one pipeline, or of a few."""

    name: str
    journals: tuple[Journal, ...]
    build: Callable[[list[Event]], pa.Table] = arrow_table


def table_shape_without_colon(event: Event) -> Json:
    """The table shape with times as `+0000`."""
    return table_shape(event, without_colon=True)


# Who is written where


def share_out(journals: Sequence[Journal], rng: Random) -> tuple[list[FileSet], list[TableLog]]:
    """Every pipeline to exactly one place; the one with broken lines always to plain JSON lines."""
    broken = [journal for journal in journals if journal.pipeline.plant == "broken_lines"]
    others = [journal for journal in journals if journal.pipeline.plant != "broken_lines"]
    rng.shuffle(others)
    in_tables = round(DELTA_SHARE * len(journals))
    tables = list(_table_logs(others[:in_tables]))
    files = [FileSet(journal.pipeline.name, (journal,)) for journal in broken]
    return files + list(_file_sets(others[in_tables:], rng)), tables


def _table_logs(journals: list[Journal]) -> Iterator[TableLog]:
    rest = iter(journals)
    if len(journals) >= PIPELINES_IN_SHARED_TABLE + 3:
        shared = tuple(next(rest) for _ in range(PIPELINES_IN_SHARED_TABLE))
        yield TableLog("event_log_shared", shared)
    special = [older_arrow_table, rearranged_arrow_table] if len(journals) > 2 else []
    for build in special:
        journal = next(rest)
        yield TableLog(_table_name(journal), (journal,), build)
    for journal in rest:
        yield TableLog(_table_name(journal), (journal,))


def _table_name(journal: Journal) -> str:
    return "event_log_" + journal.pipeline.id.replace("-", "_")


def _file_sets(journals: list[Journal], rng: Random) -> Iterator[FileSet]:
    rest = iter(journals)
    for container in ("page", "array")[: len(journals) // 4]:
        journal = next(rest)
        yield FileSet(journal.pipeline.name, (journal,), container=container, newest_first=container == "page")
    shared_files = min(2, len(journals) // (3 * PIPELINES_IN_SHARED_FILE))
    for number in range(shared_files):
        together = tuple(next(rest) for _ in range(PIPELINES_IN_SHARED_FILE))
        yield FileSet(f"shared_export_{number + 1}", together, shape=(rest_shape, table_shape)[number % 2])
    for journal in rest:
        yield FileSet(
            journal.pipeline.name,
            (journal,),
            shape=rng.choice((rest_shape, rest_shape, table_shape, table_shape_without_colon)),
            compressed=rng.random() < 0.25,
            newest_first=rng.random() < 0.2,
        )


# In which portions


def deliveries(events: list[Event], shares: Sequence[float], rng: Random) -> list[list[Event]]:
    """The events in portions by time; a few come one portion late, a few come again in the next one."""
    portions: list[list[Event]] = []
    carried: list[Event] = []
    for number, portion in enumerate(_cut(events, shares)):
        if number == len(shares) - 1:
            portions.append(carried + portion)
            break
        late = set(_some(len(portion), LATE_SHARE, rng))
        repeated = [portion[place] for place in _some(len(portion), REPEATED_SHARE, rng) if place not in late]
        portions.append(carried + [event for place, event in enumerate(portion) if place not in late])
        carried = [portion[place] for place in sorted(late)] + repeated
    return portions


def _cut(events: list[Event], shares: Sequence[float]) -> Iterator[list[Event]]:
    begin, share_so_far = 0, 0.0
    for share in shares:
        share_so_far += share
        end = round(len(events) * share_so_far)
        yield events[begin:end]
        begin = end


def _some(size: int, share: float, rng: Random) -> list[int]:
    """A share of the places, at least one when there are more than a handful."""
    return rng.sample(range(size), max(1, round(size * share))) if size > 20 else []


def _portions(journals: Iterable[Journal], shares: Sequence[float], rng: Random) -> list[list[Event]]:
    """The portions of several pipelines side by side."""
    each = [deliveries(journal.events, shares, rng) for journal in journals]
    return [[event for portion in side_by_side for event in portion] for side_by_side in zip(*each, strict=True)]


# Onto the disk


def write_files(folder: Path, files: FileSet, rng: Random) -> int:
    """Write the files of a set; returns how many rows they hold, broken lines not counted."""
    rows = 0
    for number, portion in enumerate(_portions(files.journals, _PARTS_OF_FILES, rng)):
        if not portion:
            continue
        rows += len(portion)
        ordered = portion[::-1] if files.newest_first else portion
        shaped = [files.shape(event) for event in ordered]
        stem = f"{files.stem}.{number}"
        if files.container == "page" and number == 0:
            (folder / f"{stem}.json").write_bytes(orjson.dumps({"events": shaped}))
        elif files.container == "array" and number == 0:
            (folder / f"{stem}.json").write_bytes(orjson.dumps(shaped))
        elif files.compressed:
            (folder / f"{stem}.jsonl.gz").write_bytes(gzip.compress(_lines(shaped), compresslevel=5, mtime=0))
        else:
            (folder / f"{stem}.jsonl").write_bytes(_lines(shaped))
    return rows


def _lines(rows: list[Json]) -> bytes:
    return b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def write_table(folder: Path, log: TableLog, rng: Random) -> int:
    """Write a Delta table, one commit per portion; returns how many rows it holds."""
    rows = 0
    target: Path | DeltaTable = folder / log.name
    for portion in _portions(log.journals, rng.choice(_PARTS_OF_TABLES), rng):
        if not portion:
            continue
        rows += len(portion)
        write_deltalake(target, log.build(portion), mode="append")
        target = DeltaTable(folder / log.name) if isinstance(target, Path) else target
    return rows


# Damage


def break_lines(folder: Path, journal: Journal) -> Json:
    """Put three lines that nobody can use among the good ones of a pipeline's first file."""
    path = folder / f"{journal.pipeline.name}.0.jsonl"
    lines = path.read_bytes().splitlines()
    whole = rest_shape(journal.events[0]._replace(id="cut-in-the-middle", event_type="hook_progress"))
    undated = rest_shape(journal.events[0]._replace(id="without-a-time", event_type="hook_progress"))
    text = orjson.dumps(whole)
    damaged = {
        len(lines) // 4: text[: len(text) // 2],
        len(lines) // 2: b"upload interrupted, retrying in 5 s",
        3 * len(lines) // 4: orjson.dumps({**undated, "timestamp": "string"}),
    }
    result: list[bytes] = []
    numbers: list[int] = []
    for place, line in enumerate(lines):
        if place in damaged:
            result.append(damaged[place])
            numbers.append(len(result))
        result.append(line)
    path.write_bytes(b"\n".join(result) + b"\n")
    return {"file": f"logs/{path.name}", "lines": numbers, "reasons": ["not JSON", "not JSON", "timestamp"]}


def write_broken_log(folder: Path) -> None:
    """A table whose only commit is garbage; whose pipeline it was cannot be known."""
    commits = folder / "_delta_log"
    commits.mkdir(parents=True)
    (commits / f"{0:020}.json").write_bytes(b"\x00\x17garbage{{{not a commit\n")


def write_settings(path: Path, owners: dict[str, str]) -> None:
    """The monitoring.yaml that reads all of this."""
    settings = "".join(
        f'    - match: "{layer}_*"\n      owner: {owner}\n      tags: {{layer: {layer}}}\n'
        for layer, owner in owners.items()
    )
    path.write_text(
        "warehouse:\n  path: ./warehouse\n"
        "sources:\n  - type: files\n    path: ./logs\n  - type: delta\n    path: ./delta_logs/*\n"
        "costs:\n  usage: ./billing/usage.parquet\n  list_prices: ./billing/list_prices.csv\n"
        f"pipelines:\n  settings:\n{settings}",
        encoding="utf-8",
    )


def write_truth(path: Path, truth: Json) -> None:
    """truth.json, readable and in a fixed order of keys."""
    path.write_bytes(orjson.dumps(truth, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
