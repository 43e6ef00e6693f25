"""One cycle through the Dagster job in this process, for the command line."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal

import dagster as dg

from monitoring_platform.config import Settings, dagster_home
from monitoring_platform.definitions import build_defs
from monitoring_platform.health.checks import Finding
from monitoring_platform.health.notify.channels import beat
from monitoring_platform.marts.tables.health import INCIDENTS
from monitoring_platform.orchestration.jobs import REFRESH, failure_text
from monitoring_platform.sources.diagnosis import Diagnosis, failed, noted, passed
from monitoring_platform.warehouse.session import EngineUnavailable, require_java

_log = logging.getLogger("monitoring_platform")
__all__ = ["CycleResult", "EngineUnavailable", "run_cycle"]


@dataclass
class CycleResult:
    """What one cycle did: numbers of its steps by asset, what checks and rules found, and what failed."""

    success: bool
    seconds: float
    run_id: str
    steps: dict[str, dict[str, Any]]
    findings: list[Finding]
    rules: list[Finding]
    errors: list[str]

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON can hold it."""
        found = {name: [finding._asdict() for finding in getattr(self, name)] for name in ("findings", "rules")}
        return {**asdict(self), **found}


def prepare_home(settings: Settings) -> Path:
    """Folder of the Dagster instance of this configuration, made with the shipped settings on first use."""
    home = dagster_home(settings)
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        with as_file(files("monitoring_platform.orchestration") / "dagster.yaml") as shipped:
            shutil.copyfile(shipped, home / "dagster.yaml")
    return home


@contextmanager
def opened_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance of this configuration, whose settings may refer to DAGSTER_HOME."""
    home, given = str(prepare_home(settings)), os.environ.get("DAGSTER_HOME")
    os.environ["DAGSTER_HOME"] = home
    try:
        with dg.DagsterInstance.from_config(home) as instance:
            yield instance
    finally:
        if given is None:
            del os.environ["DAGSTER_HOME"]


def run_cycle(settings: Settings, now: str | None) -> CycleResult:
    """Run the job `refresh` here and now. Raises EngineUnavailable before anything is written."""
    if settings.engine.name == "spark":
        require_java()
    started = time.monotonic()
    job = build_defs(here=True).resolve_job_def(REFRESH)
    config: dict[str, Any] = {"now": now} if now else {}
    told = [name for name in ("pipelines", "workspace_context", "health", "health_checks") if job.has_node_named(name)]
    with opened_instance(settings) as instance:
        result = job.execute_in_process(
            instance=instance,
            run_config={
                "ops": {name: {"config": config} for name in told},
                "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
            },
            tags={**settings.tags, "monitoring/launched_by": "command line"},
            raise_on_error=False,
        )
        steps = {
            event.asset_key.to_user_string(): {
                name.removeprefix("dagster/"): value.value for name, value in event.materialization.metadata.items()
            }
            for event in result.get_asset_materialization_events()
            if event.asset_key and event.partition is None
        }
        found = [_finding(evaluation) for evaluation in result.get_asset_check_evaluations()]
        findings = [finding for finding in found if finding.table != INCIDENTS.name]
        rules = [finding for finding in found if finding.table == INCIDENTS.name]
        errors = [failure_text(event) for event in result.all_events if event.is_step_failure]
    if result.success and (problem := beat(settings)):
        _log.warning(problem)
    return CycleResult(result.success, time.monotonic() - started, result.run_id, steps, findings, rules, errors)


def examine_instance(settings: Settings) -> Diagnosis:
    """Whether the Dagster instance of this configuration can be used, and whether its daemon is at work."""
    home = dagster_home(settings)
    try:
        with opened_instance(settings) as instance:
            runs = instance.get_runs_count(dg.RunsFilter(job_name=REFRESH))
            daemons = instance.get_daemon_statuses()
    except Exception as error:
        return failed("dagster", f"{home}: {error}", f"give this user write access to {home}, or set DAGSTER_HOME")
    found = f"{home}, {runs} runs of {REFRESH}"
    if settings.schedule.enabled and not any(status.healthy for status in daemons.values()):
        remedy = "start `monitoring-platform dev` or Dagster's daemon, or call `monitoring-platform run` from cron"
        return noted("dagster", f"{found}; no daemon is at work: nothing runs by itself", remedy)
    return passed("dagster", found)


def _finding(evaluation: dg.AssetCheckEvaluation) -> Finding:
    table = evaluation.metadata.get("offenders")
    rows = [dict(record.data) for record in table.value.records] if table else []  # type: ignore[union-attr]
    total = int(evaluation.metadata["offenders_total"].value)  # type: ignore[arg-type]
    severity: Literal["WARN", "ERROR"] = "ERROR" if evaluation.severity == dg.AssetCheckSeverity.ERROR else "WARN"
    return Finding(evaluation.check_name, evaluation.asset_key.to_user_string(), severity, total, rows)
