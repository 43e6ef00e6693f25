"""From settings to the warehouse."""

from __future__ import annotations

from monitoring_platform.config import Settings
from monitoring_platform.warehouse.catalog import CatalogWarehouse
from monitoring_platform.warehouse.folder import FolderWarehouse
from monitoring_platform.warehouse.session import EngineUnavailable
from monitoring_platform.warehouse.store import Warehouse


def open_warehouse(settings: Settings) -> Warehouse:
    """The warehouse that the settings name. Raises EngineUnavailable if the engine knows no catalogs."""
    if settings.warehouse.path is not None:
        return FolderWarehouse(settings)
    if settings.engine.name == "embedded":
        raise EngineUnavailable(
            "warehouse.catalog: the embedded engine knows no catalog. Set engine: spark (or connect), "
            "or keep the tables in a folder with warehouse.path"
        )
    return CatalogWarehouse(settings)
