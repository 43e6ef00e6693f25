"""The way from a seed to a folder full of logs, and the truth about them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from random import Random

from monitoring_platform.demo import truth as told
from monitoring_platform.demo import writing
from monitoring_platform.demo.billing import bill
from monitoring_platform.demo.events import DAY, EXTRA_COLUMN, Json, iso, rearranged_arrow_table
from monitoring_platform.demo.fleet import OWNERS, Fleet
from monitoring_platform.demo.history import live
from monitoring_platform.demo.journal import Journal
from monitoring_platform.demo.lineage import downstream, edges
from monitoring_platform.demo.plants import planted
from monitoring_platform.demo.timeline import Window

BROKEN_LOG = "broken_export"


def generate(folder: Path, *, pipelines: int = 100, days: int = 14, seed: int = 7, end: datetime) -> Json:
    """Write logs, delta_logs, billing, monitoring.yaml and truth.json into `folder`; returns the truth.

    The same arguments give the same logs. `end` is the time (with zone) at which the logs stop. A demo that was
    written before is replaced, with the warehouse that was made of it; folders of that name without a truth.json
    beside them are somebody's own and stay.
    """
    if end.tzinfo is None:
        raise ValueError("end needs a time zone, for instance datetime(2025, 11, 30, 7, tzinfo=timezone.utc)")
    _clear(folder)
    stop = int(end.timestamp()) * 1000
    window = Window(stop - days * DAY, stop)
    fleet = Fleet.build(pipelines, seed)
    journals = [live(pipeline, window, seed) for pipeline in fleet.pipelines]
    problems = [problem for problem in map(planted, journals) if problem is not None]
    for problem in problems:
        if problem["kind"] == "still_failing":
            failing = next(p for p in fleet.pipelines if p.id == problem["pipeline_id"])
            problem["details"]["downstream"] = downstream(fleet.pipelines, failing, failing.flows[-1])
    rows, in_files = _write_logs(folder, journals, Random(f"places {seed}"))
    problems += in_files
    truth = {
        "end": iso(stop),
        "events": sum(len(journal.events) for journal in journals),
        "repeated_events": rows - sum(len(journal.events) for journal in journals),
        "quarantined": sum(len(problem["details"].get("lines", ())) for problem in in_files),
        "planted": problems,
        "secrets": fleet.secrets,
        **bill(folder / "billing", journals, window),
        **_told_per_pipeline(journals),
    }
    writing.write_settings(folder / "monitoring.yaml", OWNERS)
    writing.write_truth(folder / "truth.json", truth)
    return truth


def _clear(folder: Path) -> None:
    """Make room for a new demo, in place of an older one if there is one."""
    is_demo = (folder / "truth.json").exists()
    places = [folder / name for name in ("logs", "delta_logs", "billing", "warehouse")]
    taken = [place for place in places if place.exists()]
    if taken and not is_demo:
        raise FileExistsError(f"{taken[0]} exists and was not written by the demo: choose another folder")
    for place in taken:
        shutil.rmtree(place)
    for name in ("logs", "delta_logs"):
        (folder / name).mkdir(parents=True)


def _write_logs(folder: Path, journals: list[Journal], rng: Random) -> tuple[int, list[Json]]:
    """Write everything; returns the number of readable rows and the problems that lie in files, not in pipelines."""
    files, tables = writing.share_out(journals, rng)
    drift = f"column.{EXTRA_COLUMN}"
    rearranged = [each for each in tables if each.build is rearranged_arrow_table]
    rows = sum(writing.write_files(folder / "logs", each, rng) for each in files)
    rows += sum(writing.write_table(folder / "delta_logs", each, rng) for each in tables)
    problems = [
        _problem(journal.pipeline.id, journal.pipeline.name, "extra_column", {"drift": {drift: len(journal.events)}})
        for table in rearranged
        for journal in table.journals
    ]
    for journal in journals:
        if journal.pipeline.plant == "broken_lines":
            details = writing.break_lines(folder / "logs", journal)
            problems.append(_problem(journal.pipeline.id, journal.pipeline.name, "broken_lines", details))
    writing.write_broken_log(folder / "delta_logs" / BROKEN_LOG)
    problems.append(_problem(None, None, "broken_log", {"path": f"delta_logs/{BROKEN_LOG}"}))
    return rows, problems


def _problem(pipeline_id: str | None, pipeline_name: str | None, kind: str, details: Json) -> Json:
    return {"pipeline_id": pipeline_id, "pipeline_name": pipeline_name, "kind": kind, "details": details}


_PARTS = (
    "pipelines",
    "runs",
    "flows",
    "requests",
    "user_actions",
    "failures",
    "decisions",
    "listings",
    "resets",
    "liveness",
    "lineage",
)


def _told_per_pipeline(journals: Iterable[Journal]) -> Json:
    """The parts of the truth that are kept by pipeline."""
    parts: Json = {part: {} for part in _PARTS} | {"expectations": []}
    for journal in journals:
        pipeline, runs = journal.pipeline, journal.runs
        parts["pipelines"][pipeline.id] = {
            "name": pipeline.name,
            "kind": pipeline.kind,
            "events": len(journal.events),
        }
        parts["runs"][pipeline.id] = {run.update_id: run.as_json() for run in runs}
        parts["flows"][pipeline.id] = {
            run.update_id: {name: flow.as_json() for name, flow in run.flows.items()} for run in runs
        }
        parts["requests"][pipeline.id] = told.requests(runs)
        parts["user_actions"][pipeline.id] = dict(journal.actions)
        parts["failures"][pipeline.id] = told.failures(runs)
        parts["decisions"][pipeline.id] = told.decisions(runs)
        parts["listings"][pipeline.id] = told.listings(runs)
        parts["resets"][pipeline.id] = told.resets(runs)
        parts["liveness"][pipeline.id] = told.liveness(runs)
        parts["lineage"][pipeline.id] = {
            "edges": [edge._asdict() for edge in edges(pipeline)],
            "update_ids": [run.update_id for run in runs if run.is_defined],
        }
        parts["expectations"] += told.expectations(pipeline.id, runs)
    return parts
