"""Jobs in Dagster: external assets whose runs are told once."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import dagster as dg
import pytest

from monitoring_platform.config import load
from monitoring_platform.definitions import build_defs
from monitoring_platform.orchestration.job_assets import job_checks, job_key, job_specs, report_jobs
from monitoring_platform.orchestration.resources import Platform
from monitoring_platform.orchestration.runner import opened_instance, run_cycle
from monitoring_platform.recording import monitored_run, not_null
from monitoring_platform.recording.checks import Result
from monitoring_platform.warehouse.opening import open_warehouse

NOW = datetime(2026, 1, 1, 6, tzinfo=timezone.utc)


def job(place: Path, now: datetime, error: Exception | None = None) -> str:
    """A run of 7 rows with one check that fails."""
    with monitored_run("silver-orders", place, clock=lambda: now) as run, run.step("write") as step:
        step.rows_out = 7
        check = not_null("customer", threshold_pct=5)
        step.results.append(("orders", Result(check, now, 10, 1, 0, 10.0, False)))
        if error:
            raise error
    return run.run_id


def test_runs_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point 4 of the room: a success is a materialization, a failure an observation, each with its checks, each once."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    file = tmp_path / "monitoring.yaml"
    file.write_text("warehouse: {path: ./warehouse}\nsources:\n  - {type: jobs, path: ./records}\n")
    monkeypatch.setenv("MONITORING_CONFIG", str(file))
    settings = load(file)
    first = job(tmp_path / "records", NOW)
    result = run_cycle(settings, (NOW + timedelta(minutes=1)).isoformat())
    assert not result.errors
    with pytest.raises(ValueError):
        job(tmp_path / "records", NOW + timedelta(hours=1), ValueError("boom"))
    second = job(tmp_path / "records", NOW + timedelta(hours=2))
    run_cycle(settings, (NOW + timedelta(hours=3)).isoformat())
    warehouse, key = open_warehouse(settings), job_key("silver-orders")
    assert key == dg.AssetKey(["jobs", "silver_orders"])
    assert [spec.key for spec in job_specs(warehouse)] == [key]
    with opened_instance(settings) as instance:
        assert report_jobs(instance, warehouse) == 0
        made = instance.fetch_materializations(key, limit=10).records
        assert [m.asset_materialization.metadata["run_id"].value for m in reversed(made)] == [first, second]  # type: ignore[union-attr]
        assert made[0].asset_materialization.metadata["dagster/row_count"].value == 7  # type: ignore[union-attr]
        (seen,) = instance.fetch_observations(key, limit=10).records
        assert seen.asset_observation.metadata["status"].value == "FAILED"  # type: ignore[union-attr]
        checks = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(key, "orders_customer_not_null"), limit=10
        )
        assert len(checks) == 3
        evaluation = checks[0].event.dagster_event.asset_check_evaluation_data  # type: ignore[union-attr]
        assert (evaluation.passed, evaluation.metadata["failure_pct"].value) == (False, 10.0)

    # Another instance, which has heard nothing, shows the check already; running it tells the newest result again.
    (told_again,) = job_checks(warehouse)
    assert set(told_again.check_keys) < build_defs().resolve_asset_graph().asset_check_keys
    assert [spec.key for spec in told_again.check_specs] == [dg.AssetCheckKey(key, "orders_customer_not_null")]
    made_again = dg.materialize(
        [*job_specs(warehouse), told_again],
        resources={"platform": Platform(config_path=str(file))},
        selection=dg.AssetSelection.checks(told_again),
    )
    (result,) = made_again.get_asset_check_evaluations()
    assert (result.passed, result.metadata["run_id"].value) == (False, second)
