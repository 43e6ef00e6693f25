"""What assets, checks and sensors share: the configured platform."""

import logging

import dagster as dg

from monitoring_platform.config import Settings, load
from monitoring_platform.orchestration.jobs import REFRESH
from monitoring_platform.orchestration.platform_runs import keep_run
from monitoring_platform.warehouse.opening import open_warehouse
from monitoring_platform.warehouse.store import Warehouse

_log = logging.getLogger("monitoring_platform")


class Platform(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The platform of one configuration file."""

    config_path: str

    def settings(self) -> Settings:
        return load(self.config_path)

    def warehouse(self) -> Warehouse:
        return open_warehouse(self.settings())

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        """After the last step of a cycle, however it ended; that the record fails is no failure of the cycle."""
        if not (context.run and context.instance and context.run.job_name == REFRESH):
            return
        try:
            keep_run(self.warehouse(), context.instance, context.run)
        except Exception:
            _log.warning("this cycle could not be noted in platform_runs", exc_info=True)
