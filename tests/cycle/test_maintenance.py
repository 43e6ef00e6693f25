"""Daily maintenance changes no result."""

from __future__ import annotations

from datetime import timedelta

from monitoring_platform.marts.refresh import MARTS
from monitoring_platform.marts.registry import TABLES
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.maintenance import maintain
from tests.conftest import NOW, Site, refresh_marts, state

ALL = (*contracts.STANDING, *TABLES)


def test_landing_forgets_and_the_union_does_not(site: Site) -> None:
    """R-RET-03, R-UNI-07: shorter landing retention never removes union rows; compaction brings nothing again."""
    for number in range(10):
        site.write("a.jsonl", state(str(number), number, "RUNNING", update_id=f"u{number}"))
        site.cycle()
    refresh_marts(site.warehouse)
    assert not maintain(site.warehouse, ALL, NOW)
    files = len(site.warehouse.open(contracts.UNION).file_uris())
    later = NOW + timedelta(days=8)
    assert maintain(site.warehouse, ALL, later)
    assert not maintain(site.warehouse, ALL, later)
    assert site.rows("pipeline_event_log") == []
    assert len(site.rows("all_pipelines_event_log")) == 10
    assert (files, len(site.warehouse.open(contracts.UNION).file_uris())) == (10, 1)
    assert [report.touched for report in refresh_marts(site.warehouse)] == [0] * len(MARTS)
    site.write("a.jsonl", state("11", 11, "COMPLETED", update_id="u9"))
    _, united, marts = site.cycle(later)
    assert (united.added, marts[1].touched, len(site.rows("pipeline_runs"))) == (1, 1, 10)
    assert site.row("pipeline_runs", update_id="u9")["status"] == "COMPLETED"
