"""Stock queries: one .sql file for each question, in DuckDB's SQL over the tables by their bare names.

A file begins with comments: its title, what it answers, and the requirements that it belongs to. What is relative to
now (the last 7 days, today) is relative to the newest event of the fleet, so that it also works on recorded logs;
events that are dated in the far future do not count. `python -m monitoring_platform.queries` writes the index.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files
from typing import NamedTuple

_SUBJECTS: dict[str, tuple[str, ...]] = {
    "Runs and requests": ("R-RUN", "R-NEW-01", "R-NEW-02", "R-DASH-04", "R-PEER-17", "R-RET", "R-AUD"),
    "Objectives": ("R-SLO",),
    "Durations and rows": ("R-DUR", "R-ROW", "R-NEW-05"),
    "Flows": ("R-FLOW",),
    "Quality": ("R-QUAL",),
    "Errors": ("R-ERR", "R-NEW-09", "R-PEER-13"),
    "Definitions, lineage, refreshes": ("R-LIN", "R-NEW-07"),
    "Recorded jobs": ("R-OWN",),
    "Money and jobs": ("R-COST", "R-JOB", "R-NEW-08"),
    "Events, tables, resources": ("",),
}


class Query(NamedTuple):
    """One stock query."""

    name: str
    title: str
    answers: str
    requirements: tuple[str, ...]
    sql: str


class UnknownQuery(LookupError):
    """There is no query of this name; the text says which there are."""


def _parsed(name: str, text: str) -> Query:
    lines = text.splitlines()
    head = [line.removeprefix("--").strip() for line in lines[: next(i for i, x in enumerate(lines) if x[:2] != "--")]]
    return Query(name, head[0], " ".join(head[1:-1]), tuple(head[-1].split(", ")), text)


def stock() -> dict[str, Query]:
    """All stock queries by name."""
    found = [item for item in files(__package__).iterdir() if item.name.endswith(".sql")]
    queries = [_parsed(item.name.removesuffix(".sql"), item.read_text(encoding="utf-8")) for item in found]
    return {query.name: query for query in sorted(queries)}


def get(name: str) -> Query:
    """The query of this name. Raises UnknownQuery."""
    queries = stock()
    if name not in queries:
        near = get_close_matches(name, queries, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(queries)}"
        raise UnknownQuery(f"no query is called '{name}'; {hint}")
    return queries[name]


def by_subject() -> dict[str, list[Query]]:
    """All stock queries under what they are about, by the first requirement that each belongs to."""
    subjects: dict[str, list[Query]] = {subject: [] for subject in _SUBJECTS}
    for query in stock().values():
        first = query.requirements[0]
        subject = next(known for known, prefixes in _SUBJECTS.items() if first.startswith(prefixes))
        subjects[subject].append(query)
    return subjects


def index() -> str:
    """The text of docs/queries.md."""
    parts = [
        "# Stock queries",
        "Written by `make docs` from the `.sql` files in `monitoring_platform/queries/`; the tests run each one on the "
        "demo fleet.",
        "```sh\nmonitoring-platform query                    # this list\n"
        "monitoring-platform query morning            # the answer; --json, --csv\n"
        "monitoring-platform query morning --show     # its SQL, to change it and ask it with `sql`\n```",
        'They are in DuckDB\'s SQL and name tables by their bare names, see [tables.md](tables.md). "Today" and "7 '
        'days" count back from the newest event of the fleet, not from the clock, so that they also work on recorded '
        "logs; events dated in the far future do not count.",
    ]
    for subject, queries in by_subject().items():
        rows = [
            f"| [`{q.name}`](../monitoring_platform/queries/{q.name}.sql) | **{q.title}.** {q.answers} "
            f"| {', '.join(item.removeprefix('R-') for item in q.requirements)} |"
            for q in queries
        ]
        parts.append(
            "\n".join([f"## {subject}\n", "| query | what it answers | requirements |", "| --- | --- | --- |", *rows])
        )
    return "\n\n".join(parts) + "\n"
