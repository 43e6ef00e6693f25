"""Assets: the ledger, the landing (one partition for each pipeline), the union, and one for each mart."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import dagster as dg
import pyarrow.compute as pc

from monitoring_platform.cycle.clock import clock
from monitoring_platform.cycle.context import gather
from monitoring_platform.cycle.ingest import Ingested, ingest
from monitoring_platform.cycle.ledger import NOT_READ
from monitoring_platform.cycle.union import unite
from monitoring_platform.marts.lineage import shipped
from monitoring_platform.marts.own import OwnView, refresh_views
from monitoring_platform.marts.reference import type_name
from monitoring_platform.marts.refresh import Refresher
from monitoring_platform.marts.registry import BY_NAME, MARTS, STOCK
from monitoring_platform.orchestration.job_assets import report_jobs
from monitoring_platform.orchestration.partitions import PIPELINES, register
from monitoring_platform.orchestration.resources import Platform
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.contracts import Table
from monitoring_platform.warehouse.maintenance import maintain
from monitoring_platform.warehouse.store import Warehouse

_log = logging.getLogger("monitoring_platform")
LANDING_KEY = dg.AssetKey(contracts.LANDING.name)


class CycleConfig(dg.Config):
    """What one cycle is told."""

    pipeline_ids: list[str] | None = None
    """Ingest these pipelines only; none given: all with news."""
    now: str | None = None
    """The time that counts as now, ISO 8601; none given: the system's clock."""
    force: bool = True
    """Try failing logs although their next retry is later."""


@contextmanager
def writing(warehouse: Warehouse) -> Iterator[None]:
    """The right to write; that another run has it is logged."""
    with warehouse.lock(lambda: _log.info("waiting: another run is writing to the warehouse")):
        yield


def _ingest(
    context: dg.AssetExecutionContext, warehouse: Warehouse, now: datetime, pipeline_ids: list[str] | None, force: bool
) -> Ingested:
    """Ingest, register partitions, and log one materialization for each pipeline that was read or selected."""
    with writing(warehouse):
        report = ingest(warehouse, now, pipeline_ids=pipeline_ids, force=force, progress=_log.info)
        rows = warehouse.arrow(contracts.PIPELINES).to_pylist()
    known = {
        row["pipeline_id"]: row
        for row in rows
        if row["pipeline_id"] not in (row["logs"] or ()) and (row["state"] != "excluded" or row["first_event_ts"])
    }
    register(context.instance, known)
    for pipeline_id in sorted({*report.events, *(pipeline_ids or ())} & known.keys()):
        row = known[pipeline_id]
        if row["state"] not in NOT_READ:
            context.log_event(
                dg.AssetMaterialization(
                    LANDING_KEY,
                    partition=pipeline_id,
                    metadata={
                        "pipeline_name": row["pipeline_name"] or pipeline_id,
                        "events_read": report.events.get(pipeline_id, 0),
                        "state": row["state"],
                        "logs": dg.MetadataValue.json(row["logs"]),
                    },
                )
            )
    return report


def column_schema(table: Table) -> dg.TableSchema:
    """The contract's columns, types and descriptions as the UI shows them."""
    return dg.TableSchema([dg.TableColumn(c.name, type_name(c.type), description=c.doc) for c in table.columns])


def column_lineage(name: str) -> dg.TableColumnLineage:
    """Which columns each column of a mart is computed from."""
    return dg.TableColumnLineage(
        {
            column: [dg.TableColumnDep(dg.AssetKey(table), source) for table, source in pairs]
            for column, pairs in shipped().get(name, {}).items()
        }
    )


@dg.asset(
    key=contracts.PIPELINES.name,
    group_name="monitoring",
    metadata={"dagster/column_schema": column_schema(contracts.PIPELINES)},
    description="Registry and coverage ledger. Materialising it reads what is new in all logs "
    "(or those of the configured pipeline_ids) into pipeline_event_log.",
    kinds={"deltalake"},
)
def pipelines(context: dg.AssetExecutionContext, config: CycleConfig, platform: Platform) -> dg.MaterializeResult[None]:
    now = clock(config.now)
    warehouse = platform.warehouse()
    with writing(warehouse):
        maintain(warehouse, tuple(STOCK.values()), now)
    report = _ingest(context, warehouse, now, config.pipeline_ids, config.force)
    states = pc.value_counts(warehouse.arrow(contracts.PIPELINES, ["state"])["state"]).to_pylist()
    return dg.MaterializeResult(
        metadata={
            **table_metadata(warehouse, contracts.PIPELINES),
            **_report_metadata(report),
            "states": dg.MetadataValue.json({entry["values"]: entry["counts"] for entry in states}),
        }
    )


@dg.asset(
    key=LANDING_KEY,
    metadata={"dagster/column_schema": column_schema(contracts.LANDING)},
    partitions_def=PIPELINES,
    backfill_policy=dg.BackfillPolicy.single_run(),
    output_required=False,
    group_name="monitoring",
    description="Landing: events as delivered, one partition for each pipeline. Repeats are possible here, not after.",
    kinds={"deltalake"},
)
def pipeline_event_log(context: dg.AssetExecutionContext, platform: Platform) -> Any:
    selected = list(context.partition_keys)
    report = _ingest(context, platform.warehouse(), clock(None), selected, force=True)
    not_read = {**report.failed, **report.closed}
    if not_read:
        raise dg.Failure(
            description=f"{len(not_read)} of {report.logs} logs could not be read; the others are done. "
            + "; ".join(f"{location}: {reason}" for location, reason in sorted(not_read.items())),
            metadata=_report_metadata(report),
            allow_retries=False,
        )
    yield from ()


@dg.asset(
    key=contracts.UNION.name,
    metadata={"dagster/column_schema": column_schema(contracts.UNION)},
    deps=[LANDING_KEY, contracts.PIPELINES.name],
    group_name="monitoring",
    description="All events of all pipelines, each once; append-only.",
    kinds={"deltalake"},
)
def all_pipelines_event_log(platform: Platform) -> dg.MaterializeResult[None]:
    warehouse = platform.warehouse()
    with writing(warehouse):
        report = unite(warehouse, _log.info)
    return dg.MaterializeResult(
        metadata={
            **table_metadata(warehouse, contracts.UNION),
            "events_new": report.added,
            "events_repeated": report.repeated,
            "id_conflicts": report.conflicts,
            **{f"lag_{name}_seconds": seconds for name, seconds in report.lag_seconds().items()},
        }
    )


class ContextConfig(dg.Config):
    """What a look at the context is told."""

    now: str | None = None
    """The time that counts as now, ISO 8601; none given: the system's clock."""
    force: bool = True
    """Try what failed although its next retry is later."""


@dg.multi_asset(
    name="workspace_context",
    specs=[
        dg.AssetSpec(
            table.name,
            deps=[contracts.PIPELINES.name, contracts.UNION.name],
            group_name="monitoring",
            description=f"One row: {table.grain}.",
            kinds={"deltalake"},
            metadata={"dagster/column_schema": column_schema(table)},
        )
        for table in contracts.CONTEXT_TABLES
    ],
)
def workspace_context(config: ContextConfig, platform: Platform) -> Iterator[dg.MaterializeResult[None]]:
    """What workspaces and billing say beside the logs. What fails is named by a check, so that the marts go on."""
    warehouse = platform.warehouse()
    with writing(warehouse):
        report = gather(warehouse, clock(config.now), force=config.force, progress=_log.info)
    for table in contracts.CONTEXT_TABLES:
        metadata = table_metadata(warehouse, table)
        metadata["rows_written"] = report.written.get(table.name, 0)
        metadata["failed"] = dg.MetadataValue.json(report.failed)
        yield dg.MaterializeResult(asset_key=table.name, metadata=metadata)


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            mart.name,
            deps=[*mart.inputs, *(() if mart.scope in ("pipeline", "whole") else (contracts.UNION.name,))],
            group_name="monitoring",
            description=f"One row: {mart.table.grain}.",
            kinds={"deltalake", "sql"},
            skippable=True,
            metadata={
                "keys": ", ".join(mart.table.keys),
                "sql": dg.MetadataValue.md(f"```sql\n{mart.sql}\n```"),
                "dagster/column_schema": column_schema(mart.table),
                "dagster/column_lineage": column_lineage(mart.name),
            },
        )
        for mart in MARTS
    ],
    can_subset=True,
)
def marts(context: dg.AssetExecutionContext, platform: Platform) -> Iterator[dg.MaterializeResult[None]]:
    """Each selected mart, in order: one step, because a step costs more than a small mart."""
    warehouse = platform.warehouse()
    selected = {key.to_user_string() for key in context.selected_asset_keys}
    with writing(warehouse):
        # What this configuration has no use for is there all the same, empty.
        unused = [*contracts.CONTEXT_TABLES, *(mart.table for mart in MARTS if mart.context)]
        warehouse.create([table for table in unused if not warehouse.exists(table)])
        refresher = Refresher(warehouse)
        try:
            for report in refresher.refresh_all([mart for mart in MARTS if mart.name in selected]):
                yield dg.MaterializeResult(
                    asset_key=report.mart,
                    metadata={
                        **table_metadata(warehouse, BY_NAME[report.mart].table),
                        "touched": report.touched,
                        "rows_written": report.written,
                        "rows_removed": report.removed,
                        **report.read,
                    },
                )
        finally:
            refresher.save()
    report_jobs(context.instance, warehouse)


def make_own_views(views: list[OwnView]) -> dg.AssetsDefinition:
    """The configured views of one's own: one asset each, with the tables that they read as lineage."""

    @dg.multi_asset(
        name="own_views",
        specs=[
            dg.AssetSpec(
                view.name,
                deps=list(view.inputs),
                group_name="own",
                description="A view of one's own from the configuration.",
                kinds={"deltalake", "sql"},
                skippable=True,
                metadata={"refresh": view.refresh, "sql": dg.MetadataValue.md(f"```sql\n{view.sql}\n```")},
            )
            for view in views
        ],
        can_subset=True,
    )
    def own_views(context: dg.AssetExecutionContext, platform: Platform) -> Iterator[dg.MaterializeResult[None]]:
        """Each selected view, in order of dependence; the failed ones are named after the good ones are done."""
        warehouse = platform.warehouse()
        selected = {key.to_user_string() for key in context.selected_asset_keys}
        failed = {}
        with writing(warehouse):
            for report in refresh_views(warehouse, [view for view in views if view.name in selected]):
                if report.error:
                    failed[report.view] = report.error
                else:
                    yield dg.MaterializeResult(asset_key=report.view, metadata={"rows_written": report.written})
        if failed:
            named = "; ".join(f"{name}: {error}" for name, error in failed.items())
            raise dg.Failure(
                f"{len(failed)} of {len(selected)} views of one's own failed, the others are done. {named}",
                allow_retries=False,
            )

    return own_views


ASSETS: list[dg.AssetsDefinition] = [
    pipelines,
    pipeline_event_log,
    all_pipelines_event_log,
    marts,
]


def table_metadata(warehouse: Warehouse, table: Table) -> dict[str, Any]:
    """Rows and place of a table, as the UI shows them."""
    return {"dagster/row_count": warehouse.rows(table), "dagster/uri": warehouse.address(table)}


def _report_metadata(report: Ingested) -> dict[str, Any]:
    read = report.logs - len(report.failed) - len(report.closed)
    return {
        "logs_read": read,
        "logs_failed": len(report.failed),
        "processed": f"{read}/{report.logs} logs",
        "events_read": sum(report.events.values()),
        "quarantined": report.quarantined,
        "succeeded": dg.MetadataValue.json(report.succeeded),
        "failed": dg.MetadataValue.json(report.failed),
        "closed": dg.MetadataValue.json(report.closed),
        "new_pipelines": dg.MetadataValue.json(report.new_pipelines),
        "empty_sources": dg.MetadataValue.json(report.empty_sources),
    }
