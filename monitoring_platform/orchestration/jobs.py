"""The job `refresh`: discover and ingest, union, marts, checks, in this order, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from monitoring_platform.marts.registry import MARTS
from monitoring_platform.warehouse import contracts

REFRESH = "refresh"


def make_refresh(views: Sequence[str] = ()) -> Any:
    """The job over all stock assets and the named views of one's own."""
    return dg.define_asset_job(
        REFRESH,
        selection=dg.AssetSelection.assets(
            contracts.PIPELINES.name, contracts.UNION.name, *[mart.name for mart in MARTS], *views
        ),
        description="One cycle: what is new in all logs, the union, the marts, views of one's own, the checks.",
        executor_def=dg.in_process_executor,  # one engine for each run, not one for each step
    )
