"""Which pipelines carry a problem, and how they are built so that it shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import NamedTuple

from monitoring_platform.demo.drafting import flows_of
from monitoring_platform.demo.model import CATALOG, Column, Flow, Pipeline, Rule

# What is planted, the most telling first: a small fleet carries the beginning of this list.
PLANTS = (
    "still_failing",
    "slow",
    "full_recompute",
    "low_pass_rate",
    "schema_change",
    "stalled",
    "zero_rows",
    "recovered",
    "retry_running",
    "shared_error",
    "shared_error",
    "night_errors",
    "growing_backlog",
    "lost_checkpoint",
    "rule_vanished",
    "stuck_backlog",
    "stale",
    "never_ran",
    "decaying_rule",
    "shared_error",
    "refused",
    "rule_renamed",
    "rule_action_changed",
    "rule_never_evaluated",
    "sink",
    "notices",
    "broken_lines",
    "unknown_event_type",
    "unknown_details",
    "still_failing",
    "recovered",
    "low_pass_rate",
    "still_failing",
)
NIGHT_FLOW = "silver_product_inventory"
FULL_RECOMPUTE_EXPRESSION = "count(DISTINCT customer_id)"


class Host(NamedTuple):
    """Where a plant can grow."""

    kinds: tuple[str, ...] = ("streaming", "cdc")
    layers: tuple[str, ...] = ("bronze", "silver", "gold")


_VIEWS, _CONTINUOUS = Host(("materialized_view",)), Host(("continuous",))
_HOSTS = {
    "slow": Host(("streaming",), ("bronze",)),
    "night_errors": Host(layers=("silver",)),
    "sink": Host(("streaming",), ("bronze",)),
    "full_recompute": _VIEWS,
    "shared_error": _VIEWS,
    "refused": _VIEWS,
    "notices": _VIEWS,
    "stalled": _CONTINUOUS,
    "growing_backlog": _CONTINUOUS,
}
_ANYWHERE = Host()

BEFORE_THE_CHANGE: tuple[Column, ...] = (
    ("id", "BIGINT"),
    ("customer_id", "BIGINT"),
    ("quantity", "INT"),
    ("legacy_code", "STRING"),
    ("amount", "DECIMAL(18,2)"),
    ("loaded_at", "TIMESTAMP"),
)
AFTER_THE_CHANGE: tuple[Column, ...] = (
    ("id", "BIGINT"),
    ("customer_id", "BIGINT"),
    ("quantity", "BIGINT"),
    ("amount", "DECIMAL(18,2)"),
    ("loaded_at", "TIMESTAMP"),
    ("discount_code", "STRING"),
)


def with_plants(drafts: list[Pipeline], rng: Random) -> list[Pipeline]:
    """Plant one problem each in as many pipelines as there are problems, the others spared."""
    fleet = list(drafts)
    candidates = list(range(len(fleet)))
    rng.shuffle(candidates)
    planted: Counter[str] = Counter()
    for plant in PLANTS:
        host = _HOSTS.get(plant, _ANYWHERE)
        number = next((n for n in candidates if fleet[n].kind in host.kinds and fleet[n].layer in host.layers), None)
        if number is None:
            continue
        candidates.remove(number)
        fleet[number] = _planted(fleet[number], plant, planted[plant])
        planted[plant] += 1
    return fleet


def _planted(pipeline: Pipeline, plant: str, number: int) -> Pipeline:
    """The pipeline, made so that the problem shows: a known history before it, few other oddities."""
    calm = replace(
        pipeline,
        plant=plant,
        plant_number=number,
        per_day=max(2, pipeline.per_day),
        quirks=pipeline.quirks - {"no_request_ids"},
    )
    return _MADE_SO[plant](calm) if plant in _MADE_SO else calm


def _first_flow(pipeline: Pipeline, **changes: object) -> Pipeline:
    return replace(pipeline, flows=(replace(pipeline.flows[0], **changes), *pipeline.flows[1:]))  # type: ignore[arg-type]


def _last_flow(pipeline: Pipeline, **changes: object) -> Pipeline:
    return replace(pipeline, flows=(*pipeline.flows[:-1], replace(pipeline.flows[-1], **changes)))  # type: ignore[arg-type]


def _rule(pipeline: Pipeline, name: str, **other: object) -> Rule:
    dataset = f"{CATALOG}.{pipeline.schema}.{pipeline.flows[0].dataset}"
    return replace(Rule(name, dataset, drops=False, usual_rate=0.999), **other)  # type: ignore[arg-type]


def _with_watched_rule(pipeline: Pipeline) -> Pipeline:
    """Only the first flow has this rule."""
    others = (replace(flow, rules=tuple(r for r in flow.rules if r.name != "valid_id")) for flow in pipeline.flows)
    alone = replace(pipeline, flows=tuple(others))
    return _first_flow(alone, reports="batches", usual_rows=40_000, rules=(_rule(pipeline, "valid_id"),))


def _with_rules(*names: str, **other: object) -> Callable[[Pipeline], Pipeline]:
    """The first flow is judged by these rules; the last one of them has something special."""

    def made(pipeline: Pipeline) -> Pipeline:
        rules = [_rule(pipeline, name) for name in names]
        return _first_flow(pipeline, rules=(*rules[:-1], replace(rules[-1], **other)))  # type: ignore[arg-type]

    return made


def _without_rules(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, flows=tuple(replace(flow, rules=(), reports="batches") for flow in pipeline.flows))


def _slow(pipeline: Pipeline) -> Pipeline:
    return replace(_first_flow(pipeline, source="files"), serverless=True, run_seconds=225)


def _retrying(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, serverless=True, run_seconds=200)


def _recovered(pipeline: Pipeline) -> Pipeline:
    """The second one has a log without request ids."""
    return replace(pipeline, quirks=pipeline.quirks | {"no_request_ids"}) if pipeline.plant_number else pipeline


def _at_night(pipeline: Pipeline) -> Pipeline:
    """One whose runs begin at 03:00, among other hours, with the flow that fails at night first."""
    flows = tuple(flows_of("product_inventory", pipeline.layer, pipeline.kind, Random(pipeline.id)))
    night = replace(pipeline, name=NIGHT_FLOW, per_day=4, run_seconds=min(pipeline.run_seconds, 300), flows=flows)
    return _first_flow(night, name=NIGHT_FLOW, dataset=NIGHT_FLOW, rules=())


def _with_flow_ids(pipeline: Pipeline) -> Pipeline:
    """Often enough a day that even a short history has a before and an after."""
    return replace(pipeline, per_day=4, quirks=pipeline.quirks - {"no_flow_ids"})


def _losing_checkpoint(pipeline: Pipeline) -> Pipeline:
    return _first_flow(_with_flow_ids(pipeline), reports="batches")


def _changing(pipeline: Pipeline) -> Pipeline:
    return _first_flow(replace(pipeline, quirks=pipeline.quirks - {"schema_with_flow"}), columns=BEFORE_THE_CHANGE)


def _stuck(pipeline: Pipeline) -> Pipeline:
    return _last_flow(replace(pipeline, per_day=4), reports="batches", rules=(), source="delta")


def _from_kafka(pipeline: Pipeline) -> Pipeline:
    return _first_flow(pipeline, source="kafka")


def _with_sink(pipeline: Pipeline) -> Pipeline:
    """A flow more, which hands the first table on to Kafka."""
    name = f"{pipeline.subject}_to_kafka"
    sink = Flow(name, f"{pipeline.subject}_feed", "APPEND", "delta", "output", "batches", 9_000, is_sink=True)
    return replace(pipeline, serverless=False, flows=(*pipeline.flows, sink))


def _with_old_cluster_events(pipeline: Pipeline) -> Pipeline:
    return replace(pipeline, serverless=False, quirks=pipeline.quirks | {"older_cluster_events"})


_MADE_SO: dict[str, Callable[[Pipeline], Pipeline]] = {
    "low_pass_rate": _with_watched_rule,
    "decaying_rule": _with_watched_rule,
    "zero_rows": _without_rules,
    "slow": _slow,
    "retry_running": _retrying,
    "recovered": _recovered,
    "night_errors": _at_night,
    "full_recompute": _with_flow_ids,
    "lost_checkpoint": _losing_checkpoint,
    "schema_change": _changing,
    "stuck_backlog": _stuck,
    "growing_backlog": _from_kafka,
    "stalled": _from_kafka,
    "rule_vanished": _with_rules("valid_id", "amount is positive"),
    "rule_renamed": _with_rules("valid_id", "fresh_timestamp"),
    "rule_action_changed": _with_rules("valid_id", "not_a_duplicate"),
    "rule_never_evaluated": _with_rules("valid_id", "'country' is known", evaluated=False),
    "sink": _with_sink,
    "notices": _with_old_cluster_events,
}
