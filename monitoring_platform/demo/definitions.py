"""The graph as an update announces it: what each flow reads and writes, what each dataset and sink is."""

from __future__ import annotations

from collections.abc import Iterator

from monitoring_platform.demo.events import Json, json_text
from monitoring_platform.demo.model import CATALOG, Flow, Pipeline
from monitoring_platform.demo.planning import back_ticked

SINK_SETTING = "kafka.sasl.jaas.config"


def flow_definition(pipeline: Pipeline, flow: Flow) -> Json:
    """The body of flow_definition."""
    body: Json = {
        "input_datasets": [_spelled(pipeline, name) for name in flow.inputs],
        "flow_type": flow.flow_type,
        "language": "SQL" if flow.is_view else "PYTHON",
        "once": False,
    }
    if flow.is_sink:
        body["output_sink"] = flow.dataset
    else:
        body["output_dataset"] = pipeline.output(flow)
    if flow.columns and "schema_with_flow" in pipeline.quirks:
        body["schema_json"] = _schema_json(flow)
    return body


def _spelled(pipeline: Pipeline, name: str) -> str:
    """A dataset as this pipeline's code names it; its own ones often go by their last part."""
    own = f"{CATALOG}.{pipeline.schema}."
    if "short_names" in pipeline.quirks and name.startswith(own):
        return name.removeprefix(own)
    return back_ticked(name) if "back_ticks" in pipeline.quirks else name


def _schema_json(flow: Flow) -> str:
    """The engine's own JSON form of a schema."""
    fields = [{"name": name, "type": kind.lower(), "nullable": True, "metadata": {}} for name, kind in flow.columns]
    return json_text({"type": "struct", "fields": fields})


def dataset_definition(pipeline: Pipeline, flow: Flow) -> Json:
    """The body of dataset_definition; some pipelines tell the schema with the flow."""
    body: Json = {
        "dataset_type": "MATERIALIZED_VIEW" if flow.is_view else "STREAMING_TABLE",
        "num_flows": 1,
        "expectations": [{"name": rule.name, "action": rule.action} for rule in flow.rules],
    }
    if "schema_with_flow" not in pipeline.quirks:
        body["schema"] = [{"name": name, "data_type": kind} for name, kind in flow.columns]
    return body


def sink_definition(pipeline: Pipeline) -> Json:
    """A Kafka sink whose options hold a password."""
    assert pipeline.secrets is not None
    login = f'PlainLoginModule required username="etl" password="{pipeline.secrets.password}";'
    return {"format": "kafka", "options": {"kafka.bootstrap.servers": "broker:9092", SINK_SETTING: login}}


def announcements(pipeline: Pipeline, flows: tuple[Flow, ...], origin: Json) -> Iterator[tuple[str, Json, str, Json]]:
    """Event type, body, message and origin of everything that is defined."""
    for flow in flows:
        target = {"sink_name": flow.dataset} if flow.is_sink else {"dataset_name": flow.dataset}
        message = f"Flow '{flow.name}' defined as {flow.flow_type}."
        at_flow = {**origin, "flow_name": flow.name, **target}
        yield "flow_definition", flow_definition(pipeline, flow), message, at_flow
        if flow.is_sink:
            message = f"Sink '{flow.dataset}' defined."
            yield "sink_definition", sink_definition(pipeline), message, {**origin, **target}
        else:
            message = f"Dataset '{flow.dataset}' defined."
            yield "dataset_definition", dataset_definition(pipeline, flow), message, {**origin, **target}
