"""The evaluation of a cycle as assets: findings, incidents, objectives. Each rule is a check on `incidents`."""

import logging
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import dagster as dg

from monitoring_platform.config import Settings
from monitoring_platform.cycle.clock import clock
from monitoring_platform.health import rules
from monitoring_platform.health.checks import Finding, of_rule
from monitoring_platform.health.incidents import Step
from monitoring_platform.health.notify.delivering import notify
from monitoring_platform.health.watch import watch
from monitoring_platform.marts.registry import MARTS
from monitoring_platform.marts.tables.health import FINDINGS, INCIDENTS, SLO_STATUS
from monitoring_platform.orchestration.assets import column_schema, table_metadata, writing
from monitoring_platform.orchestration.checks import CheckConfig, result_of
from monitoring_platform.orchestration.resources import Platform

_log = logging.getLogger("monitoring_platform")
TABLES = (FINDINGS, INCIDENTS, SLO_STATUS)


def make_health(settings: Settings) -> dg.AssetsDefinition:
    """The evaluation with the configured rules: one step after the marts."""
    names = rules.names(settings)

    @dg.multi_asset(
        name="health",
        specs=[
            dg.AssetSpec(
                table.name,
                deps=[mart.name for mart in MARTS if not mart.context],
                group_name="health",
                description=f"One row: {table.grain}.",
                kinds={"deltalake", "sql"},
                metadata={"dagster/column_schema": column_schema(table)},
            )
            for table in TABLES
        ],
        check_specs=[
            dg.AssetCheckSpec(name, asset=INCIDENTS.name, description=rules.description(name, settings))
            for name in names
        ],
    )
    def health(config: CheckConfig, platform: Platform) -> Iterator[dg.MaterializeResult[Any]]:
        """All rules on the tables as known now; what one finds is a failed check, never a failed run."""
        warehouse, now = platform.warehouse(), clock(config.now)
        with writing(warehouse):
            made = watch(warehouse, now)
        sent = notify(warehouse, now)  # what cannot be sent now, the sensor `alerts` or the next cycle sends
        if sent.failed:
            _log.warning("messages that could not be sent: %s", sent.failed)
        for table in TABLES:
            yield dg.MaterializeResult(
                asset_key=table.name,
                metadata=table_metadata(warehouse, table),
                check_results=list(_results(made)) if table is INCIDENTS else None,
            )

    return health


def _results(made: Step) -> Iterator[dg.AssetCheckResult]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in made.findings:
        found[row["rule"]].append(row)
    for result in made.results:
        rule, error = result["rule"], result["error"]
        if error is None:
            yield result_of(of_rule(rule, found[rule]))
        else:
            yield result_of(Finding(rule, INCIDENTS.name, "ERROR", 1, [{"could_not_be_evaluated": error}]))
