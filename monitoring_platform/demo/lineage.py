"""Who reads what: gold reads silver, silver reads bronze, and inside a pipeline one flow reads another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from monitoring_platform.demo.events import Json
from monitoring_platform.demo.model import CATALOG, Flow, Pipeline

_FED_BY = {"silver": "bronze", "gold": "silver"}


class Edge(NamedTuple):
    """A flow of a pipeline and one dataset that it reads; `output` or `sink` is what it writes."""

    flow: str
    input: str
    output: str | None
    sink: str | None


def wire(fleet: Sequence[Pipeline], seed: int) -> list[Pipeline]:
    """The fleet with the inputs of all flows; what a failing pipeline writes is always read by somebody."""
    makers = {layer: [p for p in fleet if p.layer == layer] for layer in ("bronze", "silver")}
    wanted: dict[str, list[str]] = defaultdict(list)
    for maker in fleet:
        readers = [p for p in fleet if _FED_BY.get(p.layer) == maker.layer]
        if maker.plant == "still_failing" and readers:
            wanted[Random(f"reader of {maker.name} {seed}").choice(readers).id].append(_offered(maker))
    return [
        pipeline
        if pipeline.kind == "gateway"
        else _wired(pipeline, makers.get(_FED_BY.get(pipeline.layer, ""), []), wanted[pipeline.id], seed)
        for pipeline in fleet
    ]


def _offered(maker: Pipeline) -> str:
    """The dataset of a pipeline that others read: its last one."""
    return next(name for flow in reversed(maker.flows) if (name := maker.output(flow)) is not None)


def _wired(pipeline: Pipeline, makers: Sequence[Pipeline], wanted: list[str], seed: int) -> Pipeline:
    rng = Random(f"inputs of {pipeline.name} {seed}")
    first, *others = pipeline.flows
    inside = [_source_inside(pipeline, place, flow) for place, flow in enumerate(others, 1)]
    return replace(
        pipeline,
        flows=(
            replace(first, inputs=tuple(dict.fromkeys([*_from_outside(pipeline, makers, rng), *wanted]))),
            *(replace(flow, inputs=(name,)) for flow, name in zip(others, inside, strict=True)),
        ),
    )


def _source_inside(pipeline: Pipeline, place: int, flow: Flow) -> str:
    """Streaming tables are refined step by step; views, histories and sinks all read the first table."""
    before = place - 1 if pipeline.kind == "streaming" and not flow.is_sink else 0
    return f"{CATALOG}.{pipeline.schema}.{pipeline.flows[before].dataset}"


def _from_outside(pipeline: Pipeline, makers: Sequence[Pipeline], rng: Random) -> list[str]:
    """What the first flow reads: nothing in the graph where it reads Kafka or files."""
    if not makers:
        is_table = pipeline.flows[0].source == "delta"
        return [f"{CATALOG}.sources.{pipeline.subject}_landing"] if is_table else []
    if pipeline.layer == "gold":
        return [_offered(maker) for maker in rng.sample(makers, min(len(makers), rng.randint(1, 3)))]
    same = [maker for maker in makers if maker.subject == pipeline.subject]
    chosen = [same[0] if same else rng.choice(makers)]
    if rng.random() < 0.25:
        chosen.append(rng.choice(makers))
    return [_offered(maker) for maker in chosen]


def edges(pipeline: Pipeline) -> list[Edge]:
    """The graph of a pipeline."""
    return [
        Edge(flow.name, name, pipeline.output(flow), flow.dataset if flow.is_sink else None)
        for flow in pipeline.flows
        for name in flow.inputs
    ]


def downstream(fleet: Iterable[Pipeline], pipeline: Pipeline, flow: Flow) -> list[Json]:
    """Every flow that goes without data, or with old data, when this one fails; sorted."""
    readers: dict[str, list[tuple[Pipeline, Flow]]] = defaultdict(list)
    for other in fleet:
        for each in other.flows:
            for name in each.inputs:
                readers[name].append((other, each))
    found: dict[tuple[str, str], Json] = {}
    waiting = [pipeline.output(flow)]
    while waiting:
        for other, each in readers.get(waiting.pop() or "", ()):
            key = other.id, each.name
            if key not in found and key != (pipeline.id, flow.name):
                found[key] = {"pipeline_id": other.id, "pipeline_name": other.name, "flow": each.name}
                waiting.append(other.output(each))
    return [found[key] for key in sorted(found)]
