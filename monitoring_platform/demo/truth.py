"""What really happened: kept while events are made, from what they are meant to say, never by reading them back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from monitoring_platform.demo.events import Json, iso


@dataclass
class FlowTruth:
    """What one flow did in one update; a counter that nothing reported stays None."""

    status: str | None = None
    rows_output: int | None = None
    rows_upserted: int | None = None
    rows_deleted: int | None = None
    rows_dropped: int | None = None

    def add(self, amounts: dict[str, int]) -> None:
        """Count what one finished batch (or one gateway emission) reports."""
        for counter, amount in amounts.items():
            setattr(self, counter, (getattr(self, counter) or 0) + amount)

    def as_json(self) -> Json:
        """The flow's entry of the truth file."""
        return {"status": self.status, **{counter: getattr(self, counter) for counter in COUNTERS}}


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
