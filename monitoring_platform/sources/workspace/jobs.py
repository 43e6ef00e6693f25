"""Runs of jobs that refresh pipelines, by the Jobs API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson

from monitoring_platform.event_log.redact import Policy, redact_value
from monitoring_platform.sources.base import SourceError
from monitoring_platform.sources.workspace.client import Workspace
from monitoring_platform.sources.workspace.timeline import moment

Row = dict[str, Any]  # of `job_runs`
_RUNS, _RUN, _JOBS = "/api/2.2/jobs/runs/list", "/api/2.2/jobs/runs/get", "/api/2.2/jobs/list"
_RUNS_PAGE, _JOBS_PAGE = 24, 100  # documented as less than 25, and at most 100
_STEP = timedelta(days=1)


class Job(NamedTuple):
    """What the settings of a job say."""

    name: str | None
    tags: Mapping[str, str]


def started(workspace: Workspace, since: datetime, now: datetime) -> Iterator[tuple[list[dict[str, Any]], datetime]]:
    """Runs with pipeline tasks that started from `since` on, a day at a time; up to when there are no others.

    Raises SourceError.
    """
    while since <= now:
        stop = since + _STEP
        query = {"expand_tasks": "true", "limit": _RUNS_PAGE, "start_time_from": _millis(since)}
        if stop <= now:  # the last part has no end: the clock there may be ahead of ours
            query["start_time_to"] = _millis(stop)
        runs = list(workspace.pages(_RUNS, query, "runs"))
        reached = stop if stop <= now else max((start(run) or since for run in runs), default=since)
        yield [whole for run in runs if (whole := _whole(workspace, run))], reached
        since = stop


def again(workspace: Workspace, run_ids: Iterable[str]) -> list[dict[str, Any]]:
    """These runs as they are now; one that is gone is left out. Raises SourceError."""
    found = []
    for run_id in run_ids:
        try:
            found.append(_with_all_tasks(workspace, workspace.get(_RUN, {"run_id": run_id})))
        except SourceError as error:
            if error.transient:
                raise
    return found


def jobs(workspace: Workspace, wanted: set[str]) -> dict[str, Job]:
    """These jobs by id, as far as they may be seen and are still there. Raises SourceError."""
    found: dict[str, Job] = {}
    if not wanted:
        return found
    for job in workspace.pages(_JOBS, {"limit": _JOBS_PAGE}, "jobs"):
        job_id, settings = str(job["job_id"]), job.get("settings") or {}
        if job_id in wanted:
            found[job_id] = Job(settings.get("name"), settings.get("tags") or {})
            if len(found) == len(wanted):
                break
    return found


def is_open(run: dict[str, Any]) -> bool:
    """Whether a run has not ended."""
    return moment(run.get("end_time")) is None


def rows(
    run: dict[str, Any], known: Mapping[str, Job], tags: Mapping[str, Mapping[str, str]], policy: Policy
) -> list[Row]:
    """The pipeline tasks of a run. `known`: jobs by id; `tags`: of pipelines by id."""
    job = known.get(str(run["job_id"]), Job(None, {}))
    name, job_tags = redact_value([job.name or run.get("run_name"), dict(job.tags)], policy)
    started_at = start(run)
    return [
        {
            "job_run_id": str(run.get("job_run_id") or run["run_id"]),
            "task_run_id": str(task["run_id"]),
            "pipeline_id": pipeline_id,
            "started_at": moment(task.get("start_time")) or started_at,
            "job_id": str(run["job_id"]),
            "job_name": name,
            "job_tags": _as_json(job_tags),
            "task_key": task.get("task_key"),
            "trigger": run.get("trigger"),
            "run_start_time": started_at,
            "run_end_time": moment(run.get("end_time")),
            "result_state": _result(run),
            "task_end_time": moment(task.get("end_time")),
            "task_result_state": _result(task),
            "pipeline_tags": _as_json(tags.get(pipeline_id, {})),
        }
        for task in run.get("tasks") or ()
        if (pipeline_id := (task.get("pipeline_task") or {}).get("pipeline_id"))
    ]


def _as_json(tags: Mapping[str, str]) -> str:
    """Tags as JSON text, in the order of their keys."""
    return orjson.dumps(dict(tags), option=orjson.OPT_SORT_KEYS).decode()


def _whole(workspace: Workspace, run: dict[str, Any]) -> dict[str, Any] | None:
    """A listed run with all its tasks; None if none of them refreshes a pipeline."""
    run = _with_all_tasks(workspace, run)
    return run if any("pipeline_task" in task for task in run.get("tasks") or ()) else None


def _with_all_tasks(workspace: Workspace, run: dict[str, Any]) -> dict[str, Any]:
    """A run says its first 100 tasks, and that there are more."""
    if not (run.get("has_more") or run.get("next_page_token")):
        return run
    return {**run, "tasks": list(workspace.pages(_RUN, {"run_id": run["run_id"]}, "tasks"))}


def _result(run: dict[str, Any]) -> str | None:
    """The result of a run or task; the newer field says it where the older one is left out."""
    state = run.get("state") or {}
    ending = (run.get("status") or {}).get("termination_details") or {}
    found = state.get("result_state") or ending.get("code")
    return str(found) if found else None


def start(run: dict[str, Any]) -> datetime | None:
    return moment(run.get("start_time"))


def _millis(at: datetime) -> int:
    return round(at.timestamp() * 1000)
