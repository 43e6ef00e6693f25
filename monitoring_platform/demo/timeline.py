"""When things are asked of a pipeline, and what each of its updates is meant to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from monitoring_platform.demo.events import Json
from monitoring_platform.demo.model import Flow
from monitoring_platform.demo.planning import Obstacle


@dataclass(frozen=True)
class Failure:
    """An error as its exception tells it; `outer` is the class and message of the exception around it."""

    class_name: str
    message: str
    outer: tuple[str, str] | None = None
    before_any_flow: bool = False

    @property
    def root(self) -> str:
        """What makes it the same error as another one: its code, else its class."""
        return self.message[1 : self.message.index("]")] if self.message.startswith("[") else self.class_name

    def as_json(self) -> Json:
        """The `error` of an event."""
        frame = {
            "declaring_class": "com.databricks.pipelines.execution.FlowExecution",
            "method_name": "run",
            "file_name": "FlowExecution.scala",
            "line_number": 412,
        }
        told = [self.outer] if self.outer else []
        return {
            "fatal": True,
            "exceptions": [
                {"class_name": class_name, "message": message, "stack": [frame]}
                for class_name, message in (*told, (self.class_name, self.message))
            ],
        }


@dataclass(frozen=True)
class Attempt:
    """What one update is meant to be.

    `stops_at` is the flow at which a run that does not complete breaks, is stopped or works at the moment.
    `flows` are the flows as they are at this time, None = as the pipeline has them.
    `obstacle` prevents that the first flow, a materialized view, is refreshed incrementally.
    """

    cause: str
    outcome: str = "COMPLETED"
    kind: str = "normal"
    full_refresh: bool = False
    failure: Failure | None = None
    is_refused: bool = False
    stops_at: int = -1
    slow_flow: int | None = None
    extra_ms: int = 0
    rows_factor: float = 1.0
    pass_rates: Mapping[str, float] = field(default_factory=dict)
    cancelled_by: str = "USER_ACTION"
    flows: tuple[Flow, ...] | None = None
    obstacle: Obstacle | None = None
    loses_checkpoint: bool = False
    is_stuck: bool = False


@dataclass(frozen=True)
class Window:
    """From when to when a log is made, in milliseconds."""

    start: int
    end: int


@dataclass(frozen=True)
class Request:
    """Something that was asked for at a time, and the attempts that it takes."""

    at: int
    attempts: tuple[Attempt, ...]


History = list[Request]


def turning_point(length: int) -> int:
    """Where in a history something changes: after two thirds, and not before its third entry if it has one."""
    return max(min(2, length - 1), 2 * length // 3)
