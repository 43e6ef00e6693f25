"""Dynamic partitions: one for each pipeline, keyed by pipeline_id. Keys are added, never deleted."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

PIPELINES = dg.DynamicPartitionsDefinition(name="pipelines")


def register(instance: dg.DagsterInstance, pipeline_ids: Iterable[str]) -> list[str]:
    """Add the keys that are new; returns them."""
    known = set(instance.get_dynamic_partitions(str(PIPELINES.name)))
    new = sorted(set(pipeline_ids) - known)
    if new:
        instance.add_dynamic_partitions(str(PIPELINES.name), new)
    return new
