"""Pipelines as somebody built them: names, flows, columns, rules and oddities, before anything goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, cycle, islice
from random import Random

from monitoring_platform.demo.events import new_id
from monitoring_platform.demo.model import CATALOG, SCHEMAS, Column, Flow, Pipeline, Rule

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
_RULES = ("valid_id", "amount is positive", "fresh_timestamp", "'country' is known", "not_a_duplicate")

_FACTS: tuple[Column, ...] = (
    ("customer_id", "BIGINT"),
    ("amount", "DECIMAL(18,2)"),
    ("currency", "STRING"),
    ("country", "STRING"),
    ("status", "STRING"),
    ("channel", "STRING"),
    ("event_ts", "TIMESTAMP"),
    ("is_active", "BOOLEAN"),
    ("quantity", "INT"),
    ("tags", "ARRAY<STRING>"),
)
_FIGURES: tuple[Column, ...] = (
    ("customers", "BIGINT"),
    ("orders", "BIGINT"),
    ("revenue", "DECIMAL(28,2)"),
    ("margin_pct", "DOUBLE"),
    ("avg_basket", "DOUBLE"),
    ("rank", "INT"),
)
_GROUPS: dict[str, tuple[Column, ...]] = {
    "_by_region": (("region", "STRING"), ("country", "STRING")),
    "_by_month": (("month", "DATE"),),
    "": (("day", "DATE"), ("segment", "STRING")),
}


def drafts(pipelines: int, seed: int) -> list[Pipeline]:
    """The pipelines of a seed; a bigger fleet begins with the same ones."""
    names = {layer: _names(layer) for layer in _SUBJECTS}
    found = []
    for layer, kind in islice(cycle(map(_layer_and_kind, _MIX)), pipelines):
        name = next(names[layer])
        found.append(_pipeline(name, layer, kind, Random(f"{name} {seed}")))
    return found


def _layer_and_kind(letters: str) -> tuple[str, str]:
    kind = _KINDS[letters[1]]
    return ("gateway" if kind == "gateway" else _LAYERS[letters[0]]), kind


def _names(layer: str) -> Iterator[str]:
    for number in count():
        for region in _REGIONS:
            for subject in _SUBJECTS[layer]:
                yield f"{layer}_{subject}{region}" + (f"_{number}" if number else "")


def _pipeline(name: str, layer: str, kind: str, rng: Random) -> Pipeline:
    quirks = {
        quirk
        for quirk, share in (
            ("text_booleans", 0.2),
            ("no_flow_ids", 0.15),
            ("placeholder_flow", 0.15),
            ("no_request_ids", 0.05),
            ("double_l", 0.2),
            ("nested_runtime", 0.5),
            ("short_names", 0.3),
            ("back_ticks", 0.2),
            ("schema_with_flow", 0.15),
            ("older_cluster_events", 0.25),
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
        flows=tuple(flows_of(name.removeprefix(layer + "_"), layer, kind, rng)),
        quirks=frozenset(quirks),
        dropped_when_no_rules=rng.choice(("zero", "null", "absent")),
    )


def flows_of(subject: str, layer: str, kind: str, rng: Random) -> Iterator[Flow]:
    """The flows of a pipeline; what they read is not known yet."""
    schema = SCHEMAS[layer]
    if kind == "gateway":
        for table in rng.sample(("customers", "orders", "order_lines", "stores"), 2):
            for part, flow_type in (("snapshot", "SNAPSHOT_CHANGE"), ("cdc", "CHANGE")):
                name = f"{CATALOG}.{schema}.{table}_{part}_flow"
                yield Flow(name, table, flow_type, "database", "upserts", "rows", rng.randint(40, 4000))
        return
    qualified = rng.random() < 0.5
    for place, (dataset, flow_type, counts) in enumerate(_datasets(subject, kind, rng)):
        outside = layer == "bronze" and not place
        reports = "end" if kind == "materialized_view" else rng.choices(("batches", "rows", "end"), (6, 2, 2))[0]
        yield Flow(
            name=f"{CATALOG}.{schema}.{dataset}" if qualified else dataset,
            dataset=dataset,
            flow_type=flow_type,
            source=rng.choice(("kafka", "kafka", "delta", "files")) if outside else "delta",
            counts=counts,
            reports="batches" if kind == "continuous" else reports,
            usual_rows=int(10 ** rng.uniform(3.7, 5.6)),
            rules=_rules(dataset, schema, rng) if counts != "nothing" and rng.random() < 0.6 else (),
            columns=_columns(dataset, kind, rng),
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


def _columns(dataset: str, kind: str, rng: Random) -> tuple[Column, ...]:
    """Four to eight columns."""
    if kind == "materialized_view":
        groups = next(columns for suffix, columns in _GROUPS.items() if dataset.endswith(suffix))
        return (*groups, *rng.sample(_FIGURES, rng.randint(3, 5)), ("refreshed_at", "TIMESTAMP"))[:8]
    return (("id", "BIGINT"), *rng.sample(_FACTS, rng.randint(2, 6)), ("loaded_at", "TIMESTAMP"))


def _rules(dataset: str, schema: str, rng: Random) -> tuple[Rule, ...]:
    written = rng.choice(
        (dataset, f"{schema}.{dataset}", f"{CATALOG}.{schema}.{dataset}", f"`{CATALOG}`.`{schema}`.`{dataset}`")
    )
    return tuple(
        Rule(name, written, rng.random() < 0.4, rng.choice((1.0, 0.9995, 0.999, 0.998)))
        for name in rng.sample(_RULES, rng.randint(1, 2))
    )
