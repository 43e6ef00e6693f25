"""`monitored_run`: what a job did, recorded while it does it, and never at its expense.

At the start a small file says that the run is under way. At its end three tables get their rows: the steps, the checks,
and last the metrics, whose row makes the run ended. All of it happens beside the job within a bounded time; what cannot
be written is logged and named in `Run.problems`. Exceptions pass through unchanged.
"""

from __future__ import annotations

import inspect
import logging
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from datetime import datetime, timezone
from functools import partial, wraps
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from monitoring_platform.event_log import job_events
from monitoring_platform.event_log.job_events import Event
from monitoring_platform.event_log.redact import redact_text
from monitoring_platform.recording import frames
from monitoring_platform.recording.bounded import SECONDS, attempt, warn
from monitoring_platform.recording.checks import Check, ChecksFailed, Result
from monitoring_platform.recording.signs import Signs
from monitoring_platform.recording.store import Store, open_store
from monitoring_platform.recording.tables import EVENTS, METRICS, QUALITY_CHECKS, event_row, metrics_row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_log = logging.getLogger("monitoring_platform")
DEFAULT_TARGET_MINUTES = 45
_ERROR_LIMIT = 4000
F = TypeVar("F", bound=Callable[..., Any])

_current: ContextVar[Run | None] = ContextVar("monitored_run", default=None)
_inside: ContextVar[str | None] = ContextVar("monitored_step", default=None)


def utc_now() -> datetime:
    """The clock of jobs."""
    return datetime.now(timezone.utc)


class Report(NamedTuple):
    """What an alert says: how a run went."""

    run_id: str
    pipeline_name: str
    status: str
    error_message: str | None
    failed_checks: tuple[str, ...]  # names of checks that failed, except those that are only recorded
    duration_minutes: float
    slo_met: bool

    @property
    def text(self) -> str:
        """For people, in one line or two."""
        text = f"{self.pipeline_name}: {self.status} after {self.duration_minutes:.2f} min"
        text += "" if self.slo_met else ", target missed"
        text += f"\nchecks failed: {', '.join(self.failed_checks)}" if self.failed_checks else ""
        return text + (f"\n{self.error_message}" if self.error_message else "")


class Step:
    """A part of a run. Set `rows_in` and `rows_out` where they are known; `write` does it by itself."""

    def __init__(self, run: Run, name: str, number: int) -> None:
        self.name, self._run, self._number = name, run, number
        self.rows_in: int | None = None
        self.rows_out: int | None = None
        self.rows_quarantined: int | None = None
        self.results: list[tuple[str, Result]] = []
        self.samples: list[dict[str, Any]] = []

    def check(
        self, frame: DataFrame, checks: list[Check], dataset: str | None = None, *, sample: int = 0
    ) -> list[Result]:
        """Evaluate all checks in one pass over the frame. Raises ChecksFailed if one fails whose action is `fail`.

        With `sample` so many of the rows that failed (at most 100) are kept with the results, redacted.
        """
        found = frames.evaluate(frame, checks, self._run.clock(), self._run.last_count)
        self._keep(frame, found, dataset or self.name, sample)
        return found

    def write(
        self,
        frame: DataFrame,
        target: str,
        checks: list[Check] | None = None,
        *,
        mode: str = "append",
        options: dict[str, str] | None = None,
        sample: int = 0,
    ) -> list[Result]:
        """Write a frame to a Delta table (its name or path), and evaluate the checks as part of it.

        Rows that a check with `quarantine` does not know to be good go to `<target>_quarantine` instead, with
        `quality_flag`, `failed_checks` and `run_id`. If a check with action `fail` fails, nothing is written and
        ChecksFailed is raised. Counts are added to those of the step. `sample` as for `check`.
        """
        made = frames.write(
            frame,
            target,
            checks or [],
            self._run.clock(),
            self._run.last_count,
            run_id=self._run.run_id,
            mode=mode,
            options=options or {},
            judge=lambda results: self._keep(frame, results, target, sample),
        )
        if self.rows_in is None:
            self.rows_in = made.rows_in
        self.rows_out = (self.rows_out or 0) + made.rows_in - made.rows_quarantined
        if made.has_quarantine:
            self.rows_quarantined = (self.rows_quarantined or 0) + made.rows_quarantined
        return made.results

    def _keep(self, frame: DataFrame, results: list[Result], dataset: str, sample: int) -> None:
        self.results += [(dataset, result) for result in results]
        self._run.results += results
        try:
            self.samples += [{"dataset": dataset, "row": row} for row in frames.sampled(frame, results, sample)]
        except Exception as error:
            self._run.problems.append(warn("sample", error))
        blocking = [result.check.name for result in results if not result.passed and result.check.action == "fail"]
        if blocking:
            raise ChecksFailed(blocking)


class Run:
    """One run. Use it through `monitored_run`."""

    def __init__(
        self,
        pipeline_name: str,
        store: Callable[[], Store],
        *,
        pipeline_version: str = "1.0",
        slo_target_minutes: int = DEFAULT_TARGET_MINUTES,
        environment: str | None = None,
        code_version: str | None = None,
        alert: Callable[[Report], object] | None = None,
        clock: Callable[[], datetime] = utc_now,
        heartbeat_seconds: float = 60.0,
        lost_after_seconds: float = 300.0,
        write_seconds: float = SECONDS,
    ) -> None:
        self.run_id, self.pipeline_name, self.pipeline_version = str(uuid.uuid4()), pipeline_name, pipeline_version
        self.slo_target_minutes, self.clock = slo_target_minutes, clock
        self.started_at = clock()
        self.status: str | None = None  # None while it runs, then success or failed
        self.duration_minutes: float | None = None
        self.slo_met: bool | None = None
        self.rows_processed: int | None = None  # by default what the first step read
        self.results: list[Result] = []
        self.problems: list[str] = []  # what could not be recorded
        self._open = store
        self._store: Store | None = None
        self._environment, self._code_version, self._alert = environment, code_version, alert
        self._beat_seconds, self._silence_seconds, self._seconds = heartbeat_seconds, lost_after_seconds, write_seconds
        self._steps: list[Step] = []
        self._numbers = count(1)  # steps may begin in several threads
        self._rows: list[dict[str, Any]] = []
        self._signs: Signs | None = None
        self._is_telling = True  # until telling fails or hangs once: the job waits for that once, not for each step
        self._told_error: BaseException | None = None

    # ---- for the job ----

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """A named part of the run; steps may be nested, and run in threads."""
        outer = _inside.get()
        step = Step(self, f"{outer}/{name}" if outer else name, next(self._numbers))
        self._steps.append(step)
        begun = partial(job_events.step_started, self._identity, step._number, step.name)
        self._is_telling &= self._attempt("step", lambda: self._tell(begun(self.clock())))
        token = _inside.set(step.name)
        try:
            yield step
        except BaseException as error:
            self._step_ended(step, error)
            raise
        else:
            self._step_ended(step, None)
        finally:
            _inside.reset(token)

    def check(
        self, frame: DataFrame, checks: list[Check], dataset: str | None = None, *, sample: int = 0
    ) -> list[Result]:
        """`Step.check` as a step of its own."""
        with self.step(dataset or "checks") as step:
            return step.check(frame, checks, dataset, sample=sample)

    def write(
        self,
        frame: DataFrame,
        target: str,
        checks: list[Check] | None = None,
        *,
        mode: str = "append",
        options: dict[str, str] | None = None,
        sample: int = 0,
    ) -> list[Result]:
        """`Step.write` as a step of its own."""
        with self.step(os.path.basename(target)) as step:
            return step.write(frame, target, checks, mode=mode, options=options, sample=sample)

    @property
    def rows_quarantined(self) -> int | None:
        """Rows that all steps together put into quarantine; None if none of them counted."""
        counts = [step.rows_quarantined for step in self._steps if step.rows_quarantined is not None]
        return sum(counts) if counts else None

    def last_count(self, check_name: str) -> int | None:
        """Rows that a check of this job saw in its last run; None if that is not known."""
        found: list[int | None] = []
        store = self._store
        if store is not None:
            self._attempt("last count", lambda: found.append(store.last_count(self.pipeline_name, check_name)))
        return found[0] if found else None

    # ---- its beginning and its end ----

    def begin(self) -> None:
        """Say that the run is under way."""
        try:
            self._store = self._open()
            running = self._store.running
        except Exception as error:
            self.problems.append(warn("records", error))
            return
        config = {
            "version": self.pipeline_version,
            "environment": self._environment,
            "code_version": self._code_version,
        }
        events = job_events.started(self._identity, self.started_at, {k: v for k, v in config.items() if v is not None})
        self._rows += [event_row(event) for event in events]
        if running is None:
            _log.warning("monitoring of this run: nobody sees that it is killed; records in a folder or volume tell it")
        else:
            signs = self._signs = Signs(running, self._identity, self._silence_seconds, self.clock)
            self._attempt("start", lambda: signs.begin(events, self._beat_seconds))

    def end(self, error: BaseException | None) -> None:
        """Record the end; `error` is what ended the run, None = success."""
        completed_at = self.clock()
        self.status = "failed" if error is not None else "success"
        if not self._steps or (error is not None and error is not self._told_error):
            whole = Step(self, self.pipeline_name, 0)
            whole.rows_in = whole.rows_out = self.rows_processed if not self._steps else None
            self._step_ended(whole, error)
        if self.rows_processed is None and self._steps:
            self.rows_processed = next((s.rows_in for s in self._steps if s.rows_in is not None), None)
        message = None
        if error is not None:
            message = (redact_text(f"{type(error).__name__}: {job_events.text_of(error)}") or "")[:_ERROR_LIMIT]
        metrics = metrics_row(
            run_id=self.run_id,
            pipeline_name=self.pipeline_name,
            pipeline_version=self.pipeline_version,
            started_at=self.started_at,
            completed_at=completed_at,
            rows_processed=self.rows_processed,
            rows_quarantined=self.rows_quarantined,
            slo_target_minutes=self.slo_target_minutes,
            status=self.status,
            error_message=message,
        )
        minutes, is_met = metrics["duration_minutes"], metrics["slo_met"]
        self.duration_minutes, self.slo_met = minutes, is_met
        if self._store is not None:
            store = self._store
            written = self._attempt("records", lambda: self._write(store, metrics))
            signs = self._signs
            if signs is not None:
                self._attempt("end", signs.end if written else signs.leave)
        failed = tuple(r.check.name for r in self.results if not r.passed and r.check.action != "record")
        alert = self._alert
        if alert is not None and (error is not None or failed or not is_met):
            report = Report(self.run_id, self.pipeline_name, self.status, message, failed, minutes, is_met)
            self._attempt("alert", lambda: alert(report))

    def _write(self, store: Store, metrics: dict[str, Any]) -> None:
        """All rows of the run; the one that makes it ended comes last."""
        store.append(EVENTS, self._rows)
        checks = [result.row(self.run_id, self.pipeline_name) for result in self.results]
        if checks:
            store.append(QUALITY_CHECKS, checks)
        store.append(METRICS, [metrics])

    # ---- what is told on the way ----

    @property
    def _identity(self) -> job_events.Run:
        return job_events.Run(self.run_id, self.pipeline_name)

    def _step_ended(self, step: Step, error: BaseException | None) -> None:
        is_new = error is not self._told_error  # the outer ones of nested steps do not repeat it
        self._told_error = error if error is not None else self._told_error

        def tell() -> None:
            event = job_events.step_ended(
                self._identity,
                step._number,
                step.name,
                self.clock(),
                rows_out=step.rows_out,
                rows_quarantined=step.rows_quarantined,
                expectations=[result.expectation(dataset) for dataset, result in step.results],
                samples=step.samples,
                is_failed=error is not None,
                error=error if is_new else None,
            )
            self._tell(event, step)

        self._is_telling &= self._attempt("step", tell)

    def _tell(self, event: Event, step: Step | None = None) -> None:
        """Keep the row of an event for the end, and the event itself where the run is known to be under way."""
        row = event_row(event)
        if step is not None:
            counts = {name: getattr(step, name) for name in ("rows_in", "rows_out", "rows_quarantined")}
            row |= {**counts, "checks": [result.extra() for _, result in step.results]}
        self._rows.append(row)
        signs = self._signs
        if signs is not None and self._is_telling:
            told = {**event, "error": row["error"]} if row["error"] else event
            signs.tell(told)

    def _attempt(self, what: str, action: Callable[[], object]) -> bool:
        problem = attempt(what, action, self._seconds)
        if problem is not None:
            self.problems.append(problem)
        return problem is None


class monitored_run:
    """Record a run: `with monitored_run("job") as run: …`, or `@monitored_run("job")` on a function or coroutine.

    Args:
        pipeline_name: the job; what stands before the first `_` is its layer, such as silver_orders.
        place: where records go: a folder, or `catalog.schema` through the job's Spark session. By default the
            environment variable MONITORING_RECORDS, else `monitoring.pipeline_ops`.
        settings: see `Run`: pipeline_version, slo_target_minutes, environment and code_version (by default the
            variables MONITORING_ENVIRONMENT and MONITORING_CODE_VERSION), alert, and the bounds in seconds.
    """

    def __init__(self, pipeline_name: str, place: str | os.PathLike[str] | None = None, **settings: Any) -> None:
        settings.setdefault("environment", os.environ.get("MONITORING_ENVIRONMENT"))
        settings.setdefault("code_version", os.environ.get("MONITORING_CODE_VERSION"))
        self._make = partial(Run, pipeline_name, partial(open_store, place), **settings)
        self._run: Run | None = None

    def __enter__(self) -> Run:
        if self._run is not None:
            raise RuntimeError("this monitored_run was entered before: make one for each run")
        run = self._run = self._make()
        run.begin()
        self._tokens = _current.set(run), _inside.set(None)
        return run

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._run is not None
        _current.reset(self._tokens[0])
        _inside.reset(self._tokens[1])
        is_success = isinstance(error, SystemExit) and error.code in (None, 0)
        try:
            self._run.end(None if is_success else error)
        except Exception:  # such as a clock that fails: the job's own end must not be hidden
            _log.exception("monitoring of this run: its end could not be recorded")

    def __call__(self, function: F) -> F:
        """A function each of whose calls is a run; inside, `current_run()` is the run."""
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError("a generator ends when its consumer likes: use `with monitored_run(…)` inside it")
        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def waited(*args: Any, **kwargs: Any) -> Any:
                with self._fresh():
                    return await function(*args, **kwargs)

            return waited  # type: ignore[return-value]

        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                return function(*args, **kwargs)

        return called  # type: ignore[return-value]

    def _fresh(self) -> monitored_run:
        made = copy(self)
        made._run = None
        return made


def current_run() -> Run:
    """The run that this code is part of. Raises RuntimeError outside of one."""
    run = _current.get()
    if run is None:
        raise RuntimeError("no monitored_run is under way here")
    return run
