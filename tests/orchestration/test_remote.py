"""A cycle that Dagster launches on a cluster: what comes back, and that an interrupted one is a failure.

The client is the real one; the cluster's process is real too, on this machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from databricks.sdk.service.jobs import SubmitTask

from monitoring_platform.config import ConfigError, load, use_config
from monitoring_platform.definitions import build_defs
from monitoring_platform.orchestration.remote import task_of
from tests.conftest import Site, event, state
from tests.workspace.clusters import Clusters
from tests.workspace.contract import unknown

TOKEN = "dapi0123456789abcdef0123456789abcdef"


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Clusters]:
    with Clusters(tmp_path / "workspace") as made:
        made.principal("launcher@example.com", TOKEN)
        yield made
        assert made.bugs == []
        assert made.unknown_calls == unknown(made.calls) == []


@pytest.fixture
def launch(
    make_site: Callable[..., Site], clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Site], dg.ExecuteInProcessResult]:
    """Runs the job `refresh` of a configuration that has the site's cycle run on the cluster."""
    monkeypatch.setenv("A_TOKEN", TOKEN)
    volume = tmp_path / "volume"
    volume.mkdir()

    def run(there: Site) -> dg.ExecuteInProcessResult:
        here = make_site(
            "here",
            f"""sources:
  - {{type: workspace, name: prod, host: '{clusters.host}', token: '${{A_TOKEN}}'}}
remote:
  source: prod
  volume: {volume}
  config_path: {there.folder / "monitoring.yaml"}
  poll_seconds: 0.2
  task:
    new_cluster: {{spark_version: 17.3.x-scala2.13, node_type_id: m, num_workers: 0}}
    libraries: [{{whl: /Workspace/monitoring_platform.whl}}]
""",
        )
        use_config(here.folder / "monitoring.yaml")
        with dg.DagsterInstance.ephemeral() as instance:
            job = build_defs().resolve_job_def("refresh")
            return job.execute_in_process(instance=instance, raise_on_error=False)

    monkeypatch.setenv("MONITORING_CONFIG", "")
    return run


COSTS = "costs: {usage: ./usage.csv, list_prices: ./prices.csv}\n"  # what is billed: here, a workspace tells it
USAGE = "record_id,usage_quantity,usage_date,sku_name,usage_unit,dlt_pipeline_id,dlt_update_id\n1,2,2026-01-01,DLT,DBU,p,u\n"
PRICES = "sku_name,currency_code,usage_unit,price_start_time,pricing.default\nDLT,USD,DBU,2025-01-01T00:00:00Z,0.5\n"


def billed(there: Site) -> Site:
    (there.folder / "usage.csv").write_text(USAGE)
    (there.folder / "prices.csv").write_text(PRICES)
    return there


def materialized(result: dg.ExecuteInProcessResult) -> dict[str, dict[str, Any]]:
    return {
        event.asset_key.to_user_string(): {k: v.value for k, v in event.materialization.metadata.items()}
        for event in result.get_asset_materialization_events()
        if event.asset_key
    }


def failure(result: dg.ExecuteInProcessResult) -> str:
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    data = failed.step_failure_data
    return str(data.user_failure_data.description if data.user_failure_data else data.error)


def test_results_come_back(
    make_site: Callable[..., Site], clusters: Clusters, launch: Callable[[Site], dg.ExecuteInProcessResult]
) -> None:
    """Materializations with their numbers and check results with their offenders, of a failed update that it finds."""
    there = billed(make_site("there", COSTS))
    lately = {"timestamp": datetime.now(timezone.utc).isoformat()}
    started = event("1", 0, "create_update", {"cause": "JOB_TASK"}) | lately
    there.write("a.jsonl", started, state("2", 5, "FAILED") | lately)
    result = launch(there)
    assert result.success, failure(result)
    told = materialized(result)
    assert told["all_pipelines_event_log"]["events_new"] == 2
    assert told["pipeline_runs"]["dagster/row_count"] == 1
    checks = {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}
    assert checks["no_duplicate_events"].passed
    failing = checks["request_failed"]
    assert (failing.passed, failing.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert failing.metadata["offenders_total"].value == 1
    assert there.row("pipeline_runs")["status"] == "FAILED"
    submitted = next(call for call in clusters.calls if call.path.endswith("/runs/submit"))
    assert TOKEN not in repr(submitted.body)


def test_part_of_it_failed(make_site: Callable[..., Site], launch: Callable[[Site], dg.ExecuteInProcessResult]) -> None:
    """What is done is reported all the same, and the run here fails with the reason from there."""
    there = billed(
        make_site("there", COSTS + "views:\n  - {name: broken, sql: 'SELECT missing_column FROM pipeline_runs'}\n")
    )
    there.write("a.jsonl", state("1", 0, "RUNNING"))
    result = launch(there)
    assert not result.success
    assert "broken" in failure(result)
    assert materialized(result)["pipeline_runs"]["dagster/row_count"] == 1


def test_a_run_that_ends_without_a_word(
    make_site: Callable[..., Site], clusters: Clusters, launch: Callable[[Site], dg.ExecuteInProcessResult]
) -> None:
    """Its process ends with 0, so that the service calls it a success."""
    clusters.module = "tests.orchestration.halfway"
    result = launch(make_site("there"))
    assert clusters.runs[0].returncode == 0
    assert not result.success
    assert "did not report its end" in failure(result)


def test_a_run_that_is_cancelled_there(
    make_site: Callable[..., Site], clusters: Clusters, launch: Callable[[Site], dg.ExecuteInProcessResult]
) -> None:
    def cancel() -> None:
        while not clusters.runs:
            time.sleep(0.05)
        clusters.cancel(0)

    threading.Thread(target=cancel, daemon=True).start()
    result = launch(make_site("there"))
    assert not result.success
    assert "Run cancelled" in failure(result)


def test_the_task_is_one_that_the_service_knows(make_site: Callable[..., Site], launch: Any, tmp_path: Path) -> None:
    """What is submitted passes through the SDK's own class unchanged: it has no member that the API has not."""
    config = (
        tmp_path / "remote.yaml",
        "{source: prod, volume: /Volumes/m/s/v, config_path: /Volumes/m/s/v/m.yaml, task: ",
    )
    task = "{existing_cluster_id: c-1, libraries: [{whl: /Volumes/m/s/v/m.whl}]}}"
    text = "warehouse: {path: ./w}\nsources: [{type: workspace, name: prod, host: 'https://w'}]\nremote: "
    config[0].write_text(text + config[1] + task)
    remote = load(config[0]).remote
    assert remote is not None
    submitted = task_of(remote)
    assert SubmitTask.from_dict(submitted).as_dict() == submitted


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("{source: other, volume: /v, config_path: /c, task: {new_cluster: {}}}", "names no workspace source"),
        ("{source: prod, volume: v, config_path: /c, task: {new_cluster: {}}}", "must be an absolute path"),
        ("{source: prod, volume: /v, config_path: /c, task: {}}", "needs a cluster"),
    ],
)
def test_faults_of_the_section(tmp_path: Path, section: str, said: str) -> None:
    file = tmp_path / "monitoring.yaml"
    file.write_text(
        "warehouse: {path: ./w}\nsources: [{type: workspace, name: prod, host: 'https://w'}]\nremote: " + section
    )
    with pytest.raises(ConfigError, match=said):
        load(file)
