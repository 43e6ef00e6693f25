"""Asset checks on ledger and union: each lists its offenders. None sits on the partitioned asset."""

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import dagster as dg

from monitoring_platform.cycle.clock import clock
from monitoring_platform.health.checks import CHECKS, Finding, run
from monitoring_platform.marts.registry import MARTS
from monitoring_platform.orchestration.resources import Platform

_SEVERITY = {"WARN": dg.AssetCheckSeverity.WARN, "ERROR": dg.AssetCheckSeverity.ERROR}


class CheckConfig(dg.Config):
    """What checks and rules are told."""

    now: str | None = None
    """The time that counts as now, ISO 8601; none given: the system's clock."""


@dg.multi_asset_check(
    name="health_checks",
    specs=[
        dg.AssetCheckSpec(
            check.name,
            asset=check.table,
            description=check.description,
            additional_deps=[mart.name for mart in MARTS if not mart.context],  # they come last
        )
        for check in CHECKS
    ],
    can_subset=True,
)
def health_checks(
    context: dg.AssetCheckExecutionContext, config: CheckConfig, platform: Platform
) -> Iterator[dg.AssetCheckResult]:
    """All selected checks; fails the run after the last one if the monitoring itself is in trouble."""
    warehouse, now = platform.warehouse(), clock(config.now)
    selected = {key.name for key in context.selected_asset_check_keys}
    broken: list[Finding] = []
    for check in CHECKS:
        if check.name not in selected:
            continue
        finding = run(warehouse, check, now)
        if finding.severity == "ERROR" and not finding.passed:
            broken.append(finding)
        yield result_of(finding)
    if broken:
        raise dg.Failure(
            "the monitoring itself is in trouble: " + "; ".join(describe(finding) for finding in broken),
            allow_retries=False,
        )


def result_of(finding: Finding) -> dg.AssetCheckResult:
    """A finding as Dagster shows it."""
    return dg.AssetCheckResult(
        check_name=finding.check,
        asset_key=finding.table,
        passed=finding.passed,
        severity=_SEVERITY[finding.severity],
        metadata=offenders(finding.total, finding.offenders),
    )


def describe(finding: Finding) -> str:
    """One line: the check, how many offenders, and which."""
    named = ", ".join(str(next(iter(row.values()))) for row in finding.offenders)
    return f"{finding.check}: {finding.total} ({named}{', …' if finding.total > len(finding.offenders) else ''})"


def offenders(total: int, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Metadata of a check: how many offenders there are, and a table of those shown, all with the same columns."""
    metadata: dict[str, Any] = {"offenders_total": total}
    if found:
        rows = [{name: _cell(value) for name, value in row.items()} for row in found]
        columns = [dg.TableColumn(name, _kind(rows, name)) for name in rows[0]]
        metadata["offenders"] = dg.MetadataValue.table(
            records=[dg.TableRecord(row) for row in rows], schema=dg.TableSchema(columns=columns)
        )
    return metadata


def _cell(value: Any) -> str | int | float | bool | None:
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


def _kind(rows: list[dict[str, Any]], name: str) -> str:
    value = next((row[name] for row in rows if row[name] is not None), "")
    return {bool: "bool", int: "int", float: "float"}.get(type(value), "string")
