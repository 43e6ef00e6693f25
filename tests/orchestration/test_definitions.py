"""The Dagster code location: graph, job, sensor, partitions. Most of it needs no engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from monitoring_platform.config import READY_RULES, UNSTABLE_RULES, use_config
from monitoring_platform.definitions import build_defs
from monitoring_platform.health.checks import CHECKS
from monitoring_platform.marts import registry
from monitoring_platform.orchestration import sensors
from monitoring_platform.orchestration.resources import Platform
from monitoring_platform.orchestration.sensors import due, fingerprint
from monitoring_platform.sources.workspace import discovery
from monitoring_platform.warehouse.contracts import CONTEXT
from tests.conftest import Site, state
from tests.workspace import Workspace

MARTS = {mart.name for mart in registry.MARTS}


@pytest.fixture
def configured(site: Site) -> Iterator[Site]:
    """The site's configuration is the one that definitions find."""
    before = os.environ.get("MONITORING_CONFIG")
    use_config(site.folder / "monitoring.yaml")
    yield site
    os.environ.pop("MONITORING_CONFIG")
    if before is not None:
        os.environ["MONITORING_CONFIG"] = before


def test_graph(configured: Site) -> None:
    """R-OPS-01, R-RUN-07: union after landing, marts after union, summary after runs; checks on union and marts only."""
    graph = build_defs().resolve_asset_graph()
    names = {key.to_user_string() for key in graph.get_all_asset_keys()}
    health = {"findings", "incidents", "slo_status"}
    assert names == {"pipelines", "pipeline_event_log", "all_pipelines_event_log", *MARTS, *CONTEXT, *health}
    parents = {
        key.to_user_string(): {p.to_user_string() for p in graph.get(key).parent_keys}
        for key in graph.get_all_asset_keys()
    }
    assert parents["all_pipelines_event_log"] == {"pipelines", "pipeline_event_log"}
    assert parents["pipeline_runs"] == {"all_pipelines_event_log", "flow_metrics"}
    assert parents["weekly_quality"] == {"expectation_days", "pipeline_runs"}
    assert parents["events_summary"] == {"pipeline_runs"}
    checked = {key.asset_key.to_user_string() for key in graph.asset_check_keys}
    assert "pipeline_event_log" not in checked
    rules = [key.name for key in graph.asset_check_keys if key.asset_key.to_user_string() == "incidents"]
    assert sorted(rules) == sorted(READY_RULES.keys() - UNSTABLE_RULES)  # R-ALERT-08
    assert len(graph.asset_check_keys) == len(CHECKS) + len(rules)


def test_one_request_for_many_pipelines(configured: Site) -> None:
    """R-ING-20, R-ING-01: one run with the list, partitions registered, no engine; nothing without news."""
    for number in range(120):
        configured.write(f"{number}.jsonl", state("1", 0, "RUNNING", pipeline_id=f"p{number:03d}"))
    sensor = build_defs().resolve_sensor_def("pipeline_updates")
    with dg.DagsterInstance.ephemeral() as instance:

        def tick(cursor: str | None) -> dg.SensorResult | dg.SkipReason:
            platform = Platform(config_path=str(configured.folder / "monitoring.yaml"))
            with dg.build_sensor_context(instance, cursor=cursor, resources={"platform": platform}) as context:
                return sensor.evaluate_tick(context)  # type: ignore[return-value]

        first = tick(None)
        assert len(first.run_requests) == 1  # type: ignore[union-attr]
        config = first.run_requests[0].run_config["ops"]["pipelines"]["config"]  # type: ignore[union-attr]
        assert len(config["pipeline_ids"]) == 120
        (partitions,) = first.dynamic_partitions_requests  # type: ignore[union-attr]
        assert len(partitions.partition_keys) == 120
        # The run is still to come: the same work is not asked for again at once.
        assert not tick(first.cursor).run_requests  # type: ignore[union-attr]
        configured.cycle()
        assert "no new events" in tick(first.cursor).skip_message  # type: ignore[union-attr]


def test_a_workspace_is_listed_within_a_budget(
    make_site: Callable[..., Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tick lists and asks for nothing else; where it had no time for all, the next one goes on."""
    monkeypatch.setenv("TOKEN", "dapi-1")
    monkeypatch.setattr(sensors, "_BUDGET_SECONDS", 0.2)
    monkeypatch.setattr(discovery, "_PAGE", 2)
    with Workspace(tmp_path / "workspace") as workspace:
        workspace.principal("monitor@example.com", "dapi-1", is_admin=True)
        for number in range(5):
            workspace.pipeline(f"p{number}", id=f"p{number}")
        source = f"sources: [{{type: workspace, name: prod, host: '{workspace.host}', token: '${{TOKEN}}'}}]\n"
        site = make_site("workspace", source)
        sensor = build_defs().resolve_sensor_def("pipeline_updates")
        workspace.faults.seconds = 0.15
        with dg.DagsterInstance.ephemeral() as instance:
            cursor, asked = None, []
            for _ in range(2):
                platform = Platform(config_path=str(site.folder / "monitoring.yaml"))
                with dg.build_sensor_context(instance, cursor=cursor, resources={"platform": platform}) as context:
                    tick: Any = sensor.evaluate_tick(context)
                cursor = tick.cursor
                asked += tick.run_requests[0].run_config["ops"]["pipelines"]["config"]["pipeline_ids"]
        assert asked == ["p0", "p1", "p2", "p3", "p4"]
        assert [call.path for call in workspace.calls] == ["/api/2.0/pipelines"] * 3
        workspace.is_clean()


def test_a_login_that_hangs_does_not_hold_the_sensor(
    make_site: Callable[..., Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tick is over before the service has answered, and says what to do."""
    monkeypatch.setattr(sensors, "_PATIENCE_SECONDS", 0.5)
    with Workspace(tmp_path / "workspace") as workspace:
        monkeypatch.setenv("SECRET", str(workspace.service_principal("robot").client_secret))
        workspace.faults.seconds, workspace.faults.slow = 60.0, "/oidc/v1/token"
        entry = f"name: prod, host: '{workspace.host}', client_id: robot, client_secret: '${{SECRET}}'"
        site = make_site("workspace", f"sources: [{{type: workspace, {entry}}}]\n")
        platform = Platform(config_path=str(site.folder / "monitoring.yaml"))
        sensor = build_defs().resolve_sensor_def("pipeline_updates")
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(instance, resources={"platform": platform}) as context,
        ):
            tick: Any = sensor.evaluate_tick(context)
        assert not tick.run_requests and "does not answer" in tick.skip_message
        assert [call.status for call in workspace.called("/oidc/v1/token")] == [0]


def test_undone_work_is_asked_for_again_later_and_later() -> None:
    """A failed run loses nothing and is not repeated endlessly: 1, 2, 4 … minutes, at most an hour."""
    asked = datetime(2026, 1, 1, tzinfo=timezone.utc)

    def memory(attempt: int) -> dict[str, object]:
        return {"work": "w", "attempt": attempt, "asked_at": asked.isoformat()}

    assert due({}, "w", asked) == 1
    assert due(memory(1), "w", asked + timedelta(seconds=59)) is None
    assert due(memory(1), "w", asked + timedelta(seconds=60)) == 2
    assert due(memory(3), "w", asked + timedelta(seconds=239)) is None
    assert due(memory(3), "w", asked + timedelta(seconds=240)) == 4
    assert due(memory(50), "w", asked + timedelta(hours=1)) == 51
    assert due(memory(3), "other", asked) == 1
    assert fingerprint([["a", 1, 0], ["b", 2, 0]]) == fingerprint([["b", 2, 0], ["a", 1, 0]])


def test_partition_from_the_ui(configured: Site) -> None:
    """Any selection of partitions runs by hand: one materialization for each, with its numbers."""
    configured.write("a.jsonl", state("1", 0, "RUNNING", pipeline_id="a"))
    configured.write("b.jsonl", state("1", 0, "RUNNING", pipeline_id="b"))
    configured.cycle(pipeline_ids=[])
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("pipelines", ["a", "b"])
        defs = build_defs()
        result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance, partition_key="b", asset_selection=[dg.AssetKey("pipeline_event_log")]
        )
        assert result.success
        events = result.get_asset_materialization_events()
        assert [(e.partition, e.materialization.metadata["events_read"].value) for e in events] == [("b", 1)]
    assert {row["pipeline_id"] for row in configured.rows("pipeline_event_log")} == {"b"}


def test_a_failing_check_lists_offenders_and_does_not_fail_the_run(configured: Site) -> None:
    """R-ALERT-08: a rule is a check, as severe as what it finds; the true count beside the rows."""
    configured.write("a.jsonl", state("1", 0, "FAILED"))
    configured.cycle()
    with dg.DagsterInstance.ephemeral() as instance:
        job = build_defs().resolve_job_def("refresh")
        result = job.execute_in_process(
            instance=instance,
            run_config={"ops": {name: {"config": {"now": "2026-01-02"}} for name in ("pipelines", "health")}},
        )
        assert result.success
        found = {e.check_name: e for e in result.get_asset_check_evaluations()}
        failing = found["request_failed"]
        assert (failing.passed, failing.severity) == (False, dg.AssetCheckSeverity.ERROR)
        assert failing.metadata["offenders_total"].value == 1
        assert failing.metadata["offenders"].value.records[0].data["pipeline_id"] == "p"
        assert [name for name, e in found.items() if not e.passed] == ["request_failed"]


def test_code_location_without_configuration(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The definitions load without a configuration file; the sensor is off then."""
    monkeypatch.setenv("MONITORING_CONFIG", f"{tmp_path}/none.yaml")
    sensor = build_defs().resolve_sensor_def("pipeline_updates")
    assert sensor.default_status == dg.DefaultSensorStatus.STOPPED


def test_context_is_a_step_only_where_it_is_asked_for(make_site: Callable[..., Site]) -> None:
    """R-JOB-02, R-COST-01: without workspaces and costs the job has neither its step nor the marts that need it."""
    selected = []
    for name, config in (("plain", "sources: []\n"), ("costs", "sources: []\ncosts: {enabled: true}\n")):
        use_config(make_site(name, config).folder / "monitoring.yaml")
        job = build_defs().resolve_job_def("refresh")
        selected.append({key.to_user_string() for key in job.asset_layer.selected_asset_keys})
    os.environ.pop("MONITORING_CONFIG")
    needing = {"jobs_stats", "job_matches", "pipeline_costs", "missing_updates"}
    assert selected[1] - selected[0] == {*CONTEXT, *needing}
