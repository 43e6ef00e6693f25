"""Time and memory of whole processes, with everything that they start."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1024 * 1024
SAMPLE_EVERY_S = 0.2
PROC = Path("/proc")


@dataclass(frozen=True)
class Measured:
    """What one process, with its descendants, took."""

    exit_code: int
    seconds: float
    cpu_seconds: float
    max_rss_mib: float
    taken_by_others: float  # share of the machine's CPU time meanwhile; near 0 when the figure can be trusted


@dataclass
class Tree:
    """A process and its descendants, looked at from time to time (on Linux; elsewhere it stays empty)."""

    root: int
    max_rss_mib: float = 0.0
    cpu_s: dict[int, float] = field(default_factory=dict)

    def look(self) -> None:
        """Note the memory now and the CPU time so far."""
        stats = _stats()
        family = [stats[pid] for pid in _descendants(self.root, stats)]
        self.cpu_s |= {stat.pid: stat.cpu_s for stat in family}
        rss = sum({stat.memory: stat.rss for stat in family}.values())
        self.max_rss_mib = max(self.max_rss_mib, rss / MIB)

    def wait_for_stragglers(self, at_most_s: float = 20) -> None:
        """Let descendants that outlive the root (a JVM shutting down) end, for the next process needs the machine."""
        until = time.monotonic() + at_most_s
        while time.monotonic() < until and any((PROC / str(pid)).exists() for pid in self.cpu_s):
            time.sleep(0.1)


@dataclass(frozen=True)
class _Stat:
    pid: int
    parent: int
    rss: int
    cpu_s: float
    memory: tuple[str, str]  # the same for a child that has its parent's memory still, between fork and exec


def _stats() -> dict[int, _Stat]:
    """What the kernel says of every process."""
    found = {}
    page, tick = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    for folder in PROC.glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        pid, cpu_s, vsize, start_of_stack = int(folder.name), int(fields[11]) + int(fields[12]), fields[20], fields[25]
        found[pid] = _Stat(pid, int(fields[1]), int(fields[21]) * page, cpu_s / tick, (vsize, start_of_stack))
    return found


def _descendants(root: int, stats: Mapping[int, _Stat]) -> set[int]:
    """`root`, if alive, and all processes below it."""
    family = {root} & stats.keys()
    while more := {pid for pid, stat in stats.items() if stat.parent in family} - family:
        family |= more
    return family


def measure(command: Sequence[str], *, log: Path, cwd: Path, env: Mapping[str, str]) -> Measured:
    """Run a command to its end, its output in `log`.

    The memory is the larger of the tree's sampled sum and the largest single process (which sampling may miss). The
    kernel counts the caller's memory at the start into the latter: keep the calling process small.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        begin, busy = time.perf_counter(), _busy_s()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=cwd, env=dict(env))
        tree, done = Tree(process.pid), threading.Event()
        sampler = threading.Thread(target=_sample, args=(tree, done), daemon=True)
        sampler.start()
        _, status, usage = os.wait4(process.pid, 0)
        seconds, busy = time.perf_counter() - begin, _busy_s() - busy
    process.returncode = os.waitstatus_to_exitcode(status)
    done.set()
    sampler.join()
    tree.wait_for_stragglers()
    largest = usage.ru_maxrss / (MIB if sys.platform == "darwin" else 1024)
    cpu_s = max(usage.ru_utime + usage.ru_stime, sum(tree.cpu_s.values()))
    others = max(0.0, busy - cpu_s) / (seconds * (os.cpu_count() or 1))
    return Measured(
        exit_code=process.returncode,
        seconds=round(seconds, 2),
        cpu_seconds=round(cpu_s, 2),
        max_rss_mib=round(max(tree.max_rss_mib, largest)),
        taken_by_others=round(others, 2),
    )


def _busy_s() -> float:
    """CPU seconds that all processes of this machine have used, 0 where the kernel does not say."""
    try:
        fields = (PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return 0.0
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields)
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _sample(tree: Tree, done: threading.Event) -> None:
    while not done.wait(SAMPLE_EVERY_S):
        tree.look()
