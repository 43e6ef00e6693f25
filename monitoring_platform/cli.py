"""The command line. Only `run` and `rebuild` start an engine; looking takes about a second."""

from __future__ import annotations

import csv
import gc
import itertools
import json
import logging
import os
import re
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from monitoring_platform.config import ConfigError, Settings, default_config_path, load, use_config

if TYPE_CHECKING:
    from monitoring_platform.queries import Query
    from monitoring_platform.warehouse.store import Warehouse

OK, PARTLY_FAILED, WRONG = 0, 1, 2

app = typer.Typer(
    name="monitoring-platform",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="What your Lakeflow/DLT pipelines did, how good their data is, what is not seen at all.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Not on a terminal lines are long rather than folded, so that what reads them finds whole names.
out, err = Console(width=None if sys.stdout.isatty() else 240), Console(stderr=True)

ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="Configuration file. [default: $MONITORING_CONFIG or ./monitoring.yaml]"
    ),
]
NowOption = Annotated[
    str | None,
    typer.Option("--now", metavar="TIME", help="ISO time that counts as now, to replay history. [default: the clock]"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="CSV; cells that would start a formula are neutralised.")]


def _settings(config: Path | None) -> Settings:
    path = config or default_config_path()
    try:
        settings = load(path)
    except ConfigError as error:
        err.print(escape(str(error)), style="red", soft_wrap=True, highlight=False)
        raise typer.Exit(WRONG) from None
    if settings.views or (settings.plumber and settings.plumber.views):
        from monitoring_platform.marts.own import ViewError, own_views

        try:
            own_views(settings)
        except ViewError as error:
            _stop(f"{path}: {error}")
    use_config(path)
    return settings


def _warehouse(config: Path | None) -> Warehouse:
    from monitoring_platform.warehouse.opening import open_warehouse
    from monitoring_platform.warehouse.session import EngineUnavailable

    try:
        return open_warehouse(_settings(config))
    except EngineUnavailable as error:
        _stop(str(error))


def _stop(message: str) -> NoReturn:
    err.print(escape(message), style="red", soft_wrap=True, highlight=False)
    raise typer.Exit(WRONG)


def _moment(now: str | None) -> datetime:
    from monitoring_platform.cycle.clock import clock

    try:
        return clock(now)
    except ValueError:
        _stop(f"--now: {now!r} is no ISO time; write for example 2026-11-30T07:00:00Z")


@app.command(epilog="Example:  monitoring-platform run --config monitoring.yaml")
def run(config: ConfigOption = None, now: NowOption = None, as_json: JsonOption = False) -> None:
    """One cycle through the Dagster job: discover, ingest, union, marts, checks.

    Exit 0: done, whatever state the pipelines are in. 1: part of it failed, the failures are named, the rest is done.
    2: the configuration or the call is wrong, nothing was written.
    """
    from monitoring_platform.cycle.ahead import begin
    from monitoring_platform.warehouse import contracts

    moment = _moment(now)
    warehouse = _warehouse(config)
    if (project := warehouse.settings.plumber) and not project.monitoring_enabled:
        out.print(f"monitoring is switched off in {escape(str(project.folder))} (monitoring.enabled): nothing is done")
        return
    if not warehouse.exists(contracts.UNION):
        begin(warehouse.settings, moment)
    from monitoring_platform.orchestration.runner import EngineUnavailable, run_cycle

    _show_progress()
    try:
        result = run_cycle(warehouse.settings, now)
    except EngineUnavailable as error:
        _stop(str(error))
    if as_json:
        print(json.dumps(result.as_dict(), default=str))
    else:
        from monitoring_platform.summary import print_cycle

        print_cycle(out, result)
    _end(OK if result.success else PARTLY_FAILED)


@app.command(epilog="Example:  monitoring-platform status --json | jq '.attention[]'")
def status(
    config: ConfigOption = None,
    as_json: JsonOption = False,
    everything: Annotated[
        bool, typer.Option("--all", help="List every pipeline, not only those that need attention.")
    ] = False,
    now: NowOption = None,
) -> None:
    """Who needs attention: what is still failing, what is not seen, whose data got worse. No engine starts."""
    from monitoring_platform.health.status import overview
    from monitoring_platform.summary import print_status

    found = overview(_warehouse(config), _moment(now))
    if as_json:
        print(json.dumps(found.as_dict(), default=str))
    else:
        print_status(out, found, everything)


@app.command(epilog="Example:  monitoring-platform report monthly --now 2026-11-01T08:00:00Z")
def report(
    kind: Annotated[Literal["daily", "weekly", "monthly"], typer.Argument(help="Which one.")],
    config: ConfigOption = None,
    now: NowOption = None,
    as_json: JsonOption = False,
) -> None:
    """The last 24 hours, or the last whole week or month with the one before, as the digests tell it.

    No engine starts. Any time in the past can be asked for with --now.
    """
    from monitoring_platform.health.notify.digests import REPORTS

    told = REPORTS[kind](_warehouse(config), _moment(now))
    if as_json:
        print(json.dumps(told._asdict(), ensure_ascii=False))
    else:
        print(f"{told.title}\n\n{told.body}")


@app.command(epilog="Example:  monitoring-platform sql 'SELECT pipeline_name, count(*) FROM pipeline_runs GROUP BY 1'")
def sql(
    query: Annotated[str, typer.Argument(help="One DuckDB query over all tables.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
) -> None:
    """Ask all tables in DuckDB's SQL. Tables are only read."""
    _answer(query, config, as_json, as_csv)


@app.command(epilog="Example:  monitoring-platform query morning --csv")
def query(
    name: Annotated[str | None, typer.Argument(help="Name of the query. [default: list them]")] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the SQL instead, to change it and ask it with `sql`.")
    ] = False,
) -> None:
    """Ask a stock query: what runs, fails, gets slower or worse. Without a name, list them."""
    from monitoring_platform.queries import UnknownQuery, by_subject, get

    if name is None:
        _list_queries(by_subject(), as_json)
        return
    try:
        chosen = get(name)
    except UnknownQuery as error:
        _stop(str(error))
    if show:
        print(chosen.sql, end="")
    else:
        _answer(chosen.sql, config, as_json, as_csv)


def _list_queries(subjects: dict[str, list[Query]], as_json: bool) -> None:
    if as_json:
        queries = [query for queries in subjects.values() for query in queries]
        print(
            json.dumps([{"name": q.name, "title": q.title, "answers": q.answers} for q in queries], ensure_ascii=False)
        )
        return
    for subject, queries in subjects.items():
        table = RichTable.grid("", "", padding=(0, 2))
        for entry in queries:
            table.add_row(entry.name, escape(entry.title))
        out.print(f"\n[bold]{subject}[/]")
        out.print(table)


def _answer(query: str, config: Path | None, as_json: bool, as_csv: bool) -> None:
    import duckdb

    from monitoring_platform.marts.own import stored_views
    from monitoring_platform.marts.registry import STOCK
    from monitoring_platform.summary import printable
    from monitoring_platform.warehouse.looking import question

    warehouse = _warehouse(config)
    tables = (*STOCK.values(), *stored_views(warehouse))
    try:
        relation = question(warehouse, query, tables)
        columns, rows = [entry[0] for entry in relation.description or ()], relation.fetchall()
    except duckdb.Error as error:
        _stop(f"{error}\nTables: {', '.join(sorted(t.name for t in tables))}")
    if as_json:
        print(json.dumps([dict(zip(columns, row)) for row in rows], default=str, ensure_ascii=False))
    elif as_csv:
        writer = csv.writer(sys.stdout)
        writer.writerow(columns)
        writer.writerows([_plain_cell(value) for value in row] for row in rows)
    else:
        table = RichTable(*columns, highlight=True)
        for row in rows:
            table.add_row(*("" if value is None else escape(printable(str(value))) for value in row))
        out.print(table)
        err.print(f"{len(rows)} row{'' if len(rows) == 1 else 's'}", style="dim")


def _plain_cell(value: Any) -> Any:
    """A text cell that a spreadsheet would take for a formula gets an apostrophe in front."""
    if (isinstance(value, str) and value.lstrip()[:1] in ("=", "+", "-", "@")) or (
        isinstance(value, str) and value[:1] in "\t\r"
    ):
        return "'" + value
    return value


@app.command(epilog="Example:  monitoring-platform validate --config monitoring.yaml")
def validate(
    config: ConfigOption = None,
    as_json: JsonOption = False,
    show: Annotated[
        bool, typer.Option("--show", help="Print the resolved configuration, variables as written.")
    ] = False,
) -> None:
    """Check the configuration and list each log with its pipelines. Writes nothing."""
    settings = _settings(config)
    if show:
        print(settings.to_yaml())
        return
    from monitoring_platform.health.status import preview
    from monitoring_platform.summary import print_preview

    found = preview(_warehouse(config), _moment(None))
    if as_json:
        print(json.dumps(found, default=str))
    else:
        print_preview(out, settings, found)


@app.command(epilog="Example:  monitoring-platform doctor --json | jq '.[] | select(.verdict == \"fail\")'")
def doctor(config: ConfigOption = None, as_json: JsonOption = False, now: NowOption = None) -> None:
    """Try what a cycle needs: engine, write access, clock, Dagster, and what each source and its credentials allow.

    Exit 0: all of it works. 1: something fails, each with what to do. Only empty folders are left behind.
    """
    from monitoring_platform.health.doctor import examine
    from monitoring_platform.orchestration.runner import examine_instance
    from monitoring_platform.summary import print_diagnosis

    settings = _warehouse(config).settings
    diagnoses = []
    for diagnosis in itertools.chain(examine(settings, _moment(now)), map(examine_instance, [settings])):
        diagnoses.append(diagnosis)
        if not as_json:
            print_diagnosis(out, diagnosis)
    if as_json:
        print(json.dumps([diagnosis._asdict() for diagnosis in diagnoses], ensure_ascii=False))
    _end(PARTLY_FAILED if any(diagnosis.verdict == "fail" for diagnosis in diagnoses) else OK)


@app.command(epilog="Example:  monitoring-platform backtest --rule run_slow --since 14d --compare stricter.yaml")
def backtest(
    config: ConfigOption = None,
    rule: Annotated[str | None, typer.Option(help="Only this rule. [default: all that are on]")] = None,
    since: Annotated[str, typer.Option(metavar="SPAN", help="How far back: 30d, 12h.")] = "30d",
    every: Annotated[str, typer.Option(metavar="SPAN", help="Time between two evaluations: 1h, 15m.")] = "1h",
    compare: Annotated[
        Path | None, typer.Option(help="Another configuration: what it would silence, and what add.")
    ] = None,
    now: NowOption = None,
    as_json: JsonOption = False,
) -> None:
    """How often each rule would have fired, for whom and with what evidence, on history as it was known at the time.

    Nothing is written, nobody is told. Rules over what is kept only as it is now (coverage, updates that no log has)
    are left out.
    """
    from monitoring_platform.health import rules
    from monitoring_platform.health.backtest import missing, rehearse
    from monitoring_platform.summary import print_rehearsal

    warehouse, until = _warehouse(config), _moment(now)
    known = rules.names(warehouse.settings)
    if rule is not None and rule not in known:
        _stop(f"--rule: there is no rule {rule!r} that is on; there are: {', '.join(known)}")
    begin, step = until - _span("--since", since), _span("--every", every)
    _show_progress()
    log = logging.getLogger("monitoring_platform")

    def told(at: datetime) -> None:
        if at.hour == 0 and at - at.replace(hour=0, minute=0, second=0, microsecond=0) < step:
            log.info("%s", at.date())

    made = rehearse(warehouse, begin, until, step, only=rule, progress=told)
    other = rehearse(warehouse, begin, until, step, _settings(compare), rule, told) if compare else None
    silenced, added = (missing(made, other), missing(other, made)) if other else (None, None)
    if as_json:
        found = {"rules": made.counts(), "incidents": made.incidents, "left_out": made.left_out, "failed": made.failed}
        if other:
            found |= {"silenced": silenced, "added": added}
        print(json.dumps(found, default=str))
    else:
        print_rehearsal(out, made, silenced, added)
    _end(PARTLY_FAILED if made.failed else OK)


def _span(option: str, text: str) -> timedelta:
    """`30d`, `12h` or `15m` as a length of time."""
    match = re.fullmatch(r"([1-9][0-9]{0,4})([dhm])", text)
    if match is None:
        _stop(f"{option}: {text!r} is no span of time; write for example 30d, 12h or 15m")
    return timedelta(minutes=int(match[1]) * {"d": 1440, "h": 60, "m": 1}[match[2]])


@app.command(epilog="Example:  monitoring-platform rebuild pipeline_runs requests")
def rebuild(
    marts: Annotated[list[str] | None, typer.Argument(help="Marts to rebuild. [default: all]")] = None,
    config: ConfigOption = None,
) -> None:
    """Compute marts anew from all events; the result equals what the cycles computed step by step."""
    from monitoring_platform.marts.refresh import rebuild as rebuild_mart
    from monitoring_platform.marts.registry import BY_NAME, MARTS
    from monitoring_platform.warehouse.session import EngineUnavailable

    unknown = sorted(set(marts or ()) - BY_NAME.keys())
    if unknown:
        _stop(f"no mart is called {unknown[0]!r}; there are: {', '.join(BY_NAME)}")
    warehouse = _warehouse(config)
    try:
        with warehouse.lock(lambda: err.print("waiting: another run is writing to the warehouse", style="dim")):
            for mart in MARTS:
                if not marts or mart.name in marts:
                    out.print(f"{mart.name}: {rebuild_mart(warehouse, mart):,} rows")
    except EngineUnavailable as error:
        _stop(str(error))
    _end(OK)


@app.command(epilog="Example:  monitoring-platform demo --folder ./demo")
def demo(
    folder: Annotated[Path, typer.Option(help="Where the fleet, its configuration and its warehouse go.")] = Path(
        "demo"
    ),
    pipelines: Annotated[int, typer.Option(min=1, help="Size of the fleet.")] = 100,
    days: Annotated[int, typer.Option(min=1, help="Length of its history.")] = 14,
    seed: Annotated[int, typer.Option(help="The same seed and end give the same fleet.")] = 7,
    fresh: Annotated[bool, typer.Option("--fresh", help="Make a new fleet although one is there.")] = False,
    now: NowOption = None,
) -> None:
    """Make a synthetic fleet with planted problems, run one cycle over it, compare what was found with the truth."""
    from monitoring_platform.demo.show import show

    _end(show(out, folder, pipelines=pipelines, days=days, seed=seed, fresh=fresh, now=_moment(now)))


@app.command(epilog="Example:  monitoring-platform dev --config demo/monitoring.yaml --port 3000")
def dev(config: ConfigOption = None, port: Annotated[int, typer.Option(help="Port of the Dagster UI.")] = 3000) -> None:
    """The Dagster UI with its daemon: assets, partitions, checks, sensor and schedule of this configuration."""
    from monitoring_platform.orchestration.runner import prepare_home

    home = prepare_home(_settings(config))
    dagster = Path(sys.executable).with_name("dagster")
    command = [str(dagster), "dev", "--module-name", "monitoring_platform.definitions", "--port", str(port)]
    os.execve(dagster, command, {**os.environ, "DAGSTER_HOME": str(home)})


@app.command(
    "spark-pipelines",
    epilog="Example:  monitoring-platform spark-pipelines --events ./events run --spec spark-pipeline.yml",
    context_settings={
        "ignore_unknown_options": True,
        "allow_interspersed_args": False,
        "help_option_names": ["--help"],
    },
)
def spark_pipelines(
    arguments: Annotated[
        list[str], typer.Argument(metavar="ARGUMENTS...", help="Those of spark-pipelines, as they are.")
    ],
    events: Annotated[
        Path,
        typer.Option(envvar="MONITORING_EVENTS", help="Folder of logs, that a `files` source reads. Comes first."),
    ],
) -> None:
    """Run an open-source Spark Declarative Pipeline as `spark-pipelines` does, and write its event log.

    Output, signals and exit code are those of `spark-pipelines`.
    """
    from monitoring_platform.recording.declarative import run as run_recorded

    try:
        code = run_recorded(arguments, events)
    except ModuleNotFoundError:
        _stop("spark-pipelines: there is no Spark here; set SPARK_HOME, or install pyspark[pipelines]")
    except OSError as error:
        _stop(f"spark-pipelines: {error.filename}: {error.strerror}; SPARK_HOME has to name a Spark 4.1 or newer")
    _end(code)


notify = typer.Typer(no_args_is_help=True, help="Who is told: try the channels.")
app.add_typer(notify, name="notify")


@notify.command("test", epilog="Example:  monitoring-platform notify test --channel ops")
def notify_test(
    config: ConfigOption = None,
    channel: Annotated[list[str] | None, typer.Option(help="Only this one; may be repeated. [default: all]")] = None,
    as_json: JsonOption = False,
) -> None:
    """Send a test message to each channel. Exit 0: all took it. 1: one did not. 2: there is no such channel."""
    from monitoring_platform.health.notify.channels import try_channels

    settings = _settings(config)
    known = settings.notifications.channels
    unknown = sorted(set(channel or ()) - known.keys())
    if unknown or not known:
        there = f"there are: {', '.join(known)}" if known else "none is configured, see docs/notifications.md"
        _stop(f"no channel is called {unknown[0]!r}; {there}" if unknown else there)
    found = try_channels(settings, channel or known)
    if as_json:
        print(json.dumps([{"channel": name, "sent": not error, "error": error} for name, error in found.items()]))
    else:
        for name, error in found.items():
            out.print(f"[red]{escape(name)}: not sent: {error}[/]" if error else f"[green]{escape(name)}: sent[/]")
    _end(PARTLY_FAILED if any(found.values()) else OK)


def _show_progress() -> None:
    from rich.logging import RichHandler

    handler = RichHandler(console=err, show_path=False, show_level=False, markup=False)
    logger = logging.getLogger("monitoring_platform")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def _end(code: int) -> None:
    """End at once: the embedded engine has nothing to finish, and waiting for it takes a second."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> None:
    """Entry point of the command `monitoring-platform`."""
    gc.set_threshold(100_000, 50, 1_000)  # what a start allocates stays: to look through it for garbage costs a second
    try:
        app()
    except BrokenPipeError:
        os._exit(OK)
