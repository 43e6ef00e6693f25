"""Who is measured: the product on an engine, and the three baselines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.process import Measured, measure

ROOT = Path(__file__).resolve().parents[1]
BASELINES = {
    "a": "Spark: a stream per pipeline, full recompute",
    "b": "Spark: one job copies the files",
    "c": "pyarrow and delta-rs copy the files",
}


class Failed(Exception):
    """A contestant did not do its work; the message says what happened and where its output is."""


@dataclass(frozen=True)
class Contestant:
    """One solution, run as whole processes against `logs`, with all it writes in `home`."""

    name: str
    title: str
    home: Path
    table: Path  # the one table that has every event in the end
    command: Callable[[datetime], list[str]]

    def run(self, phase: str, now: datetime) -> Measured:
        """One cycle; raise `Failed` unless it ends with exit code 0."""
        log = self.home / f"{phase}.log"
        env = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
        try:
            measured = measure(self.command(now), log=log, cwd=ROOT, env=env)
        except FileNotFoundError as error:
            raise Failed(f"{self.name}: {error.filename} is missing; install the project first") from None
        if measured.exit_code != 0:
            last = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise Failed(f"{self.name}, {phase}: exit code {measured.exit_code}, see {log}\n{last}")
        return measured


def product(engine: str, logs: Path, work: Path) -> Contestant:
    """`monitoring-platform run` with the smallest configuration that reads all logs."""
    home = work / f"product_{engine}"
    home.mkdir(parents=True)
    config = home / "monitoring.yaml"
    config.write_text(
        f"engine: {engine}\nwarehouse:\n  path: ./warehouse\nsources:\n  - type: delta\n    path: {logs}/*\n"
    )
    program = Path(sys.executable).with_name("monitoring-platform")

    def command(now: datetime) -> list[str]:
        return [str(program), "run", "--config", str(config), "--now", now.isoformat()]

    table = home / "warehouse" / "all_pipelines_event_log"
    return Contestant(home.name, f"monitoring-platform run, engine {engine}", home, table, command)


def baseline(letter: str, logs: Path, work: Path) -> Contestant:
    """One of the three baselines, a script of its own."""
    home = work / letter

    def command(now: datetime) -> list[str]:
        return [sys.executable, "-m", f"benchmarks.baseline_{letter}", "--logs", str(logs), "--out", str(home)]

    return Contestant(letter, BASELINES[letter], home, home / "all_events", command)
