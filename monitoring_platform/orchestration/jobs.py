"""The job `refresh`: discover and ingest, union, marts, health, checks, in this order, in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dagster as dg

from monitoring_platform.warehouse import contracts

REFRESH = "refresh"


def make_refresh(marts: Sequence[str], *others: str) -> Any:
    """The job over ledger, union and marts, and what else the configuration asks for: context, own views, health."""
    return dg.define_asset_job(
        REFRESH,
        selection=dg.AssetSelection.assets(contracts.PIPELINES.name, contracts.UNION.name, *marts, *others),
        description="One cycle: what is new in all logs, union, context, marts, views of one's own, health, checks.",
        executor_def=dg.in_process_executor,  # one engine for each run, not one for each step
    )


def failure_text(event: dg.DagsterEvent) -> str:
    """Why a step failed: what it said itself, else its first cause."""
    failure = event.step_failure_data
    if failure.user_failure_data and failure.user_failure_data.description:
        return failure.user_failure_data.description
    error = failure.error
    while error is not None and error.cause is not None:
        error = error.cause
    return f"{event.step_key}: {error.message.strip() if error else 'failed'}"
