"""The Dagster code location. `build_defs` serves production and tests alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from monitoring_platform.config import Schedule, default_config_path, load
from monitoring_platform.marts.own import own_views
from monitoring_platform.marts.registry import MARTS, refreshed_marts
from monitoring_platform.orchestration.assets import ASSETS, make_own_views, workspace_context
from monitoring_platform.orchestration.checks import health_checks
from monitoring_platform.orchestration.health import make_health
from monitoring_platform.orchestration.job_assets import job_checks, job_specs
from monitoring_platform.orchestration.jobs import make_refresh
from monitoring_platform.orchestration.resources import Platform
from monitoring_platform.orchestration.schedules import make_safety_net
from monitoring_platform.orchestration.sensors import make_alerts, make_job_messages, make_pipeline_updates
from monitoring_platform.warehouse.opening import open_warehouse


def build_defs(*, resources: Mapping[str, Any] | None = None, here: bool = False) -> dg.Definitions:
    """All definitions. The configuration is the file named by MONITORING_CONFIG, else ./monitoring.yaml.

    With a section `remote` the same assets and checks are one step that runs there, unless `here`.
    """
    path = default_config_path()
    settings = load(path) if path.exists() else None
    schedule = settings.schedule if settings else Schedule(enabled=False)
    if settings and settings.plumber and not settings.plumber.monitoring_enabled:
        schedule = Schedule(enabled=False)
    interval = settings.sensor_interval_seconds if settings else 15
    views = own_views(settings) if settings else []
    context = [workspace_context] if settings and settings.has_context else []
    health = [make_health(settings)] if settings else []
    assets = [*ASSETS, *context, *([make_own_views(views)] if views else []), *health]
    refresh = make_refresh(
        [mart.name for mart in (refreshed_marts(settings) if settings else MARTS)],
        *(key.to_user_string() for asset in (*context, *health) for key in asset.keys),
        *(view.name for view in views),
    )
    if settings and settings.remote and not here:
        from monitoring_platform.orchestration.remote import Cluster, make_remote

        checks = [spec for definition in (health_checks, *health) for spec in definition.check_specs]
        return dg.Definitions(
            assets=[make_remote(assets, checks)],
            jobs=[refresh],
            schedules=[make_safety_net(schedule.safety_net_cron, schedule.enabled, is_remote=True)],
            resources={"cluster": Cluster(config_path=str(path)), **(resources or {})},
            executor=dg.in_process_executor,
        )
    in_folder = settings is not None and settings.warehouse.path is not None  # a catalog would need the engine
    recorded = open_warehouse(settings) if settings and in_folder else None
    jobs = job_specs(recorded) if recorded else []
    return dg.Definitions(
        assets=[*assets, *jobs],
        asset_checks=[health_checks, *(job_checks(recorded) if recorded and jobs else [])],
        jobs=[refresh],
        sensors=[
            make_pipeline_updates(interval, schedule.enabled and schedule.sensor),
            make_alerts(schedule.enabled),
            *make_job_messages(refresh, schedule.enabled),
        ],
        schedules=[make_safety_net(schedule.safety_net_cron, schedule.enabled)],
        resources={"platform": Platform(config_path=str(path)), **(resources or {})},
        executor=dg.in_process_executor,
    )


defs = build_defs()
