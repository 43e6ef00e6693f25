"""Any order, duplication and batching of a set of events gives the same tables."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from monitoring_platform.marts.refresh import MARTS, rebuild
from monitoring_platform.marts.registry import TABLES
from monitoring_platform.warehouse import contracts
from tests.conftest import Site, event, flow, state
from tests.every_body import every_body

NUMBER = itertools.count()
#: Beside these, every body there is (tests/every_body.py).
#: Two pipelines, retries with and without request ids, batches, rules, errors, a definition that may come last.
EVENTS: list[dict[str, Any]] = [
    event("c0", 0, "create_update", {"cause": "JOB_TASK", "config": {"catalog": "main", "target": "s"}}, update_id="u0"),
    state("s0", 1, "INITIALIZING", update_id="u0"),
    state("s1", 5, "RUNNING", update_id="u0"),
    flow("f0", 6, "f", {"status": "RUNNING", "metrics": {"num_output_rows": 10}}, update_id="u0", batch_id=1),
    flow("f1", 7, "f", {"status": "RUNNING", "metrics": {"num_output_rows": 25}}, update_id="u0", batch_id=1, flow_id="x"),
    flow("f2", 8, "f", {"status": "FAILED", "data_quality": {"expectations": [
        {"name": "ok", "dataset": "t", "passed_records": 9, "failed_records": 1}]}}, update_id="u0", batch_id=2),
    event("e0", 8.5, level="ERROR", error={"exceptions": [{"message": "[X] no"}]}, update_id="u0", flow_name="f"),
    state("s2", 9, "FAILED", update_id="u0"),
    event("c1", 20, "create_update", {"cause": "RETRY_ON_FAILURE"}, update_id="u1"),
    state("s3", 30, "COMPLETED", update_id="u1"),
    event("d0", 21, "flow_definition", {"output_dataset": "main.s.t"}, update_id="u1", flow_name="f"),
    flow("f3", 22, "f", {"metrics": {"num_upserted_rows": 3, "num_deleted_rows": 0}}, update_id="u1"),
    event("a0", 15, "user_action", {"action": "START"}, update_id=None),
    state("q0", 100_000, "RUNNING", pipeline_id="q", pipeline_name="old name", update_id="v"),
    state("q1", 200_000, "CANCELED", pipeline_id="q", pipeline_name="new name", update_id="v"),
    event("c2", 40, "create_update", {"cause": "JOB_TASK", "failed_attempts": 1}, update_id="u2", request_id="r"),
    *itertools.chain(*every_body()),
]  # fmt: skip


def snapshot(site: Site) -> dict[str, list[Any]]:
    """Rows of all tables without what says where and when a row was read."""
    found = {}
    for table in (contracts.UNION, contracts.QUARANTINE, *TABLES):
        columns = [
            c for c in table.schema.names if (not c.startswith("_") and c != "quarantine_id") or c == "_source_pipeline"
        ]
        rows = site.warehouse.arrow(table, columns).to_pylist()
        found[table.name] = sorted(repr(sorted(row.items())) for row in rows)
    ledger = ("pipeline_id", "pipeline_name", "names_seen", "state", "first_event_ts", "last_event_ts", "has_updates")
    found["pipelines"] = [tuple(str(row[name]) for name in ledger) for row in site.rows("pipelines")]
    return found


@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@example(seed=2605, cycles=2, repeats=2)
@given(seed=st.integers(0, 10**6), cycles=st.integers(1, 4), repeats=st.integers(0, 12))
def test_any_order_duplication_and_batching(
    make_site: Callable[..., Site], seed: int, cycles: int, repeats: int
) -> None:
    """R-UNI-03, R-RUN-08: the tables depend on the set of events only, and equal a full rebuild."""
    chance = random.Random(seed)
    once = make_site(f"once-{next(NUMBER)}")
    once.write("all.jsonl", *EVENTS)
    once.cycle()

    rows = EVENTS + chance.choices(EVENTS, k=repeats)
    chance.shuffle(rows)
    parts = make_site(f"parts-{next(NUMBER)}")
    cuts = sorted(chance.sample(range(len(rows) + 1), cycles - 1))
    for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        for number, row in enumerate(rows[start:end]):
            parts.write(f"log{number % 3}.jsonl", row)
        parts.cycle()
    assert snapshot(parts) == snapshot(once)

    for mart in MARTS:
        rebuild(parts.warehouse, mart)
    assert snapshot(parts) == snapshot(once)
