"""Who is in the fleet: pipelines with their flows, rules and oddities, and which of them carries a problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count, cycle, islice
from random import Random

from monitoring_platform.demo.events import new_id

# Layer and kind of one pipeline after the other, repeated as long as there are pipelines.
_MIX = ("bS", "sC", "gV", "bS", "sS", "bS", "gV", "bS", "sC", "bW", "gV", "sC", "bS", "gG", "bS", "sS", "gV", "sC")
_LAYERS = {"b": "bronze", "s": "silver", "g": "gold"}
_KINDS = {"S": "streaming", "C": "cdc", "V": "materialized_view", "W": "continuous", "G": "gateway"}

_SUBJECTS_TEXT = {
    "bronze": """
        orders customers products payments shipments clicks inventory returns invoices tickets sessions
        prices suppliers employees campaigns reviews subscriptions sensors vehicles contracts
    """,
    "silver": """
        customers orders products payments shipments sessions returns invoices suppliers subscriptions
        reviews campaigns vehicles contracts tickets employees
    """,
    "gold": """
        revenue_daily customer_360 churn_scores inventory_turnover sales_forecast delivery_times
        margin_weekly campaign_results support_load cash_position supplier_scores retention
    """,
    "gateway": """
        sqlserver_sales postgres_crm oracle_erp mysql_shop sqlserver_finance postgres_logistics
    """,
}
_SUBJECTS = {layer: text.split() for layer, text in _SUBJECTS_TEXT.items()}
_REGIONS = ("", "_eu", "_us", "_apac", "_latam", "_mena")

OWNERS = {
    "bronze": "ingestion-team",
    "silver": "core-data-team",
    "gold": "analytics-team",
    "gateway": "platform-team",
}
_SCHEMAS = {"bronze": "bronze", "silver": "silver", "gold": "gold", "gateway": "sales"}
_RULES = ("valid_id", "amount is positive", "fresh_timestamp", "'country' is known", "not_a_duplicate")

# What is planted, the most telling first: a small fleet carries the beginning of this list.
PLANTS = (
    "still_failing",
    "slow",
    "low_pass_rate",
    "zero_rows",
    "recovered",
    "retry_running",
    "night_errors",
    "stale",
    "never_ran",
    "decaying_rule",
    "broken_lines",
    "unknown_event_type",
    "still_failing",
    "recovered",
    "low_pass_rate",
    "still_failing",
)
NIGHT_FLOW = "silver_product_inventory"


@dataclass(frozen=True)
class Rule:
    """A quality rule on a dataset, named as its events name it."""

    name: str
    dataset: str
    drops: bool
    usual_rate: float


@dataclass(frozen=True)
class Flow:
    """A flow, what feeds it and how it reports its rows.

    `counts`: output (num_output_rows), upserts (upserted and deleted) or nothing.
    `reports`: batches (numbered, counters repeated), rows (no number, each row for itself) or end (with COMPLETED).
    """

    name: str
    dataset: str
    flow_type: str
    source: str
    counts: str
    reports: str
    usual_rows: int
    rules: tuple[Rule, ...] = ()


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
        """Where its tables live, inside the catalog main."""
        return _SCHEMAS[self.layer]


@dataclass(frozen=True)
class Fleet:
    """All pipelines of one demo."""

    pipelines: tuple[Pipeline, ...]

    @classmethod
    def build(cls, pipelines: int, seed: int) -> Fleet:
        """The fleet of a seed; a bigger one has other plants but the same names."""
        rng = Random(f"fleet {seed}")
        names = {layer: _names(layer) for layer in _SUBJECTS}
        drafts = []
        for layer, kind in islice(cycle(map(_layer_and_kind, _MIX)), pipelines):
            name = next(names[layer])
            drafts.append(_pipeline(name, layer, kind, Random(f"{name} {seed}")))
        return cls(tuple(_with_secrets(_with_plants(drafts, rng), rng)))

    @property
    def secrets(self) -> list[str]:
        """Every planted credential."""
        return [text for p in self.pipelines if p.secrets for text in (p.secrets.token, p.secrets.password)]


def _layer_and_kind(letters: str) -> tuple[str, str]:
    kind = _KINDS[letters[1]]
    return ("gateway" if kind == "gateway" else _LAYERS[letters[0]]), kind


def _names(layer: str) -> Iterator[str]:
    for number in count():
        for region in _REGIONS:
            for subject in _SUBJECTS[layer]:
                yield f"{layer}_{subject}{region}" + (f"_{number}" if number else "")


def _pipeline(name: str, layer: str, kind: str, rng: Random) -> Pipeline:
    subject = name.removeprefix(layer + "_")
    quirks = {
        quirk
        for quirk, share in (
            ("text_booleans", 0.2),
            ("no_flow_ids", 0.15),
            ("placeholder_flow", 0.15),
            ("no_request_ids", 0.05),
            ("double_l", 0.2),
            ("nested_runtime", 0.5),
        )
        if rng.random() < share
    }
    return Pipeline(
        id=new_id(rng),
        name=name,
        layer=layer,
        kind=kind,
        serverless=kind not in ("continuous", "gateway") and rng.random() < 0.5,
        per_day=rng.choices((1, 2, 3, 4), (50, 30, 12, 8))[0],
        run_seconds=rng.randint(100, 480),
        flows=tuple(_flows(subject, layer, kind, rng)),
        quirks=frozenset(quirks),
        dropped_when_no_rules=rng.choice(("zero", "null", "absent")),
    )


def _flows(subject: str, layer: str, kind: str, rng: Random) -> Iterator[Flow]:
    schema = _SCHEMAS[layer]
    if kind == "gateway":
        for table in rng.sample(("customers", "orders", "order_lines", "stores"), 2):
            for part, flow_type in (("snapshot", "SNAPSHOT_CHANGE"), ("cdc", "CHANGE")):
                name = f"main.{schema}.{table}_{part}_flow"
                yield Flow(name, table, flow_type, "database", "upserts", "rows", rng.randint(40, 4000))
        return
    qualified = rng.random() < 0.5
    for dataset, flow_type, counts in _datasets(subject, kind, rng):
        source = rng.choice(("kafka", "delta", "files")) if layer == "bronze" else "delta"
        reports = "end" if kind == "materialized_view" else rng.choices(("batches", "rows", "end"), (6, 2, 2))[0]
        yield Flow(
            name=f"main.{schema}.{dataset}" if qualified else dataset,
            dataset=dataset,
            flow_type=flow_type,
            source=source,
            counts=counts,
            reports="batches" if kind == "continuous" else reports,
            usual_rows=int(10 ** rng.uniform(3.7, 5.6)),
            rules=_rules(dataset, schema, rng) if counts != "nothing" and rng.random() < 0.6 else (),
        )


def _datasets(subject: str, kind: str, rng: Random) -> Iterator[tuple[str, str, str]]:
    """Dataset, flow type and how rows are counted, flow by flow."""
    if kind == "streaming":
        for suffix in ("raw", "valid", "latest")[: rng.randint(2, 3)]:
            yield f"{subject}_{suffix}", "APPEND", "output"
    elif kind == "cdc":
        yield f"{subject}_changes", "APPEND", "output"
        for suffix in ("current", "history")[: rng.randint(1, 2)]:
            yield f"{subject}_{suffix}", "CHANGE", "upserts"
    elif kind == "continuous":
        for suffix in ("stream", "enriched")[: rng.randint(1, 2)]:
            yield f"{subject}_{suffix}", "APPEND", "output"
    else:
        for suffix in ("", "_by_region", "_by_month")[: rng.randint(2, 3)]:
            yield subject + suffix, "MATERIALIZED_VIEW", rng.choices(("nothing", "output", "upserts"), (6, 3, 1))[0]


def _rules(dataset: str, schema: str, rng: Random) -> tuple[Rule, ...]:
    written = rng.choice((dataset, f"{schema}.{dataset}", f"main.{schema}.{dataset}", f"`main`.`{schema}`.`{dataset}`"))
    return tuple(
        Rule(name, written, rng.random() < 0.4, rng.choice((1.0, 0.9995, 0.999, 0.998)))
        for name in rng.sample(_RULES, rng.randint(1, 2))
    )


def _with_plants(drafts: list[Pipeline], rng: Random) -> list[Pipeline]:
    """Plant one problem each in as many ordinary pipelines as there are problems, a few pipelines spared."""
    fleet = list(drafts)
    candidates = [number for number, p in enumerate(fleet) if p.kind in ("streaming", "cdc")]
    rng.shuffle(candidates)
    planted: dict[str, int] = {}
    for plant in PLANTS:
        if not candidates:
            break
        wanted = "silver" if plant == "night_errors" else None
        number = next((n for n in candidates if wanted in (None, fleet[n].layer)), None)
        if number is None:
            continue
        candidates.remove(number)
        fleet[number] = _planted(fleet[number], plant, planted.get(plant, 0))
        planted[plant] = planted.get(plant, 0) + 1
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
    if plant in ("low_pass_rate", "decaying_rule"):
        return replace(calm, flows=_first_flow(calm, reports="batches", usual_rows=40_000, rules=_watched_rule(calm)))
    if plant == "zero_rows":
        bare = tuple(replace(flow, rules=(), reports="batches") for flow in calm.flows)
        return replace(calm, flows=bare)
    if plant == "slow":
        return replace(calm, serverless=True, run_seconds=225)
    if plant == "retry_running":
        return replace(calm, serverless=True, run_seconds=200)
    if plant == "recovered" and number:
        return replace(calm, quirks=calm.quirks | {"no_request_ids"})
    if plant == "night_errors":
        return _night_pipeline(calm)
    return calm


def _night_pipeline(pipeline: Pipeline) -> Pipeline:
    """One whose runs begin at 03:00, among other hours, with the flow that fails at night first."""
    flows = tuple(_flows("product_inventory", pipeline.layer, pipeline.kind, Random(pipeline.id)))
    night = replace(pipeline, name=NIGHT_FLOW, per_day=4, run_seconds=min(pipeline.run_seconds, 300), flows=flows)
    return replace(night, flows=_first_flow(night, name=NIGHT_FLOW, dataset=NIGHT_FLOW, rules=()))


def _first_flow(pipeline: Pipeline, **changes: object) -> tuple[Flow, ...]:
    return (replace(pipeline.flows[0], **changes), *pipeline.flows[1:])  # type: ignore[arg-type]


def _watched_rule(pipeline: Pipeline) -> tuple[Rule, ...]:
    dataset = f"main.{pipeline.schema}.{pipeline.flows[0].dataset}"
    return (Rule("valid_id", dataset, drops=False, usual_rate=0.999),)


def _with_secrets(fleet: list[Pipeline], rng: Random) -> list[Pipeline]:
    """Credentials in the configuration of a few pipelines with clusters of their own."""
    ordinary = [n for n, p in enumerate(fleet) if not p.runs_without_end and p.plant is None]
    for number in rng.sample(ordinary, min(4, len(ordinary))):
        secrets = Secrets(f"dapi{rng.getrandbits(128):032x}", f"Pw-{rng.getrandbits(64):016x}-demo")
        fleet[number] = replace(fleet[number], serverless=False, secrets=secrets)
    return fleet
