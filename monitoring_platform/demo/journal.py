"""The log of one pipeline while it is being made: events so far, runs so far, and what lives on between updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from monitoring_platform.demo.events import Event, Json, new_id
from monitoring_platform.demo.model import Flow, Pipeline
from monitoring_platform.demo.truth import RunTruth

ORG_ID = 4820391765520184
_PIPELINE_TYPES = {"gateway": "INGESTION_GATEWAY"}


@dataclass
class Journal:
    """Writes events in the order of their making; ids, sequence numbers and batch numbers come from its own dice."""

    pipeline: Pipeline
    rng: Random
    events: list[Event] = field(default_factory=list)
    runs: list[RunTruth] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    built: set[str] = field(default_factory=set)  # materialized views that were computed once
    troubled_backlogs: dict[str, Callable[[int], int | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._control_seq = self.rng.randrange(1 << 50, 1 << 51)
        self._data_seq = 0
        self._flow_ids: dict[str, str] = {}
        self._next_batch: dict[str, int] = {}
        self.weights = {flow.name: self.rng.uniform(1.0, 3.0) for flow in self.pipeline.flows}
        self.usual_backlogs = {
            flow.name: self.rng.choice((0, self.rng.randint(4_000, 60_000))) for flow in self.pipeline.flows
        }
        self.origin: Json = {
            "cloud": "AWS",
            "region": "eu-west-1",
            "org_id": ORG_ID,
            "pipeline_id": self.pipeline.id,
            "pipeline_type": _PIPELINE_TYPES.get(self.pipeline.kind, "WORKSPACE"),
            "pipeline_name": self.pipeline.name,
        }

    def write(
        self,
        ts: int,
        event_type: str,
        details: Json | None,
        message: str,
        origin: Json,
        *,
        level: str = "INFO",
        maturity: str = "STABLE",
        error: Json | None = None,
        control_plane: bool = False,
    ) -> None:
        """Add one event; the control plane's own events carry only half of the sequence."""
        self._control_seq += 1
        sequence: Json = {"control_plane_seq_no": self._control_seq}
        if not control_plane:
            self._data_seq += 1
            sequence["data_plane_id"] = {"instance": "execution", "seq_no": self._data_seq}
        body = None if details is None else {event_type: details}
        self.events.append(
            Event(new_id(self.rng), ts, event_type, level, message, origin, sequence, maturity, error, body)
        )

    def user_action(self, ts: int, action: str) -> None:
        """What a person asked for; such an event belongs to no update."""
        details = {"action": action, "user_name": "ana.silva@example.com", "user_id": 7719034412258}
        message = f"User ana.silva@example.com performed {action}."
        self.write(ts, "user_action", details, message, self.origin, control_plane=True)
        self.actions[action] += 1

    def flow_id(self, flow: Flow) -> str | None:
        """The id that a flow keeps until its next full refresh; some logs never carry one."""
        if "no_flow_ids" in self.pipeline.quirks:
            return None
        if flow.name not in self._flow_ids:
            self._flow_ids[flow.name] = new_id(self.rng)
        return self._flow_ids[flow.name]

    def forget_flows(self) -> None:
        """A full refresh: every flow begins anew."""
        for flow in self.pipeline.flows:
            self.forget_flow(flow)
        self.built.clear()

    def forget_flow(self, flow: Flow) -> None:
        """A flow begins anew: it gets a new flow id, and its batches are numbered from 0 again."""
        self._flow_ids.pop(flow.name, None)
        self._next_batch.pop(flow.name, None)

    def waiting(self, flow: Flow, ts: int) -> int:
        """Records that wait in a flow's source: about as many as ever, unless its backlog is in trouble."""
        troubled = self.troubled_backlogs[flow.name](ts) if flow.name in self.troubled_backlogs else None
        if troubled is not None:
            return troubled
        return int(self.usual_backlogs[flow.name] * self.rng.uniform(0.92, 1.08))

    def batch(self, flow: Flow) -> int:
        """The number of the batch that a flow works on; the same again until it was finished."""
        return self._next_batch.get(flow.name, 0)

    def finish_batch(self, flow: Flow) -> None:
        """Go on to the flow's next batch."""
        self._next_batch[flow.name] = self.batch(flow) + 1
