"""What assets, checks and sensors share: the configured platform."""

from datetime import datetime, timezone

import dagster as dg

from monitoring_platform.config import Settings, load
from monitoring_platform.warehouse.store import Warehouse


class Platform(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The platform of one configuration file."""

    config_path: str

    def settings(self) -> Settings:
        return load(self.config_path)

    def warehouse(self) -> Warehouse:
        return Warehouse(self.settings())


def clock(given: str | None) -> datetime:
    """The time that counts: what the run was told, else the system's. Nothing else asks the system."""
    if given is None:
        return datetime.now(timezone.utc)
    moment = datetime.fromisoformat(given.replace("Z", "+00:00"))
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
