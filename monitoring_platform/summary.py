"""What the command line prints: short, what was new and what is wrong, with the remedy. Text from logs is escaped."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from monitoring_platform.config import Settings
from monitoring_platform.health.checks import Finding
from monitoring_platform.health.status import Overview, Row
from monitoring_platform.sources.diagnosis import Diagnosis

if TYPE_CHECKING:  # Dagster takes seconds to import, and `status` does not need it
    from monitoring_platform.health.backtest import Rehearsal
    from monitoring_platform.orchestration.runner import CycleResult

_COLOURS = {"COMPLETED": "green", "FAILED": "red", "CANCELED": "yellow", "seen": "green"}
_TITLES = {
    "sources_reachable": "Logs and other sources that cannot be read",
    "no_update_is_missing": "Updates that no log has",
    "no_duplicate_events": "Duplicate events",
    "nothing_missing_downstream": "Missing downstream",
}
_COLUMNS = {
    "sources_reachable": ("location", "error", "remedy"),
    "no_update_is_missing": ("pipeline_name", "update_id", "created_at", "state", "reason", "remedy"),
}
_COLUMNS_OF_RULES = ("pipeline_name", "title", "since", "state", "first_error")


def text(value: Any) -> str:
    """A cell: unknown is a dash, times are UTC to the minute."""
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, float):
        return f"{value:,.2f}".rstrip("0").rstrip(".")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return escape(printable(str(value)))


def printable(value: str) -> str:
    """Text from a log on a terminal: control characters, which could steer it, become replacement marks."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in value)


def duration(seconds: float | None) -> str:
    """Seconds as people say them."""
    if seconds is None:
        return "–"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def print_findings(console: Console, findings: list[Finding], limit: int = 10) -> None:
    """One block for each check or rule that found something."""
    for finding in findings:
        if finding.passed:
            continue
        style = "red" if finding.severity == "ERROR" else "yellow"
        title = _TITLES.get(finding.check) or escape(finding.check.replace("_", " ").capitalize())
        console.print(f"\n[{style} bold]{title}[/] ({finding.total:,})")
        shown = finding.offenders[:limit]
        columns = _COLUMNS.get(finding.check) or [
            name for name in _COLUMNS_OF_RULES if any(row.get(name) is not None for row in shown)
        ]
        columns = columns or tuple(shown[0])
        table = Table(box=None, pad_edge=False, show_header=True, header_style="dim")
        for column in columns:
            table.add_column(column, overflow="fold")
        for row in shown:
            cells = {**row, "pipeline_name": row.get("pipeline_name") or row.get("pipeline_id")}
            table.add_row(*(text(cells.get(column)) for column in columns))
        console.print(table)
        if finding.total > limit:
            console.print(f"… and {finding.total - limit:,} more", style="dim")


def print_rehearsal(
    console: Console, made: Rehearsal, silenced: list[Row] | None = None, added: list[Row] | None = None
) -> None:
    """What a rehearsal says: how often each rule fires, each time with its title, and what another one changes."""
    counts = made.counts()
    if not counts:
        console.print("no rule would have fired", style="green")
    else:
        _print_rows(console, counts, ("rule", "incidents", "pipelines", "messages"), len(counts))
    lists = {"Incidents": made.incidents, "Silenced by the other": silenced, "Added by the other": added}
    for title, rows in lists.items():
        if rows is not None:
            console.print(f"\n[bold]{title}[/] ({len(rows):,})")
            shown = [{**row, "pipelines": ", ".join(row["pipeline_names"])} for row in rows]
            _print_rows(console, shown, ("opened_at", "resolved_at", "rule", "severity", "pipelines", "title"), 200)
    for name, error in made.failed.items():
        console.print(f"\n[red bold]{name} could not be evaluated[/] {escape(error)}", highlight=False)
    console.print(f"\nleft out, for they know no history: {', '.join(made.left_out)}", style="dim")


def print_cycle(console: Console, result: CycleResult) -> None:
    """The end of a run."""
    read, union = result.steps.get("pipelines", {}), result.steps.get("all_pipelines_event_log", {})
    console.print(
        f"[bold]{text(read.get('processed', '0/0 logs'))}[/] processed, "
        f"[bold]{text(union.get('events_new', 0))}[/] events new of {text(read.get('events_read', 0))} read, "
        f"{text(union.get('row_count'))} in all, {text(read.get('quarantined', 0))} quarantined, "
        f"{len(read.get('new_pipelines') or ())} new pipelines; {result.seconds:.1f} s",
        highlight=False,
    )
    if closed := read.get("closed"):
        console.print(
            f"{len(closed)} logs may not be read: `monitoring-platform status` says what opens them", style="yellow"
        )
    for source in read.get("empty_sources") or ():
        console.print(
            f"source {escape(source)} matches nothing: check its path, or what its credentials may see",
            style="yellow",
            highlight=False,
        )
    if not read.get("events_read") and not read.get("failed") and read.get("processed") == "0/0 logs":
        console.print("nothing to read: 0 of 0 logs have news", style="dim")
    found = [*result.findings, *result.rules]
    print_findings(console, found)
    for error in result.errors:
        console.print(f"\n[red bold]failed[/] {escape(error)}", highlight=False, soft_wrap=True)
    if all(finding.passed for finding in found) and not result.errors:
        console.print("all checks passed, no rule found anything", style="green")


def print_status(console: Console, found: Overview, everything: bool) -> None:
    """Who needs attention, then (with `everything`) every pipeline."""
    states: dict[str, int] = {}
    for row in found.pipelines:
        states[row["state"]] = states.get(row["state"], 0) + 1
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items(), key=lambda s: -s[1]))
    console.print(
        f"[bold]{len(found.pipelines)} pipelines[/]: {counted or 'none known yet; run `monitoring-platform run`'}. "
        f"{found.events:,} events, {found.quarantined:,} quarantined.",
        highlight=False,
    )
    print_findings(console, found.attention)
    if found.unseen:
        console.print(f"\n[yellow bold]Not seen[/] ({len(found.unseen)})")
        _print_rows(console, found.unseen, ("pipeline_name", "state", "reason", "remedy"), limit=20)
        _print_to_paste(console, found.unseen, limit=10)
    if everything:
        console.print("\n[bold]All pipelines[/] (times in UTC)")
        rows = [{**row, "duration": _lasted(row), "status": row["latest_status"]} for row in found.pipelines]
        columns = (
            "pipeline_name",
            "state",
            "status",
            "start_ts",
            "duration",
            "rows_written",
            "rows_dropped",
            "worst_pass_rate_pct",
            "finished_status",
            "owner",
        )
        _print_rows(console, rows, columns, limit=len(rows))
    elif found.pipelines:
        console.print("\n`status --all` lists every pipeline.", style="dim")


def _print_to_paste(console: Console, rows: list[Row], limit: int) -> None:
    """SQL and settings that remedies speak of, each once, with the pipelines that it is for."""
    names: dict[str, list[str]] = {}
    for row in rows:
        if row["remedy_sql"]:
            names.setdefault(row["remedy_sql"], []).append(row["pipeline_name"] or row["pipeline_id"])
    for statement, pipelines in list(names.items())[:limit]:
        console.print(f"\n[dim]to paste for {text(', '.join(pipelines))}[/]", highlight=False)
        console.print(text(statement), highlight=False, soft_wrap=True)
    if len(names) > limit:
        console.print(f"\n… and {len(names) - limit} more: `monitoring-platform query not_seen`", style="dim")


def _lasted(row: Row) -> str:
    if row["duration_seconds"] is not None:
        return duration(row["duration_seconds"])
    running = row["running_seconds"]
    return f"running, {duration(running)} so far" if running is not None else "–"


def print_preview(console: Console, settings: Settings, rows: list[Row]) -> None:
    """What `validate` found."""
    logs = [row for row in rows if row["log"]]
    console.print(f"{escape(str(settings.config_path))} is valid: {len(settings.sources)} sources, {len(logs)} logs.")
    shown = [{**row, "pipelines": ", ".join(row["pipelines"]) or None} for row in rows]
    _print_rows(console, shown, ("source", "log", "pipelines", "result"), limit=len(rows))


def _print_rows(console: Console, rows: list[Row], columns: tuple[str, ...], limit: int) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows[:limit]:
        cells = {**row, "pipeline_name": row.get("pipeline_name") or row.get("pipeline_id")}
        table.add_row(
            *(f"[{_COLOURS[v]}]{text(v)}[/]" if (v := cells.get(c)) in _COLOURS else text(v) for c in columns)
        )
    console.print(table)
    if len(rows) > limit:
        console.print(f"… and {len(rows) - limit} more", style="dim")


_VERDICTS = {"pass": "green", "fail": "red", "note": "yellow"}


def print_diagnosis(console: Console, diagnosis: Diagnosis) -> None:
    """One thing that was tried, what was found, and what to do about it; statements stand alone, to be copied."""
    colour = _VERDICTS[diagnosis.verdict]
    what, found = escape(printable(diagnosis.what)), escape(printable(diagnosis.found))
    console.print(f"[{colour}]{diagnosis.verdict}[/]  [bold]{what}[/]  {found}", soft_wrap=True, highlight=False)
    if diagnosis.remedy:
        console.print(f"      → {escape(printable(diagnosis.remedy))}", soft_wrap=True, highlight=False)
    for line in (diagnosis.remedy_sql or "").splitlines():
        console.print(f"        {escape(printable(line))}", soft_wrap=True, highlight=False)
