"""Event histories for pipelines of the stand-in."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from monitoring_platform.demo.events import DAY, rest_shape
from monitoring_platform.demo.fleet import Fleet
from monitoring_platform.demo.history import live
from monitoring_platform.demo.model import Pipeline
from monitoring_platform.demo.timeline import Window
from tests.workspace.shapes import Json, epoch_ms, iso


def update(
    pipeline_id: str, name: str, start: datetime, update_id: str, outcome: str | None = "COMPLETED", **origin: Any
) -> list[Json]:
    """One update of five minutes: create_update, states, one flow with 100 rows. Outcome None: it still runs."""
    common = {"pipeline_id": pipeline_id, "pipeline_name": name, "update_id": update_id, "org_id": 4820391765520184}

    def event(number: int, seconds: float, event_type: str, body: Json, **more: Any) -> Json:
        return {
            "id": f"{update_id}-{number:02}",
            "timestamp": iso(start + timedelta(seconds=seconds)),
            "event_type": event_type,
            "level": "INFO",
            "maturity_level": "STABLE",
            "message": f"{event_type} of {name}",
            "origin": {**common, **origin, **more},
            "sequence": {"control_plane_seq_no": epoch_ms(start) * 1000 + number},
            "details": {event_type: body},
        }

    batch = {"status": "RUNNING", "metrics": {"num_output_rows": 100}}
    events = [
        event(0, 0, "create_update", {"cause": "API_CALL", "config": {"name": name}}, request_id=update_id),
        event(1, 1, "update_progress", {"state": "WAITING_FOR_RESOURCES"}),
        event(2, 60, "update_progress", {"state": "RUNNING"}),
        event(3, 90, "flow_progress", batch, flow_name="orders", batch_id=0),
        event(4, 290, "flow_progress", {"status": "COMPLETED"}, flow_name="orders"),
    ]
    end = [event(5, 300, "update_progress", {"state": outcome})] if outcome else []
    return events + end


def demo(pipelines: int, days: int, end: datetime, seed: int = 3) -> list[tuple[Pipeline, list[Json]]]:
    """Pipelines of the demo fleet with their whole logs as REST objects."""
    stop = epoch_ms(end)
    window = Window(stop - days * DAY, stop)
    fleet = Fleet.build(pipelines, seed).pipelines
    return [(pipeline, [rest_shape(event) for event in live(pipeline, window, seed).events]) for pipeline in fleet]
