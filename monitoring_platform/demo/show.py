"""The demo as a command: a fleet, one real cycle over it, and what was found held against what was planted."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from monitoring_platform.config import load, use_config
from monitoring_platform.demo.making import generate
from monitoring_platform.demo.verdict import compare
from monitoring_platform.orchestration.runner import run_cycle
from monitoring_platform.summary import print_findings
from monitoring_platform.warehouse.opening import open_warehouse
from monitoring_platform.warehouse.store import Warehouse


def show(console: Console, folder: Path, *, pipelines: int, days: int, seed: int, fresh: bool, now: datetime) -> int:
    """Make the fleet (or take the one that is there), run one cycle, print what was found. Returns the exit code."""
    started = time.monotonic()
    truth = _fleet(console, folder, pipelines=pipelines, days=days, seed=seed, fresh=fresh, now=now)
    made = time.monotonic()
    config = folder / "monitoring.yaml"
    use_config(config)
    settings = load(config)
    console.print("one cycle through the Dagster job: discover, ingest, union, marts, checks …", style="dim")
    # The fleet's clock: looked at later, it would be stale as a whole.
    result = run_cycle(settings, str(truth["end"]))
    union = result.steps.get("all_pipelines_event_log", {})
    console.print(
        f"{union.get('events_new', 0):,} events new, {union.get('row_count', 0):,} in all; "
        f"fleet {made - started:.1f} s, cycle {result.seconds:.1f} s",
        highlight=False,
    )
    print_findings(console, [*result.findings, *result.rules], limit=6)
    _print_verdict(console, truth, open_warehouse(settings))
    console.print(
        "\nThe broken log is planted: the run names it, and everything else is done.\n"
        f"Go on: monitoring-platform status --config {config}\n"
        f"       monitoring-platform sql --config {config} 'SELECT * FROM requests LIMIT 5'\n"
        "       make dev            (the Dagster UI)",
        highlight=False,
        markup=False,
    )
    unexpected = [
        f for f in result.findings if f.severity == "ERROR" and not f.passed and f.check != "sources_reachable"
    ]
    return 1 if unexpected or not union else 0


def _fleet(console: Console, folder: Path, *, fresh: bool, now: datetime, **shape: int) -> dict[str, Any]:
    there = folder / "truth.json"
    if there.exists() and not fresh:
        console.print(f"the fleet in {escape(str(folder))} is kept (--fresh makes a new one)", style="dim")
        return dict(orjson.loads(there.read_bytes()))
    console.print(
        f"making a fleet of {shape['pipelines']} pipelines, {shape['days']} days, in {escape(str(folder))} …",
        style="dim",
    )
    end = now.replace(minute=0, second=0, microsecond=0)
    truth = generate(folder, end=end, **shape)
    console.print(f"{truth['events']:,} events written", highlight=False)
    return truth


def _print_verdict(console: Console, truth: dict[str, Any], warehouse: Warehouse) -> None:
    verdict = compare(truth, warehouse)
    console.print(f"\n[bold]Against the truth[/] ({len(truth['planted'])} planted problems)")
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("compared", "right", "of"):
        table.add_column(column)
    for name, (right, total) in verdict.items():
        style = "green" if right == total else "red"
        table.add_row(name, f"[{style}]{right:,}[/]", f"{total:,}")
    console.print(table)
