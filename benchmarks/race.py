"""Contestants on the same logs: one initial load each, then increments, every table verified."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from deltalake import DeltaTable

from benchmarks import data
from benchmarks.contestants import Contestant, Failed
from benchmarks.process import Measured

TOUCHED = 10
NEW_EVENTS = 100

T = TypeVar("T")


def say(text: str) -> None:
    """Progress, for people."""
    print(text, file=sys.stderr, flush=True)


def apart(function: Callable[..., T], *arguments: Any) -> T:
    """Call in a process of its own, for this one must stay small (see `process.measure`)."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def count_rows(table: Path) -> int:
    """Rows of a Delta table."""
    rows: int = DeltaTable(str(table)).to_pyarrow_dataset().count_rows()
    return rows


@dataclass
class Fleet:
    """Generated logs and how many events they hold by now."""

    logs: Path
    pipelines: int
    events: int
    seed: int
    total: int = 0

    def write(self) -> None:
        """Write the history of all pipelines."""
        say(f"writing {self.pipelines} logs of {self.events:,} events")
        self.total = apart(data.write_logs, self.logs, self.pipelines, self.events, self.seed)

    def grow(self, turn: int) -> None:
        """Append the increment of this turn."""
        touched = min(TOUCHED, self.pipelines)
        self.total += apart(data.append_increment, self.logs, self.pipelines, self.seed, turn, touched, NEW_EVENTS)


@dataclass
class Race:
    """The measurements of some contestants on one fleet; one that failed is not run again."""

    fleet: Fleet
    contestants: list[Contestant]
    initial: dict[str, Measured] = field(default_factory=dict)
    increments: dict[str, list[Measured]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def run_turn(self, turn: int) -> None:
        """Turn 0 writes the logs and loads them, the others add to them and run one cycle."""
        if turn:
            self.fleet.grow(turn)
        else:
            self.fleet.write()
        for contestant in self.contestants:
            if contestant.name not in self.failures:
                self._run(contestant, turn)

    def _run(self, contestant: Contestant, turn: int) -> None:
        try:
            measured = self._cycle(contestant, turn)
        except Failed as failure:
            say(f"FAILED {failure}")
            self.failures[contestant.name] = str(failure)
            return
        if turn:
            self.increments.setdefault(contestant.name, []).append(measured)
        else:
            self.initial[contestant.name] = measured

    def _cycle(self, contestant: Contestant, turn: int) -> Measured:
        """Run one contestant and verify that its table holds every event once."""
        phase = f"increment_{turn}" if turn else "initial"
        measured = contestant.run(phase, data.END + timedelta(hours=turn))
        rows, expected = apart(count_rows, contestant.table), self.fleet.total
        if rows != expected:
            raise Failed(f"{contestant.name}, {phase}: {rows:,} rows in {contestant.table}, expected {expected:,}")
        took = f"{measured.seconds:8.1f} s, {measured.cpu_seconds:8.1f} s of CPU, {measured.max_rss_mib:8,.0f} MiB"
        took += f", {measured.taken_by_others:.0%} of the machine taken by others"
        say(f"  {contestant.name:18} {phase:12} {took}")
        return measured

    def seconds(self, name: str, phase: str) -> float | None:
        """Seconds of the initial load, or the median of the increments."""
        if phase == "initial":
            return self.initial[name].seconds if name in self.initial else None
        runs = self.increments.get(name)
        return round(median(run.seconds for run in runs), 2) if runs else None

    def disturbed(self, limit: float = 0.1) -> list[str]:
        """Runs during which others took more than this share of the machine."""
        runs = {f"{name} initial": run for name, run in self.initial.items()}
        for name, increments in self.increments.items():
            runs |= {f"{name} increment_{turn}": run for turn, run in enumerate(increments, 1)}
        return [f"{title} ({run.taken_by_others:.0%})" for title, run in runs.items() if run.taken_by_others > limit]

    def as_json(self) -> dict[str, Any]:
        """All runs of all contestants."""
        return {name: self._phases(name) for name in self.initial}

    def _phases(self, name: str) -> dict[str, Any]:
        phases: dict[str, Any] = {"initial": asdict(self.initial[name])}
        if runs := self.increments.get(name):
            peak = max(run.max_rss_mib for run in runs)
            phases["increment"] = {"seconds": self.seconds(name, "increment"), "max_rss_mib": peak}
            phases["increment_runs"] = [asdict(run) for run in runs]
        return phases
