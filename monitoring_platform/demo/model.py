"""What a fleet consists of: pipelines, their flows, the rules that judge them."""

from __future__ import annotations

from dataclasses import dataclass

CATALOG = "main"
SCHEMAS = {"bronze": "bronze", "silver": "silver", "gold": "gold", "gateway": "sales"}

Column = tuple[str, str]


@dataclass(frozen=True)
class Rule:
    """A quality rule on a dataset, named as its events name it; one that is not `evaluated` is only defined."""

    name: str
    dataset: str
    drops: bool
    usual_rate: float
    evaluated: bool = True

    @property
    def action(self) -> str:
        """What is done with records that fail."""
        return "DROP" if self.drops else "ALLOW"


@dataclass(frozen=True)
class Flow:
    """A flow, what feeds it and how it reports its rows.

    `counts`: output (num_output_rows), upserts (upserted and deleted) or nothing.
    `reports`: batches (numbered, counters repeated), rows (no number, each row for itself) or end (with COMPLETED).
    `inputs`: datasets that it reads, with catalog and schema.
    `is_sink`: it writes to a sink named `dataset`, not to a table.
    """

    name: str
    dataset: str
    flow_type: str
    source: str
    counts: str
    reports: str
    usual_rows: int
    rules: tuple[Rule, ...] = ()
    columns: tuple[Column, ...] = ()
    inputs: tuple[str, ...] = ()
    is_sink: bool = False

    @property
    def is_view(self) -> bool:
        """A materialized view: its refresh is planned."""
        return self.flow_type == "MATERIALIZED_VIEW"


@dataclass(frozen=True)
class Secrets:
    """Made-up credentials that must be found nowhere once the log was taken in."""

    token: str
    password: str


@dataclass(frozen=True)
class Pipeline:
    """A pipeline as its owner configured it, and the problem planted in it."""

    id: str
    name: str
    layer: str
    kind: str
    serverless: bool
    per_day: int
    run_seconds: int
    flows: tuple[Flow, ...]
    quirks: frozenset[str]
    dropped_when_no_rules: str
    secrets: Secrets | None = None
    plant: str | None = None
    plant_number: int = 0

    @property
    def runs_without_end(self) -> bool:
        """Continuous pipelines and gateways."""
        return self.kind in ("continuous", "gateway")

    @property
    def schema(self) -> str:
        """Where its tables live, inside the catalog."""
        return SCHEMAS[self.layer]

    @property
    def subject(self) -> str:
        """Its name without the layer."""
        return self.name.removeprefix(self.layer + "_")

    def output(self, flow: Flow) -> str | None:
        """The dataset that a flow writes, with catalog and schema; None for a sink."""
        return None if flow.is_sink else f"{CATALOG}.{self.schema}.{flow.dataset}"
