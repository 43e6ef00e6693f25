"""What a refresh reads: the events of the touched updates, from the days on which they have any, whatever the history."""

from __future__ import annotations

import pytest

from monitoring_platform.marts.registry import BY_NAME
from tests.conftest import Site, state

DAY = 86_400


@pytest.fixture(autouse=True)
def few_marts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One mart of each scope that reads events or runs."""
    monkeypatch.setattr(Site, "marts", [BY_NAME[n] for n in ("flow_metrics", "pipeline_runs", "requests")])


def test_a_touched_update_is_read_and_little_else(site: Site) -> None:
    """R-RUN-08, R-UNI-06: 20 pipelines with 14 days behind them; an event of one update reads its two days."""
    for pipeline in range(20):
        for day in range(14):
            ids = {"pipeline_id": f"p{pipeline}", "update_id": f"u{pipeline}.{day}"}
            start = day * DAY + 86_300  # 100 seconds before midnight: its second event is on the next day
            site.write(
                "a.jsonl",
                state(f"a{pipeline}.{day}", start, "RUNNING", **ids),
                state(f"b{pipeline}.{day}", start + 120, "STOPPING", **ids),
            )
    site.cycle()
    last = {"pipeline_id": "p7", "update_id": "u7.13"}
    site.write("a.jsonl", state("end", 14 * DAY + 300, "COMPLETED", **last))
    _, _, reports = site.cycle()
    read = {report.mart: report.read for report in reports}["pipeline_runs"]
    # Of 15 days two: the 14th with 40 events, the 15th with 20 and the new one. Of these the update has three.
    assert read == {"files_read": 3, "rows_scanned": 61, "rows_read": 3}
    assert {report.mart: report.written for report in reports} == {"flow_metrics": 0, "pipeline_runs": 1, "requests": 1}
    assert site.row("pipeline_runs", **last)["status"] == "COMPLETED"


def test_more_touched_pipelines_than_a_filter_names(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """R-RUN-08: rows of pipelines that nothing touched are neither written again nor doubled."""
    monkeypatch.setattr("monitoring_platform.marts.refresh._MANY_PIPELINES", 0)
    site.write("a.jsonl", state("1", 0, "RUNNING"), state("2", 0, "COMPLETED", pipeline_id="q"))
    site.cycle()
    site.write("a.jsonl", state("3", 60, "COMPLETED"))
    _, _, reports = site.cycle()
    assert {report.mart: report.written for report in reports}["requests"] == 1
    assert sorted(row["pipeline_id"] for row in site.rows("requests")) == ["p", "q"]
