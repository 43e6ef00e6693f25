"""Runs of jobs told in the shape of an event log, so that jobs share tables, objectives and incidents with pipelines.

A job is a pipeline of type `JOB` whose identity is its name; a run is an update, a step is a flow. The id of an event
follows from the run and from what it says: telling it again adds nothing. Of events at the same time the id orders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

#: `pipeline_type` of jobs: the mark of their kind in `pipelines` and `pipeline_runs`.
JOB = "JOB"
#: Code of the error of a run that was never heard of again.
LOST = "JOB_LOST"
_CLASS = re.compile(r"([A-Za-z_][\w.]*): (.*)", re.S)

Event = dict[str, Any]


class Run(NamedTuple):
    """Which run of which job."""

    run_id: str
    pipeline_name: str

    @property
    def pipeline_id(self) -> str:
        """Identity of the job."""
        return f"job:{self.pipeline_name}"


def _event(run: Run, id: str, at: datetime, event_type: str, body: Any, message: str, **more: Any) -> Event:
    origin = {
        "pipeline_id": run.pipeline_id,
        "pipeline_name": run.pipeline_name,
        "pipeline_type": JOB,
        "update_id": run.run_id,
    }
    flow = more.pop("flow", None)
    return {
        "id": f"{run.run_id}:{id}",
        "timestamp": at.isoformat(),
        "level": "INFO",
        "event_type": event_type,
        "message": message,
        "origin": {**origin, "flow_name": flow} if flow else origin,
        "details": {event_type: body},
        **more,
    }


def started(run: Run, at: datetime, config: Mapping[str, Any]) -> list[Event]:
    """The run began; `config` holds its version, its environment and the version of its code, where known."""
    return [
        _event(run, "created", at, "create_update", {"config": dict(config)}, f"Run of {run.pipeline_name} created."),
        _event(run, "running", at, "update_progress", {"state": "RUNNING"}, f"{run.pipeline_name} is RUNNING."),
    ]


def step_started(run: Run, number: int, name: str, at: datetime) -> Event:
    """A step began."""
    body = {"status": "RUNNING"}
    return _event(run, f"step {number}.0", at, "flow_progress", body, f"{name} is RUNNING.", flow=name)


def step_ended(
    run: Run,
    number: int,
    name: str,
    at: datetime,
    *,
    rows_out: int | None,
    rows_quarantined: int | None,
    expectations: Iterable[Mapping[str, Any]] = (),
    samples: Sequence[Mapping[str, Any]] = (),
    is_failed: bool = False,
    error: BaseException | None = None,
) -> Event:
    """A step ended: what it wrote, what its checks counted, and how it failed. None = not known, or told before.

    `samples` are rows that failed checks, redacted.
    """
    rules = [dict(rule) for rule in expectations]
    body: dict[str, Any] = {"status": "FAILED" if is_failed else "COMPLETED"}
    if rows_out is not None:
        body["metrics"] = {"num_output_rows": rows_out}
    if rules or rows_quarantined is not None:
        quality: dict[str, Any] = {"dropped_records": rows_quarantined, "expectations": rules}
        body["data_quality"] = {**quality, "samples": list(samples)} if samples else quality
    told: dict[str, Any] = {"level": "ERROR", "error": _error(error)} if error is not None else {}
    message = f"{name} has {body['status']}."
    return _event(run, f"step {number}.1", at, "flow_progress", body, message, flow=name, **told)


def checked(run: Run, name: str, at: datetime, expectation: Mapping[str, Any]) -> Event:
    """One check by itself."""
    body = {"data_quality": {"dropped_records": None, "expectations": [dict(expectation)]}}
    return _event(run, f"check {expectation['name']}", at, "flow_progress", body, "Checked.", flow=name)


def text_of(error: BaseException) -> str:
    """The text of an exception, whatever its class makes of it."""
    try:
        text = str(error)
    except Exception as problem:
        return f"({type(problem).__name__} in its __str__)"
    return text.encode("utf-8", "replace").decode()


def _error(error: BaseException) -> dict[str, Any]:
    """An exception with what caused it, outermost first, as a log has it."""
    exceptions: list[dict[str, Any]] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames, place = [], current.__traceback__
        while place is not None:
            code = place.tb_frame.f_code
            frames.append(
                {"method_name": code.co_name, "file_name": code.co_filename, "line_number": place.tb_lineno},
            )
            place = place.tb_next
        exceptions.append({"class_name": type(current).__name__, "message": text_of(current), "stack": frames[-50:]})
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return {"fatal": True, "exceptions": exceptions}


def ended(metrics: Mapping[str, Any]) -> list[Event]:
    """The run of a row of `pipeline_metrics`: its start and its end. Times are aware datetimes.

    A status other than success or failed (rows written by hand may have any) is passed on in capital letters.
    """
    run = Run(metrics["run_id"], metrics["pipeline_name"])
    status = str(metrics["status"] or "").lower()
    state = {"success": "COMPLETED", "failed": "FAILED", "cancelled": "CANCELED"}.get(status, status.upper())
    told: dict[str, Any] = {}
    if metrics["error_message"] and state != "COMPLETED":
        match = _CLASS.fullmatch(metrics["error_message"])
        exception = {"message": metrics["error_message"]}
        if match and match[1].endswith(("Error", "Exception", "Interrupt", "Exit", "Failed")):
            exception = {"class_name": match[1], "message": match[2]}
        told = {"level": "ERROR", "error": {"fatal": True, "exceptions": [exception]}}
    begun = started(run, metrics["started_at"], {})[1:] if metrics["started_at"] else []
    end = _event(
        run,
        "ended",
        metrics["completed_at"],
        "update_progress",
        {"state": state or None},
        f"{run.pipeline_name} is {state}.",
        **told,
    )
    return [*begun, end]


def lost(run: Run, last_seen: datetime, silence_seconds: float) -> Event:
    """Nothing was heard of the run for longer than it promised: it counts as failed when it was last heard of.

    If it ends after all, that end is later, and counts.
    """
    text = f"[{LOST}] no sign of life for {silence_seconds:g} s: its process was killed or its machine is gone"
    return _event(
        run,
        f"lost {last_seen.isoformat()}",
        last_seen,
        "update_progress",
        {"state": "FAILED"},
        text,
        level="ERROR",
        error={"fatal": True, "exceptions": [{"class_name": "JobLost", "message": text}]},
    )
