"""What assets, checks and sensors share: the configured platform."""

import dagster as dg

from monitoring_platform.config import Settings, load
from monitoring_platform.warehouse.opening import open_warehouse
from monitoring_platform.warehouse.store import Warehouse


class Platform(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The platform of one configuration file."""

    config_path: str

    def settings(self) -> Settings:
        return load(self.config_path)

    def warehouse(self) -> Warehouse:
        return open_warehouse(self.settings())
