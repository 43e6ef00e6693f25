"""Killed at random moments, overlapping, and again: the tables equal those of a run without kills."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable

from tests.acceptance.test_any_order import EVENTS, snapshot
from tests.conftest import Site, state

KILLS = 26


def _start(site: Site) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.acceptance.one_cycle", str(site.folder / "monitoring.yaml")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _grow(site: Site, number: int, chance: random.Random) -> None:
    """New events of several pipelines, a repeat, a broken line, and half a line that the next growth completes."""
    rows = [
        state(f"k{number}-{i}", number * 10 + i, "RUNNING", pipeline_id=f"p{i}", update_id=f"u{number}")
        for i in range(3)
    ]
    site.write(f"log{number % 4}.jsonl", *rows, *chance.choices(EVENTS, k=2))
    with (site.logs / "broken.jsonl").open("ab") as file:
        file.write(b'"}\n{"half": ' if number % 2 else b'{"id": no json}\n{"half": "')


def test_sigkill_at_random_moments(make_site: Callable[..., Site]) -> None:
    """No event is lost or doubled when the process is killed at any point."""
    chance = random.Random(20260101)
    killed = make_site("killed")
    interrupted = 0
    for number in range(KILLS):
        _grow(killed, number, chance)
        process = _start(killed)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.random() * 5)
        interrupted += process.poll() is None
        process.kill()
        process.wait()
    assert interrupted >= KILLS // 3
    last = _start(killed)
    assert last.wait() == 0

    calm = make_site("calm")
    shutil.copytree(killed.logs, calm.logs, dirs_exist_ok=True)
    calm.cycle()
    assert snapshot(killed) == snapshot(calm)


def test_runs_that_overlap(make_site: Callable[..., Site]) -> None:
    """R-OPS-02: a second start while one runs waits, both end well, nothing is doubled."""
    both = make_site("both")
    both.write("a.jsonl", *EVENTS)
    processes = [_start(both), _start(both)]
    assert [process.wait() for process in processes] == [0, 0]
    once = make_site("once")
    once.write("a.jsonl", *EVENTS)
    once.cycle()
    assert snapshot(both) == snapshot(once)
