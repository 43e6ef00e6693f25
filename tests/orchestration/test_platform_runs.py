"""The monitoring's own runs: one row for each cycle, however it ended."""

from datetime import datetime, timedelta, timezone
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest
from dagster._core.errors import DagsterExecutionInterruptedError

from monitoring_platform.cycle.ingest import ingest
from monitoring_platform.cycle.union import United, unite
from monitoring_platform.orchestration.checks import CheckConfig
from monitoring_platform.orchestration.resources import Platform
from tests.conftest import NOW, Site, state

SECRET = "dapi0123456789abcdef0123456789abcdef"


def run_steps(site: Site, ending: BaseException | None, job: str = "refresh", **given: Any) -> None:
    """A job with the steps `pipelines`, which reports, and `all_pipelines_event_log`, which ends as given."""

    @dg.asset
    def pipelines(config: CheckConfig, platform: Platform) -> dg.MaterializeResult[None]:
        told = {"logs_read": 3, "logs_failed": 1, "events_read": 50, "quarantined": 2, "events_new": 99}
        return dg.MaterializeResult(metadata=told)

    @dg.asset(deps=[pipelines])
    def all_pipelines_event_log(platform: Platform) -> dg.MaterializeResult[None]:
        if ending:
            raise ending
        return dg.MaterializeResult(metadata={"events_new": 40, "lag_p50_seconds": 90.0, "lag_max_seconds": 3600.0})

    chosen = dg.define_asset_job(job, "*", executor_def=dg.in_process_executor)
    platform = Platform(config_path=str(site.folder / "monitoring.yaml"))
    assets = [pipelines, all_pipelines_event_log]
    defs = dg.Definitions(assets=assets, jobs=[chosen], resources={"platform": platform})
    with dg.DagsterInstance.ephemeral() as instance:
        defs.resolve_job_def(job).execute_in_process(
            instance=instance,
            run_config={"ops": {"pipelines": {"config": given}}},
            tags={"dagster/sensor_name": "pipeline_updates"},
            raise_on_error=False,
        )


def test_a_cycle_leaves_one_row(site: Site) -> None:
    """R-PEER-18: what it read, how late that was, how long each step took, and what it cost."""
    before = datetime.now(timezone.utc)
    run_steps(site, None, now="2026-01-02")
    row = site.row("platform_runs")
    assert (row["status"], row["error"], row["launched_by"]) == ("COMPLETED", None, "pipeline_updates")
    assert row["cycle_ts"] == NOW
    counts = ("logs_read", "logs_failed", "events_read", "events_new", "quarantined")
    assert [row[name] for name in counts] == [3, 1, 50, 40, 2]
    assert (row["lag_p50_seconds"], row["lag_max_seconds"]) == (90.0, 3600.0)
    steps = dict(row["step_seconds"])
    assert steps.keys() == {"pipelines", "all_pipelines_event_log"}
    assert 0 < sum(steps.values()) <= row["duration_seconds"]
    assert before <= row["started_at"] <= row["ended_at"] <= datetime.now(timezone.utc)
    assert row["duration_seconds"] == pytest.approx((row["ended_at"] - row["started_at"]).total_seconds(), abs=1e-3)
    assert row["cpu_seconds"] > 0
    assert row["peak_memory_bytes"] > 10_000_000


def test_a_cycle_that_fails_leaves_one_too(site: Site) -> None:
    """R-PEER-18, R-PERM-05: why, without secrets; what is not known is null."""
    run_steps(site, dg.Failure(f"no way in with {SECRET}"))
    row = site.row("platform_runs")
    assert (row["status"], row["events_read"], row["events_new"], row["lag_p50_seconds"]) == ("FAILED", 50, None, None)
    assert row["error"].startswith("no way in with ")
    assert SECRET not in row["error"]
    assert row["cycle_ts"] == row["started_at"]


def test_a_cycle_that_is_stopped_says_so(site: Site) -> None:
    """R-PEER-18: the row is written when the run is taken down."""
    run_steps(site, DagsterExecutionInterruptedError())
    row = site.row("platform_runs")
    assert (row["status"], row["events_read"]) == ("FAILED", 50)
    assert "Interrupted" in row["error"]


def test_other_jobs_are_no_cycles(site: Site) -> None:
    """Partitions that are run by hand leave no row."""
    run_steps(site, None, job="by_hand")
    assert site.rows("platform_runs") == []


def test_lag_is_of_new_events_only(site: Site) -> None:
    """R-PEER-18: three events a day, an hour and ten minutes old; when one is delivered again, only the new one counts."""
    day, hour = NOW - timedelta(days=1), NOW - timedelta(hours=1)
    seconds = [(moment - datetime(2026, 1, 1, tzinfo=timezone.utc)).total_seconds() for moment in (day, hour)]
    site.write("a.jsonl", *(state(f"{second}", second, "RUNNING") for second in (*seconds, 86_400 - 600)))
    assert lag(site) == {"p50": 3600.0, "max": 86_400.0}
    assert lag(site) == {}
    site.write("a.jsonl", state("again", 86_400 - 30, "RUNNING"))
    site.write("b.jsonl", state(f"{seconds[0]}", seconds[0], "RUNNING"))
    assert lag(site) == {"p50": 30.0, "max": 30.0}
    assert United(lags=[pa.chunked_array([], pa.duration("us"))]).lag_seconds() == {}
    site.write("c.jsonl", state("wrong clock", 0, "RUNNING") | {"timestamp": "2999-01-01T00:00:00.001Z"})
    assert lag(site)["max"] == (NOW - datetime(2999, 1, 1, microsecond=1000, tzinfo=timezone.utc)).total_seconds()


def lag(site: Site) -> dict[str, float]:
    """What the union of a cycle says of it."""
    ingest(site.warehouse, NOW)
    return unite(site.warehouse).lag_seconds()
