"""The cycle as a task of a Databricks job (entry point `monitoring-platform-job`).

A wheel's task succeeds by returning and fails by raising. If Dagster launched it through Pipes, what the cycle did is
reported there: materializations, check results, and at the very end a closing report, without which the launching side
takes the run for interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from contextlib import nullcontext
from typing import Any

from dagster_pipes import (
    PipesCliArgsParamsLoader,
    PipesContext,
    PipesEnvVarParamsLoader,
    PipesParamsLoader,
    PipesUnityCatalogVolumesContextLoader,
    PipesUnityCatalogVolumesMessageWriter,
    open_dagster_pipes,
)

from monitoring_platform.config import load, use_config
from monitoring_platform.orchestration.remote import CLOSING
from monitoring_platform.orchestration.runner import CycleResult, run_cycle


class CycleFailed(Exception):
    """Part of the cycle failed; the rest is done."""


def main(arguments: list[str] | None = None) -> None:
    """One cycle. Raises CycleFailed with the names of what failed, ConfigError if the configuration is wrong."""
    parser = argparse.ArgumentParser(prog="monitoring-platform-job", description=__doc__)
    parser.add_argument("--config", required=True, metavar="FILE", help="Configuration file.")
    parser.add_argument("--now", metavar="TIME", help="ISO time that counts as now.")
    given, _ = parser.parse_known_args(sys.argv[1:] if arguments is None else arguments)  # Pipes adds its own
    settings = load(given.config)
    use_config(settings.config_path)
    if "DATABRICKS_RUNTIME_VERSION" in os.environ:  # a cluster's own disk: the instance is for this run only
        os.environ.setdefault("DAGSTER_HOME", tempfile.mkdtemp(prefix="dagster-"))
    with _launcher() or nullcontext() as pipes:
        result = run_cycle(settings, given.now)
        if pipes is not None:  # which tells of failures itself: a run that failed would lose what it reported
            _report(pipes, result)
            return
    if not result.success:
        raise CycleFailed("; ".join(result.errors) or "the cycle failed")


def _launcher() -> PipesContext | None:
    """The Dagster run that launched this process: by the environment, or by arguments on a cluster that was there."""
    for loader in (PipesEnvVarParamsLoader, PipesCliArgsParamsLoader):
        params: PipesParamsLoader = loader()
        if params.is_dagster_pipes_process():
            if "DATABRICKS_RUNTIME_VERSION" not in os.environ:
                return open_dagster_pipes(params_loader=params)
            return open_dagster_pipes(
                params_loader=params,
                context_loader=PipesUnityCatalogVolumesContextLoader(),
                message_writer=PipesUnityCatalogVolumesMessageWriter(interval=5),
            )
    return None


def _report(pipes: PipesContext, result: CycleResult) -> None:
    expected = set(pipes.asset_keys) if pipes.is_asset_step else set()
    for asset, metadata in result.steps.items():
        if asset in expected:
            pipes.report_asset_materialization(asset_key=asset, metadata=_plain(metadata))
    for finding in (*result.findings, *result.rules):
        if finding.table in expected:
            offenders = [{name: str(value) for name, value in row.items()} for row in finding.offenders]
            pipes.report_asset_check(
                asset_key=finding.table,
                check_name=finding.check,
                passed=finding.passed,
                severity=finding.severity,
                metadata=_plain({"offenders_total": finding.total, "offenders": offenders}),
            )
    pipes.report_custom_message({CLOSING: {"success": result.success, "errors": result.errors, "run": result.run_id}})


def _plain(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata as Pipes takes it: structures are said to be JSON, what JSON cannot hold is text."""
    told: dict[str, Any] = {}
    for short, value in metadata.items():
        name = f"dagster/{short}" if short in ("row_count", "uri") else short  # names that Dagster shows in its own way
        if isinstance(value, (dict, list)):
            told[name] = {"raw_value": value, "type": "json"}
        elif value is not None:
            told[name] = value if isinstance(value, (str, int, float, bool)) else str(value)
    return told


if __name__ == "__main__":
    main()
