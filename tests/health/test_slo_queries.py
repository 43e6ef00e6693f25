"""The stock queries about objectives, on rows that one can check by hand."""

from __future__ import annotations

from typing import Any

from monitoring_platform.marts.registry import STOCK
from monitoring_platform.queries import get
from monitoring_platform.warehouse.looking import question
from tests.conftest import Site
from tests.health.test_slo import at, pipeline, run, store, write

Row = dict[str, Any]


def ask(site: Site, name: str) -> list[Row]:
    """The answer to a stock query, as `query` gets it."""
    rows: list[Row] = question(site.warehouse, get(name).sql, [*STOCK.values()]).to_arrow_table().to_pylist()
    return rows


def fleet(site: Site) -> Site:
    """Two pipelines: of `p` one of three requests is too long and one fails; `q` keeps its promises."""
    store(
        site,
        pipelines=[
            pipeline(last_event_ts=at("01-10 00:00")),
            pipeline(pipeline_id="q", pipeline_name="other", last_event_ts=at("01-10 00:00")),
        ],
        pipeline_runs=[
            run(at("01-01 00:00"), 90, update_id="before"),
            run(at("01-05 00:00"), 10.04, update_id="good"),
            run(at("01-06 00:00"), 50, update_id="long"),
            run(at("01-07 00:00"), 1, "FAILED", update_id="bad"),
            run(at("01-08 00:00"), 20, update_id="fine", pipeline_id="q", pipeline_name="other"),
        ],
        expectation_results=[
            {
                "pipeline_id": "p", "update_id": update, "dataset": "t", "expectation": name, "evaluated_records": 100,
                "passed_records": 100 - failed, "failed_records": failed, "pass_rate_pct": 100.0 - failed,
            }
            for update, name, failed in [("long", "x", 3), ("long", "y", 0), ("long", "z", 7), ("good", "x", 5)]
        ],
    )  # fmt: skip
    write(site, at("01-10 00:00"))
    return site


def test_summary_of_7_days(site: Site) -> None:
    """R-SLO-03: most breaches first, minutes to one decimal; what ended before the 7 days is left out."""
    names = ("pipeline_name", "total_runs", "slo_met_count", "slo_breach_count", "avg_duration_min")
    rows = [tuple(row[name] for name in names) for row in ask(fleet(site), "slo_summary_7_days")]
    assert rows == [("pipe", 3, 1, 2, 20.3), ("other", 1, 1, 0, 20.0)]  # (10.04 + 50 + 1) / 3 = 20.347


def test_breaches_with_the_rules_that_failed(site: Site) -> None:
    """R-SLO-04, R-QUAL-09: runs without checks are listed too, runs that met everything are not."""
    names = ("update_id", "breached", "minutes", "failed_rule", "failed_records", "rules_judged")
    rows = [tuple(row[name] for name in names) for row in ask(fleet(site), "slo_breaches_and_failed_rules")]
    assert rows == [
        ("bad", "duration, success", 1.0, None, None, 0),
        ("long", "duration", 50.0, "x", 3, 3),
        ("long", "duration", 50.0, "z", 7, 3),
        ("before", "duration", 90.0, None, None, 0),
    ]


def test_objectives_now(site: Site) -> None:
    """R-SLO-02: what is missed comes first, then what has least left of its budget."""
    names = ("pipeline_name", "objective", "state", "actual_pct", "missed")
    rows = [tuple(row[name] for name in names) for row in ask(fleet(site), "slo_status_now")]
    assert rows == [
        ("pipe", "duration", "missed", 25.0, 3), ("pipe", "success", "missed", 75.0, 1),
        ("other", "duration", "met", 100.0, 0), ("other", "success", "met", 100.0, 0),
    ]  # fmt: skip
