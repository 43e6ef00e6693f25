"""Billed usage and list prices by SQL from the system tables."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import pyarrow as pa

from monitoring_platform.sources.billing import from_table
from monitoring_platform.sources.workspace.paths import Ask
from monitoring_platform.sources.workspace.remedies import parts_of, qualified
from monitoring_platform.warehouse.contracts import BILLING_USAGE, LIST_PRICES

#: By the day on which billing published a record, so that corrections of old usage are found too. Of the workspaces in
#: which our pipelines are billed, because the table is that of the whole account.
_USAGE = """
SELECT record_id, account_id, workspace_id, sku_name, cloud, usage_start_time, usage_end_time, usage_date, usage_unit,
       CAST(usage_quantity AS STRING) AS usage_quantity, record_type, ingestion_date, billing_origin_product,
       usage_metadata.dlt_pipeline_id AS dlt_pipeline_id, usage_metadata.dlt_update_id AS dlt_update_id,
       usage_metadata.dlt_maintenance_id AS dlt_maintenance_id, to_json(custom_tags) AS custom_tags
FROM {table}
WHERE ingestion_date >= CAST(:since AS DATE) AND ingestion_date < CAST(:until AS DATE)
  AND usage_metadata.dlt_pipeline_id IS NOT NULL
  AND workspace_id IN (SELECT workspace_id FROM {table}
                       WHERE ingestion_date >= CAST(:since AS DATE) AND ingestion_date < CAST(:until AS DATE)
                         AND array_contains(split(:pipelines, ','), usage_metadata.dlt_pipeline_id))
"""
_PRICES = """
SELECT sku_name, cloud, usage_unit, currency_code, price_start_time, price_end_time,
       CAST(pricing.default AS STRING) AS default_price,
       CAST(pricing.effective_list.default AS STRING) AS effective_price
FROM {table}
"""


def usage(ask: Ask, table: str, pipeline_ids: Iterable[str], since: date, until: date) -> pa.Table:
    """Usage of pipelines that was published from `since` on, before `until`. Raises SourceError."""
    statement = _USAGE.format(table=qualified(parts_of(table)))
    days = {"since": since.isoformat(), "until": until.isoformat()}
    return from_table(BILLING_USAGE, ask(statement, {**days, "pipelines": ",".join(pipeline_ids)}))


def list_prices(ask: Ask, table: str) -> pa.Table:
    """All prices. Raises SourceError."""
    return from_table(LIST_PRICES, ask(_PRICES.format(table=qualified(parts_of(table))), {}))
