"""Initial load and incremental cycle: the product against the usual solution on Spark and two floors.

    .venv/bin/python -m benchmarks.ingest                    # 100 logs of 2,000 events
    .venv/bin/python -m benchmarks.ingest --events 10000     # 1 M events
    .venv/bin/python -m benchmarks.ingest --engine embedded,spark --only product
    .venv/bin/python -m benchmarks.ingest --growth           # does a cycle cost more when the history is longer?

Whole processes are timed, start-up, Dagster and JVM included. All contestants read the same logs: first the initial
load of each, then, `--repeat` times, ten pipelines get 100 new events each and every contestant runs one cycle. A
table that does not hold exactly the events that exist is a failure. The result is JSON, a short table goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.contestants import BASELINES, baseline, product
from benchmarks.process import MIB
from benchmarks.race import Fleet, Race, say

MARKER = ".benchmark-work"
PACKAGES = ("monitoring-platform", "pysail", "pyspark", "delta-spark", "deltalake", "pyarrow", "dagster")
ENGINES = ("embedded", "spark")
CONTESTANTS = ("product", *BASELINES)
PHASES = ("initial", "increment")

# What is wanted of the embedded engine.
TIMES_FASTER_THAN_A = {"initial": 10.0, "increment": 15.0}
GROWTH_AT_MOST = 1.3
MEMORY_AT_MOST_MIB = 4096
MEMORY_EVENTS = 1_000_000

Result = dict[str, Any]


def compare(args: argparse.Namespace, work: Path) -> Result:
    """Every contestant's initial load and increments on one fleet."""
    fleet = Fleet(work / "logs", args.pipelines, args.events, args.seed)
    contestants = [product(engine, fleet.logs, work) for engine in args.engine if "product" in args.only]
    contestants += [baseline(letter, fleet.logs, work) for letter in BASELINES if letter in args.only]
    race = Race(fleet, contestants)
    for turn in range(args.repeat + 1):
        race.run_turn(turn)
    return {
        "events": {"initial": args.pipelines * args.events, "end": fleet.total},
        "results": race.as_json(),
        "times_faster_than": times_faster(race),
        "targets": [*speed_targets(race), *memory_target(race)],
        "disturbed": race.disturbed(),
        "failures": race.failures,
    }


def times_faster(race: Race) -> Result:
    """Per contestant and phase: the seconds of each baseline divided by its own."""
    found: Result = {}
    for contestant in race.contestants:
        for phase in PHASES:
            own = race.seconds(contestant.name, phase)
            others = {letter: race.seconds(letter, phase) for letter in BASELINES if letter != contestant.name}
            times = {letter: round(other / own, 3) for letter, other in others.items() if own and other}
            if times:
                found.setdefault(contestant.name, {})[phase] = times
    return found


def target(what: str, wanted: str, measured: float, met: bool) -> Result:
    """One wanted figure beside the measured one."""
    return {"what": what, "wanted": wanted, "measured": round(measured, 2), "met": met}


def speed_targets(race: Race) -> list[Result]:
    """How many times faster than (a)."""
    found = []
    for phase, wanted in TIMES_FASTER_THAN_A.items():
        own, other = race.seconds("product_embedded", phase), race.seconds("a", phase)
        if own and other:
            times = other / own
            found.append(target(f"{phase}: times faster than (a)", f">= {wanted:g}", times, times >= wanted))
    return found


def memory_target(race: Race) -> list[Result]:
    """The initial load's memory, if this fleet is large enough to tell."""
    measured = race.initial.get("product_embedded")
    if not measured or race.fleet.pipelines * race.fleet.events < MEMORY_EVENTS:
        return []
    peak = measured.max_rss_mib
    return [target("MiB for 1 M events", f"<= {MEMORY_AT_MOST_MIB}", peak, peak <= MEMORY_AT_MOST_MIB)]


def growth(args: argparse.Namespace, work: Path) -> Result:
    """The product's cycle on a short and on a long history, by turns, so that both see the same machine."""
    races = [growth_race(args, events, work / f"history_{events}") for events in args.growth_events]
    for turn in range(args.repeat + 1):
        for race in races:
            say(f"history of {race.fleet.events:,} events per pipeline")
            race.run_turn(turn)
    ratios = {f"product_{engine}": growth_ratio(races, f"product_{engine}") for engine in args.engine}
    targets = memory_target(races[-1])
    if embedded := ratios.get("product_embedded"):
        targets.append(target("growth of the cycle", f"<= {GROWTH_AT_MOST}", embedded, embedded <= GROWTH_AT_MOST))
    return {
        "results": {f"{race.fleet.events} events per pipeline": race.as_json() for race in races},
        "growth_ratio": ratios,
        "targets": targets,
        "disturbed": [f"{race.fleet.events}: {run}" for race in races for run in race.disturbed()],
        "failures": {f"{name}, {race.fleet.events}": why for race in races for name, why in race.failures.items()},
    }


def growth_race(args: argparse.Namespace, events: int, work: Path) -> Race:
    """The product alone on a fleet with this much history."""
    fleet = Fleet(work / "logs", args.pipelines, events, args.seed)
    return Race(fleet, [product(engine, fleet.logs, work) for engine in args.engine])


def growth_ratio(races: list[Race], name: str) -> float | None:
    """Seconds of a cycle on the longest history by those on the shortest."""
    short, long = races[0].seconds(name, "increment"), races[-1].seconds(name, "increment")
    return round(long / short, 3) if short and long else None


def surroundings() -> Result:
    """The machine and the versions that the figures hold for."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    machine = {
        "cpus": os.cpu_count(),
        "memory_mib": memory // MIB,
        "system": platform.platform(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }
    versions = {"python": platform.python_version(), "java": java_version()}
    return {"machine": machine, "versions": versions | {name: installed(name) for name in PACKAGES}}


def installed(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def java_version() -> str | None:
    """The first line of `java -version`."""
    try:
        answer = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return (answer.stderr or answer.stdout).splitlines()[0]


def table(result: Result) -> str:
    """The result for people."""
    groups = result["results"] if "growth_ratio" in result else {"": result["results"]}
    lines = [f"{'':18} {'initial':>10} {'MiB':>8} {'increment':>10} {'MiB':>8}"]
    for title, contestants in groups.items():
        lines += [title] if title else []
        for name, phases in contestants.items():
            cells = [f"{phases[p]['seconds']:8.1f} s {phases[p]['max_rss_mib']:8,.0f}" for p in PHASES if p in phases]
            lines.append(f"{name:18} {' '.join(cells)}")
    for name, ratio in result.get("growth_ratio", {}).items():
        lines.append(f"{name}: a cycle on the longest history takes {ratio} times that on the shortest")
    for name, phases in result.get("times_faster_than", {}).items():
        for phase, times in phases.items():
            text = ", ".join(f"({letter}) {value:g}" for letter, value in times.items())
            lines.append(f"{name}, {phase}: times faster than {text}")
    for aim in result["targets"]:
        lines.append(
            f"{'met   ' if aim['met'] else 'MISSED'} {aim['what']}: {aim['measured']:g}, {aim['wanted']} wanted"
        )
    if result["disturbed"]:
        lines.append(f"NOT QUIET, do not trust: others used the machine during {', '.join(result['disturbed'])}")
    return "\n".join([*lines, *(f"FAILED {why}" for why in result["failures"].values())])


def prepared(work: Path) -> Path:
    """An empty folder to work in: new, empty already, or left by an earlier benchmark."""
    work = work.resolve()
    if work.exists() and any(work.iterdir()):
        if not (work / MARKER).exists():
            raise SystemExit(f"{work} is not empty and was not made by this benchmark; name another folder")
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    (work / MARKER).touch()
    return work


def choices(allowed: tuple[str, ...]) -> Any:
    """An argparse type: some of the allowed words, separated by commas."""

    def parse(text: str) -> list[str]:
        words = text.split(",")
        if unknown := [word for word in words if word not in allowed]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not one of {', '.join(allowed)}")
        return words

    return parse


def numbers(text: str) -> list[int]:
    """An argparse type: whole numbers, separated by commas."""
    return sorted(int(word) for word in text.split(","))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(
        prog="benchmarks.ingest", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--pipelines", type=int, default=100)
    found.add_argument("--events", type=int, default=2000, help="events per pipeline (default 2000)")
    found.add_argument("--engine", type=choices(ENGINES), default=["embedded"], help="embedded, spark or both")
    found.add_argument("--only", type=choices(CONTESTANTS), default=list(CONTESTANTS), help="some of product,a,b,c")
    found.add_argument("--repeat", type=int, default=3, help="number of increments; the median counts (default 3)")
    found.add_argument("--growth", action="store_true", help="measure the product's cycle on two lengths of history")
    found.add_argument("--growth-events", type=numbers, default=[1000, 10000], help="those lengths, in events")
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--work", type=Path, help="folder for logs and tables, kept (default: temporary, removed)")
    found.add_argument("--out", type=Path, help="file for the JSON result (default: standard output)")
    return found


def main() -> int:
    """Measure, report, and return 1 if a contestant failed."""
    args = parser().parse_args()
    result: Result = {
        "benchmark": "growth" if args.growth else "ingest",
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "parameters": {name: value for name, value in vars(args).items() if name not in ("work", "out")},
        **surroundings(),
    }
    with ExitStack() as stack:
        work = args.work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        result |= (growth if args.growth else compare)(args, prepared(work))
    say(f"\n{table(result)}")
    text = json.dumps(result, indent=2) + "\n"
    if args.out:
        args.out.write_text(text)
    else:
        print(text, end="")
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
