"""The job `refresh`: discover and ingest, union, marts, checks, in this order, in one process."""

from __future__ import annotations

import dagster as dg

from monitoring_platform.marts.registry import MARTS
from monitoring_platform.warehouse import contracts

REFRESH = dg.define_asset_job(
    "refresh",
    selection=dg.AssetSelection.assets(contracts.PIPELINES.name, contracts.UNION.name, *[m.name for m in MARTS]),
    description="One cycle: what is new in all logs, the union, the marts, the checks.",
    executor_def=dg.in_process_executor,  # one engine for each run, not one for each step
)
