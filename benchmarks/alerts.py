"""Alarms on a fleet whose faults are known: recall, precision and messages, beside those of naive rules.

    .venv/bin/python -m benchmarks.alerts --seed 1 --out result.json
    .venv/bin/python -m benchmarks.alerts --seed 2 --every-hours 6 --work /tmp/fleet     # quicker, and kept
    .venv/bin/python -m benchmarks.alerts --work /tmp/fleet --again                      # the fleet that is there

A fleet of 100 pipelines and 60 days is written (see benchmarks/alert_fleet.py), one cycle reads it, then the rules are
rehearsed hour by hour, as known at the time, from the end of the first two weeks on. The naive rules see the same
runs: a message for each failed update, each run over twice the pipeline's median of all time, each run without rows.
The result is JSON with every miss and every false alarm; a short table goes to stderr.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from benchmarks.alert_fleet import Fault, generate, read_faults
from benchmarks.alert_score import Score, alarms_of, by_kind, naive_alarms, repeated, score
from benchmarks.ingest import prepared, surroundings, target
from benchmarks.race import say
from monitoring_platform.config import load
from monitoring_platform.health.backtest import Rehearsal, rehearse
from monitoring_platform.marts.registry import STOCK
from monitoring_platform.warehouse.duck import opened
from monitoring_platform.warehouse.opening import open_warehouse
from monitoring_platform.warehouse.store import Warehouse

END = datetime(2026, 11, 29, 7, tzinfo=timezone.utc)  # the 60 days before it hold a clock change
LEARNING = timedelta(days=14)
ALARMS = ("warning", "error")
RECALL, PRECISION, TIMES_FEWER = 0.98, 0.95, 5.0

Result = dict[str, Any]


@dataclass(frozen=True)
class Contest:
    """The scores of the rules and of the naive ones on the same faults."""

    ours: Score
    naive: Score
    repeated: int

    def as_json(self) -> Result:
        fewer = self.naive.notifications / max(1, self.ours.notifications)
        ours, naive = self.ours.as_json(), self.naive.as_json()
        return {
            "results": {"rules": ours, "naive": naive},
            "times_fewer_notifications": round(fewer, 2),
            "repeated_notifications": self.repeated,
            "by_kind": [
                {**row, "found_by_naive": other["found"], "hours_naive": other["median_hours_to_alarm"]}
                for row, other in zip(by_kind(self.ours), by_kind(self.naive), strict=True)
            ],
            "missed": [fault._asdict() for fault in self.ours.missed],
            "false": [alarm._asdict() for alarm in self.ours.false],
            "targets": [
                target("recall", f">= {RECALL}", ours["recall"], ours["recall"] >= RECALL),
                target("precision", f">= {PRECISION}", ours["precision"], ours["precision"] >= PRECISION),
                target("times fewer notifications", f">= {TIMES_FEWER:g}", fewer, fewer >= TIMES_FEWER),
                target(
                    "recall against naive", ">= 0", ours["recall"] - naive["recall"], ours["recall"] >= naive["recall"]
                ),
                target("repeated notifications", "0", self.repeated, self.repeated == 0),
            ],
        }


def contest(warehouse: Warehouse, faults: list[Fault], since: datetime, until: datetime, every: timedelta) -> Contest:
    """Rehearse the rules and hold them and the naive ones against the faults."""
    made = rehearse(
        warehouse, since, until, every, progress=lambda at: say(f"  {at:%d %b %H:%M}") if at.hour == 7 else None
    )
    for rule, why in made.failed.items():
        raise SystemExit(f"{rule} could not be evaluated: {why}")
    con = opened()
    warehouse.show(con, STOCK["pipeline_runs"])
    naive = naive_alarms(con, since)
    told = score(faults, alarms_of(made.incidents, made.events, ALARMS), messages(made))
    return Contest(told, score(faults, naive, len(naive)), repeated(made.events))


def messages(made: Rehearsal) -> int:
    """Everything that people are told: what opens, gets worse and ends."""
    return sum(row["severity"] in ALARMS for row in made.told())


def measured(args: argparse.Namespace, work: Path) -> Result:
    """The fleet, one cycle over it, and the contest."""
    config = work / "monitoring.yaml"
    if not args.again:
        say(f"fleet of {args.pipelines} pipelines, {args.days} days, seed {args.seed}")
        truth = generate(prepared(work), pipelines=args.pipelines, days=args.days, seed=args.seed, end=END)
        say(f"{truth['events']:,} events; one cycle")
        program = Path(sys.executable).with_name("monitoring-platform")
        command = [str(program), "run", "--config", str(config), "--now", END.isoformat()]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    every, since = timedelta(hours=args.every_hours), END - timedelta(days=args.days) + LEARNING
    say(f"rehearsal every {args.every_hours:g} hours")
    return contest(open_warehouse(load(config)), read_faults(work), since, END, every).as_json()


def table(result: Result) -> str:
    """The result for people."""
    lines = [f"{'':8} {'recall':>8} {'precision':>10} {'incidents':>10} {'notifications':>14}"]
    for name, row in result["results"].items():
        cells = f"{row['recall']:8.3f} {row['precision']:10.3f} {row['incidents']:10} {row['notifications']:14}"
        lines.append(f"{name:8} {cells}")
    lines.append(f"{'':28} {'planted':>8} {'found':>6} {'naive':>6} {'hours':>6}")
    for row in result["by_kind"]:
        hours = "" if row["median_hours_to_alarm"] is None else f"{row['median_hours_to_alarm']:6.1f}"
        lines.append(f"{row['kind']:28} {row['planted']:8} {row['found']:6} {row['found_by_naive']:6} {hours:>6}")
    lines += [
        f"missed: {row['kind']}, {row['began_at']:%d %b}, {', '.join(row['pipeline_ids'])}" for row in result["missed"]
    ]
    lines += [f"false: {row['rule']}, {row['at']:%d %b %H:%M}, {row['title']}" for row in result["false"]]
    for aim in result["targets"]:
        lines.append(
            f"{'met   ' if aim['met'] else 'MISSED'} {aim['what']}: {aim['measured']:g}, {aim['wanted']} wanted"
        )
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(
        prog="benchmarks.alerts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--pipelines", type=int, default=100)
    found.add_argument("--days", type=int, default=60)
    found.add_argument("--seed", type=int, default=1)
    found.add_argument("--every-hours", type=float, default=1.0, help="time between two evaluations (default 1)")
    found.add_argument("--work", type=Path, help="folder for logs and tables, kept (default: temporary, removed)")
    found.add_argument("--again", action="store_true", help="take the fleet and the tables that are in --work")
    found.add_argument("--out", type=Path, help="file for the JSON result (default: standard output)")
    return found


def main() -> int:
    """Measure, report, and return 1 if a target was missed."""
    args = parser().parse_args()
    if args.again and not args.work:
        raise SystemExit("--again needs --work, the folder of the fleet")
    with ExitStack() as stack:
        work = args.work or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        result: Result = {
            "benchmark": "alerts",
            "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "parameters": {name: value for name, value in vars(args).items() if name not in ("work", "out")},
            **surroundings(),
            **measured(args, work),
        }
    say(f"\n{table(result)}")
    text = json.dumps(result, indent=2, default=str) + "\n"
    if args.out:
        args.out.write_text(text)
    else:
        print(text, end="")
    return 0 if all(aim["met"] for aim in result["targets"]) else 1


if __name__ == "__main__":
    sys.exit(main())
