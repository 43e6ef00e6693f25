"""The log of one pipeline while it is being made: events so far, runs so far, and what lives on between updates."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from monitoring_platform.demo.events import Event, Json, new_id
from monitoring_platform.demo.fleet import Flow, Pipeline
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

    def __post_init__(self) -> None:
        self._control_seq = self.rng.randrange(1 << 50, 1 << 51)
        self._data_seq = 0
        self._flow_ids: dict[str, str] = {}
        self._next_batch: dict[str, int] = {}
        self.weights = {flow.name: self.rng.uniform(1.0, 3.0) for flow in self.pipeline.flows}
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

    def flow_id(self, flow: Flow) -> str | None:
        """The id that a flow keeps until its next full refresh; some logs never carry one."""
        if "no_flow_ids" in self.pipeline.quirks:
            return None
        if flow.name not in self._flow_ids:
            self._flow_ids[flow.name] = new_id(self.rng)
        return self._flow_ids[flow.name]

    def forget_flows(self) -> None:
        """A full refresh: new flow ids, and batches are numbered from 0 again."""
        self._flow_ids.clear()
        self._next_batch.clear()

    def batch(self, flow: Flow) -> int:
        """The number of the batch that a flow works on; the same again until it was finished."""
        return self._next_batch.get(flow.name, 0)

    def finish_batch(self, flow: Flow) -> None:
        """Go on to the flow's next batch."""
        self._next_batch[flow.name] = self.batch(flow) + 1
