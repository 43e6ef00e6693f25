"""The system tables, computed from what is in the workspace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tests.workspace import shapes
from tests.workspace.model import TERMINAL, Pipeline, hours
from tests.workspace.shapes import MICROS, Json

if TYPE_CHECKING:
    from tests.workspace.world import Workspace

TEXT, TEXTS, TAGS = pa.string(), pa.list_(pa.string()), pa.map_(pa.string(), pa.string())

PIPELINES = pa.schema(
    [
        ("account_id", TEXT),
        ("workspace_id", TEXT),
        ("pipeline_id", TEXT),
        ("pipeline_type", TEXT),
        ("name", TEXT),
        ("created_by", TEXT),
        ("run_as", TEXT),
        ("tags", TAGS),
        (
            "settings",
            pa.struct(
                [
                    ("photon", pa.bool_()),
                    ("development", pa.bool_()),
                    ("continuous", pa.bool_()),
                    ("serverless", pa.bool_()),
                    ("edition", TEXT),
                    ("channel", TEXT),
                ]
            ),
        ),
        ("configuration", TAGS),
        ("change_time", MICROS),
        ("delete_time", MICROS),
        ("create_time", MICROS),
    ]
)
_TASK = pa.struct([("job_id", TEXT), ("job_task_run_id", TEXT), ("performance_target", TEXT)])
TIMELINE = pa.schema(
    [
        ("account_id", TEXT),
        ("workspace_id", TEXT),
        ("pipeline_id", TEXT),
        ("update_id", TEXT),
        ("update_type", TEXT),
        ("request_id", TEXT),
        ("run_as_user_name", TEXT),
        ("trigger_type", TEXT),
        ("trigger_details", pa.struct([("job_task", _TASK), ("pipeline_task", pa.struct([("pipeline_id", TEXT)]))])),
        ("result_state", TEXT),
        ("compute", pa.struct([("type", TEXT), ("cluster_id", TEXT)])),
        ("period_start_time", MICROS),
        ("period_end_time", MICROS),
        ("refresh_selection", TEXTS),
        ("full_refresh_selection", TEXTS),
        ("reset_checkpoint_selection", TEXTS),
    ]
)
_METADATA = pa.struct(
    [
        (name, TEXT)
        for name in (
            "cluster_id",
            "job_id",
            "warehouse_id",
            "job_run_id",
            "job_name",
            "dlt_pipeline_id",
            "dlt_update_id",
            "dlt_maintenance_id",
        )
    ]
)
_FEATURES = pa.struct(
    [("is_serverless", pa.bool_()), ("is_photon", pa.bool_()), ("dlt_tier", TEXT), ("sql_tier", TEXT)]
)
USAGE = pa.schema(
    [
        ("record_id", TEXT),
        ("account_id", TEXT),
        ("workspace_id", TEXT),
        ("sku_name", TEXT),
        ("cloud", TEXT),
        ("usage_start_time", MICROS),
        ("usage_end_time", MICROS),
        ("usage_date", pa.date32()),
        ("custom_tags", TAGS),
        ("usage_unit", TEXT),
        ("usage_quantity", pa.decimal128(38, 18)),
        ("usage_metadata", _METADATA),
        ("identity_metadata", pa.struct([("run_as", TEXT)])),
        ("record_type", TEXT),
        ("ingestion_date", pa.date32()),
        ("billing_origin_product", TEXT),
        ("product_features", _FEATURES),
        ("usage_type", TEXT),
    ]
)
LIST_PRICES = pa.schema(
    [
        ("price_start_time", MICROS),
        ("price_end_time", MICROS),
        ("account_id", TEXT),
        ("sku_name", TEXT),
        ("cloud", TEXT),
        ("currency_code", TEXT),
        ("usage_unit", TEXT),
        (
            "pricing",
            pa.struct(
                [
                    ("default", pa.decimal128(38, 18)),
                    ("promotional", pa.struct([("default", pa.decimal128(38, 18))])),
                    ("effective_list", pa.struct([("default", pa.decimal128(38, 18))])),
                ]
            ),
        ),
    ]
)
_INFORMATION = pa.schema(
    [
        ("table_catalog", TEXT),
        ("table_schema", TEXT),
        ("table_name", TEXT),
        ("table_type", TEXT),
        ("table_owner", TEXT),
        ("created", MICROS),
    ]
)


def _pipeline_events(workspace: Workspace) -> pa.Table:
    parts = [shapes.system_table(p.events, home.account_id, home.workspace_id) for home, p in _all(workspace)]
    empty = shapes.system_table([], workspace.account_id, workspace.workspace_id)
    return pa.concat_tables([empty, *parts])


def _all(workspace: Workspace) -> Iterator[tuple[Workspace, Pipeline]]:
    """All pipelines of the region with their workspaces."""
    return ((home, p) for home in workspace.region for p in home.pipelines.values())


def _pipelines(workspace: Workspace) -> pa.Table:
    """The history of settings: one row when it was made, one for its last change, one when it was deleted."""
    rows: list[Json] = []
    for home, p in _all(workspace):
        row = {
            "account_id": home.account_id,
            "workspace_id": home.workspace_id,
            "pipeline_id": p.id,
            "pipeline_type": p.spec.get("pipeline_type", "ETL_PIPELINE"),
            "name": p.name,
            "created_by": p.owner,
            "run_as": p.run_as,
            "tags": list((p.spec.get("tags") or {}).items()),
            "settings": {name: p.spec.get(name) for name in ("photon", "development", "continuous", "serverless")}
            | {"edition": p.spec.get("edition"), "channel": p.spec.get("channel")},
            "configuration": list((p.spec.get("configuration") or {}).items()),
            "create_time": p.created,
        }
        times = dict.fromkeys((p.created, p.last_modified))
        rows += [{**row, "change_time": at, "delete_time": None} for at in times]
        if p.deleted:
            rows.append({**row, "change_time": p.deleted, "delete_time": p.deleted})
    return pa.Table.from_pylist(rows, PIPELINES)


def _timeline(workspace: Workspace) -> pa.Table:
    """One row for each hour of an update; the result is on the last one only."""
    rows: list[Json] = []
    for home, p in _all(workspace):
        for update in p.updates:
            last = update.ended
            if last is None and p.events:
                last = max(shapes.instant(event["timestamp"]) for event in p.events)
            slices = list(hours(update.created, max(last or update.created, update.created))) or [
                (update.created, update.created)
            ]
            for number, (start, stop) in enumerate(slices, 1):
                is_end = number == len(slices) and update.state in TERMINAL
                rows.append(
                    {
                        "account_id": home.account_id,
                        "workspace_id": home.workspace_id,
                        "pipeline_id": p.id,
                        "update_id": update.update_id,
                        "update_type": _update_type(update.full_refresh, update.validate_only),
                        "request_id": update.request_id,
                        "run_as_user_name": p.run_as,
                        "trigger_type": update.cause,
                        "trigger_details": _trigger(update.job_task),
                        "result_state": update.state if is_end else None,
                        "compute": {"type": "SERVERLESS" if p.spec.get("serverless") else "CLASSIC"},
                        "period_start_time": start,
                        "period_end_time": stop,
                    }
                )
    return pa.Table.from_pylist(rows, TIMELINE)


def _trigger(job_task: tuple[str, str] | None) -> Json | None:
    if job_task is None:
        return None
    return {"job_task": {"job_id": job_task[0], "job_task_run_id": job_task[1]}}


def _update_type(full_refresh: bool, validate_only: bool) -> str:
    return "VALIDATE" if validate_only else "FULL_REFRESH" if full_refresh else "REFRESH"


def _usage(workspace: Workspace) -> pa.Table:
    return pa.Table.from_pylist([_billed(home, record) for home in workspace.region for record in home.usage], USAGE)


def _billed(workspace: Workspace, record: Json) -> Json:
    start = record.get("usage_start_time")
    defaults = {
        "account_id": workspace.account_id,
        "workspace_id": workspace.workspace_id,
        "cloud": "AWS",
        "usage_unit": "DBU",
        "record_type": "ORIGINAL",
        "usage_date": start.date() if start else None,
        "ingestion_date": start.date() if start else None,
    }
    return {**defaults, **record}


def _list_prices(workspace: Workspace) -> pa.Table:
    defaults = {"account_id": workspace.account_id, "cloud": "AWS", "currency_code": "USD", "usage_unit": "DBU"}
    return pa.Table.from_pylist([{**defaults, **record} for record in workspace.list_prices], LIST_PRICES)


def _information(workspace: Workspace) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for relation in workspace.relations().values():
        catalog, schema, name = relation.parts
        rows.append(
            {
                "table_catalog": catalog,
                "table_schema": schema,
                "table_name": name,
                "table_type": "VIEW" if relation.definition else "MANAGED",
                "table_owner": relation.owner,
                "created": datetime(2025, 1, 1, tzinfo=timezone.utc),
            }
        )
    return pa.Table.from_pylist(rows, _INFORMATION)


TABLES: dict[str, Callable[[Workspace], pa.Table]] = {
    "system.lakeflow_pipeline_events_preview.pipeline_events": _pipeline_events,
    "system.lakeflow.pipelines": _pipelines,
    "system.lakeflow.pipeline_update_timeline": _timeline,
    "system.billing.usage": _usage,
    "system.billing.list_prices": _list_prices,
    "system.information_schema.tables": _information,
}
#: What every user has: the system catalog may be used, its schemas are granted one by one.
OPEN = {"system"}
