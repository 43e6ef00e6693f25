"""The cycle on a Databricks cluster, launched and watched by the Dagster here (section `remote` of the configuration).

The same assets and checks as of a cycle here, in one step: it submits a run of the job's entry point through Dagster
Pipes and gets materializations, check results and failures back. A run that does not report its end was interrupted,
and that is a failure: the client alone would take a cancelled run for a success.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from monitoring_platform.config import Remote, WorkspaceSource, load
from monitoring_platform.orchestration.assets import LANDING_KEY

_TASK = "monitoring_platform"
CLOSING = "monitoring_platform_cycle"  # key of the report with which a cycle ends


class Cluster(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Launches the cycle where `remote` says."""

    config_path: str

    def launch(self, context: dg.AssetExecutionContext) -> dg.PipesClientCompletedInvocation:
        """Submit the run and wait for its end. Raises DagsterPipesExecutionError if it fails there."""
        from dagster_databricks import PipesDatabricksClient
        from dagster_databricks.pipes import (
            PipesUnityCatalogVolumesContextInjector,
            PipesUnityCatalogVolumesMessageReader,
        )
        from databricks.sdk.service.jobs import SubmitTask

        from monitoring_platform.sources.workspace.client import Workspace

        settings = load(self.config_path)
        remote = settings.remote
        assert remote is not None  # this resource is only used with it
        entry = next(source for source in settings.sources if source.name == remote.source)
        assert isinstance(entry, WorkspaceSource)  # checked when the configuration was read
        client, volume = Workspace.from_settings(entry, settings.engine).sdk(), remote.volume
        return PipesDatabricksClient(
            client,
            context_injector=PipesUnityCatalogVolumesContextInjector(client=client, volume_path=volume),
            message_reader=PipesUnityCatalogVolumesMessageReader(client=client, volume_path=volume, interval=5),
            poll_interval_seconds=remote.poll_seconds,
        ).run(
            context=context,
            task=SubmitTask.from_dict(task_of(remote)),
            submit_args={"run_name": "monitoring_platform refresh"},
        )


def task_of(remote: Remote) -> dict[str, Any]:
    """The task as the Jobs API takes it: the cluster of the configuration, and our entry point."""
    parameters = ["--config", remote.config_path]
    wheel = {"package_name": "monitoring_platform", "entry_point": "monitoring-platform-job", "parameters": parameters}
    return {"task_key": _TASK, **remote.task, "python_wheel_task": wheel}


def make_remote(assets: Sequence[dg.AssetsDefinition], checks: Sequence[dg.AssetCheckSpec]) -> dg.AssetsDefinition:
    """One step for all assets of a cycle but the landing, whose partitions are registered where it runs."""
    specs = [
        spec.replace_attributes(deps=[dep for dep in spec.deps if dep.asset_key != LANDING_KEY], skippable=True)
        for definition in assets
        for spec in definition.specs
        if spec.key != LANDING_KEY
    ]

    @dg.multi_asset(name="remote_refresh", specs=specs, check_specs=checks)
    def remote_refresh(context: dg.AssetExecutionContext, cluster: dg.ResourceParam[Cluster]) -> Iterator[Any]:
        silent = set(context.selected_asset_keys)
        for result in outcome(cluster.launch(context)):
            yield result
            silent.discard(dg.AssetKey.from_coercible(result.asset_key))
        if silent:
            names = ", ".join(sorted(key.to_user_string() for key in silent))
            raise dg.Failure(
                f"the configuration there computes no {names}: give both the same sources, costs and views",
                allow_retries=False,
            )

    return remote_refresh


def outcome(invocation: dg.PipesClientCompletedInvocation) -> Iterator[Any]:
    """What the run reported; raises Failure if part of it failed, or if it never reported its end."""
    yield from invocation.get_results(implicit_materializations=False)
    reports = [message[CLOSING] for message in invocation.get_custom_messages() if CLOSING in message]
    if not reports:
        raise dg.Failure("the cycle was interrupted: it did not report its end", allow_retries=True)
    if not reports[-1]["success"]:
        raise dg.Failure("; ".join(reports[-1]["errors"]) or "the cycle failed", allow_retries=False)
