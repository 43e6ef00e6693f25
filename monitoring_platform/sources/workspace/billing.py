"""Billed usage and list prices by SQL from the system tables."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import pyarrow as pa

from monitoring_platform.sources.billing import from_table
from monitoring_platform.sources.workspace.paths import Ask
from monitoring_platform.sources.workspace.remedies import parts_of, qualified
from monitoring_platform.warehouse.contracts import BILLING_USAGE, LIST_PRICES

#: The table is that of the whole account.
_WORKSPACES = """
SELECT DISTINCT workspace_id FROM {table}
WHERE ingestion_date >= CAST(:since AS DATE)
  AND array_contains(split(:pipelines, ','), usage_metadata.dlt_pipeline_id)
"""
#: By the day on which billing published a record, so that corrections of old usage are found too.
_USAGE = """
SELECT record_id, account_id, workspace_id, sku_name, cloud, usage_start_time, usage_end_time, usage_date, usage_unit,
       CAST(usage_quantity AS STRING) AS usage_quantity, record_type, ingestion_date, billing_origin_product,
       usage_metadata.dlt_pipeline_id AS dlt_pipeline_id, usage_metadata.dlt_update_id AS dlt_update_id,
       usage_metadata.dlt_maintenance_id AS dlt_maintenance_id, to_json(custom_tags) AS custom_tags
FROM {table}
WHERE ingestion_date >= CAST(:since AS DATE) AND ingestion_date < CAST(:until AS DATE)
  AND usage_metadata.dlt_pipeline_id IS NOT NULL
  AND array_contains(split(:workspaces, ','), workspace_id)
"""
_PRICES = """
SELECT sku_name, cloud, usage_unit, currency_code, price_start_time, price_end_time,
       CAST(pricing.default AS STRING) AS default_price,
       CAST(pricing.effective_list.default AS STRING) AS effective_price
FROM {table}
"""


def workspaces(ask: Ask, table: str, pipeline_ids: Iterable[str], since: date) -> list[str]:
    """Ids of the workspaces in which these pipelines were billed since then, sorted. Raises SourceError."""
    statement = _WORKSPACES.format(table=qualified(parts_of(table)))
    found = ask(statement, {"since": since.isoformat(), "pipelines": ",".join(pipeline_ids)})
    return sorted(str(id_) for id_ in found["workspace_id"].to_pylist() if id_ is not None)


def usage(ask: Ask, table: str, workspace_ids: Iterable[str], since: date, until: date) -> pa.Table:
    """Usage of pipelines in these workspaces that was published from `since` on, before `until`. Raises SourceError."""
    statement = _USAGE.format(table=qualified(parts_of(table)))
    days = {"since": since.isoformat(), "until": until.isoformat()}
    return from_table(BILLING_USAGE, ask(statement, {**days, "workspaces": ",".join(workspace_ids)}))


def list_prices(ask: Ask, table: str) -> pa.Table:
    """All prices. Raises SourceError."""
    return from_table(LIST_PRICES, ask(_PRICES.format(table=qualified(parts_of(table))), {}))
