"""What really happened: kept while events are made, from what they are meant to say, never by reading them back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from monitoring_platform.demo.events import Json, iso

T = TypeVar("T")


@dataclass
class FlowTruth:
    """What one flow did in one update; what nothing reported stays None."""

    status: str | None = None
    rows_output: int | None = None
    rows_upserted: int | None = None
    rows_deleted: int | None = None
    rows_dropped: int | None = None
    flow_id: str | None = None
    technique: str | None = None
    last_batch: int | None = None
    backlog: int | None = None
    listing_ms: int | None = None

    def add(self, amounts: dict[str, int]) -> None:
        """Count what one finished batch (or one gateway emission) reports."""
        for counter, amount in amounts.items():
            setattr(self, counter, (getattr(self, counter) or 0) + amount)

    def as_json(self) -> Json:
        """The flow's entry of the truth file."""
        return {"status": self.status, **{counter: getattr(self, counter) for counter in COUNTERS}}


ENDED = ("COMPLETED", "FAILED", "SKIPPED", "STOPPED", "EXCLUDED")
COUNTERS = ("rows_output", "rows_upserted", "rows_deleted", "rows_dropped")


@dataclass
class RunTruth:
    """One update. `first_event` is its earliest event, `ended_at` the time of its terminal state."""

    update_id: str
    request_id: str
    attempt: int
    first_event: int
    cause: str | None
    kind: str = "normal"
    is_full_refresh: bool | None = None
    status: str | None = None
    ended_at: int | None = None
    error_count: int = 0
    flows: dict[str, FlowTruth] = field(default_factory=dict)
    rules: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    root_error: str | None = None
    is_refused: bool = False
    is_defined: bool = False

    @property
    def seconds(self) -> float | None:
        """How long it took; None while it is open."""
        return None if self.ended_at is None else (self.ended_at - self.first_event) / 1000

    def flow(self, name: str) -> FlowTruth:
        """The entry of a flow, made when the flow first shows."""
        return self.flows.setdefault(name, FlowTruth())

    def judge(self, dataset: str, rule: str, passed: int, failed: int) -> None:
        """Count what a quality rule found in one batch."""
        before = self.rules.get((dataset, rule), (0, 0))
        self.rules[dataset, rule] = (before[0] + passed, before[1] + failed)

    def total(self, counter: str) -> int | None:
        """A counter over all flows; None when no flow reported it."""
        reported = [getattr(flow, counter) for flow in self.flows.values() if getattr(flow, counter) is not None]
        return sum(reported) if reported else None

    def as_json(self) -> Json:
        """The run's entry of the truth file."""
        return {
            "status": self.status,
            "cause": self.cause,
            "request_id": self.request_id,
            "attempt": self.attempt,
            "start_ts": iso(self.first_event),
            "end_ts": None if self.ended_at is None else iso(self.ended_at),
            "is_full_refresh": self.is_full_refresh,
            "kind": self.kind,
            **{counter: self.total(counter) for counter in COUNTERS},
            "flows": sorted(self.flows),
            "error_count": self.error_count,
        }


def requests(runs: Iterable[RunTruth]) -> dict[str, Json]:
    """What was asked for, each with the fate of its last attempt."""
    found: dict[str, Json] = {}
    for run in runs:
        entry = found.setdefault(run.request_id, {"attempts": 0, "kind": run.kind, "first_update_id": run.update_id})
        entry |= {"attempts": entry["attempts"] + 1, "outcome": run.status, "last_update_id": run.update_id}
    return found


def expectations(pipeline_id: str, runs: Iterable[RunTruth]) -> list[Json]:
    """One entry per rule, dataset and update."""
    return [
        {
            "pipeline_id": pipeline_id,
            "update_id": run.update_id,
            "dataset": dataset,
            "expectation": rule,
            "passed": passed,
            "failed": failed,
        }
        for run in runs
        for (dataset, rule), (passed, failed) in run.rules.items()
    ]


def failures(runs: Iterable[RunTruth]) -> dict[str, Json]:
    """By update: whether it failed or was refused, and the root error that makes it one of a group."""
    return {
        run.update_id: {"kind": "refused" if run.is_refused else "failed", "root_error": run.root_error}
        for run in runs
        if run.status == "FAILED"
    }


def resets(runs: Iterable[RunTruth]) -> list[Json]:
    """Every flow whose flow_id changed from one normal update to the next one that told it, and why."""
    found = []
    before: dict[str, tuple[str, str]] = {}
    for run in runs:
        for name, flow in run.flows.items() if run.kind == "normal" else ():
            if flow.flow_id is None:
                continue
            update_id, flow_id = before.get(name, (None, flow.flow_id))
            if flow_id != flow.flow_id:
                why = "full_refresh" if run.is_full_refresh else "recompute" if flow.technique == "full" else "reset"
                found.append(
                    {"update_id": run.update_id, "flow": name, "previous_update_id": update_id, "explanation": why}
                )
            before[name] = run.update_id, flow.flow_id
    return found


def decisions(runs: Iterable[RunTruth]) -> dict[str, dict[str, str]]:
    """By update and flow of a materialized view: full, incremental or no_op."""
    return _by_update_and_flow(runs, lambda flow: flow.technique)


def listings(runs: Iterable[RunTruth]) -> dict[str, dict[str, int]]:
    """By update and flow: how long the listing of files took, in ms."""
    return _by_update_and_flow(runs, lambda flow: flow.listing_ms)


def _by_update_and_flow(runs: Iterable[RunTruth], fact: Callable[[FlowTruth], T | None]) -> dict[str, dict[str, T]]:
    """What is known of flows, of those of which it is."""
    found: dict[str, dict[str, T]] = defaultdict(dict)
    for run in runs:
        for name, flow in run.flows.items():
            if (value := fact(flow)) is not None:
                found[run.update_id][name] = value
    return dict(found)


def liveness(runs: Iterable[RunTruth]) -> dict[str, Json]:
    """The flows that have not ended, of the newest normal update if it is open: when they last did something."""
    newest = max((run for run in runs if run.kind == "normal"), key=lambda run: run.first_event, default=None)
    if newest is None or newest.ended_at is not None:
        return {}
    return {
        name: {
            "update_id": newest.update_id,
            "last_batch_ts": None if flow.last_batch is None else iso(flow.last_batch),
            "state": _liveness_state(flow),
        }
        for name, flow in newest.flows.items()
        if flow.status not in ENDED
    }


def _liveness_state(flow: FlowTruth) -> str:
    if flow.last_batch is None or flow.backlog is None:
        return "unknown"
    return "working" if flow.backlog else "idle"
