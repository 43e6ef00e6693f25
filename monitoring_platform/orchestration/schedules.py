"""The safety net: a cycle now and then, whatever the sensor saw."""

from __future__ import annotations

import dagster as dg

from monitoring_platform.orchestration.jobs import REFRESH


def make_safety_net(cron: str, running: bool, is_remote: bool = False) -> dg.ScheduleDefinition:
    """The schedule with the configured cadence (UTC)."""
    in_turn = dg.RunConfig(ops={"pipelines": {"config": {"force": False}}})  # failing logs when it is their turn
    return dg.ScheduleDefinition(
        name="safety_net",
        job_name=REFRESH,
        cron_schedule=cron,
        execution_timezone="UTC",
        run_config=dg.RunConfig() if is_remote else in_turn,
        default_status=dg.DefaultScheduleStatus.RUNNING if running else dg.DefaultScheduleStatus.STOPPED,
        description="Runs a whole cycle also if the sensor is off or missed something.",
    )
