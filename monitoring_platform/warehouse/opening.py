"""From settings to the warehouse."""

from __future__ import annotations

from monitoring_platform.config import Settings
from monitoring_platform.warehouse.folder import FolderWarehouse
from monitoring_platform.warehouse.store import Warehouse


def open_warehouse(settings: Settings) -> Warehouse:
    """The warehouse that the settings name."""
    if settings.warehouse.path is None:
        raise NotImplementedError("warehouse.catalog needs a metastore; configure warehouse.path")
    return FolderWarehouse(settings)
