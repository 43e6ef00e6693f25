"""Where things are by convention, and what the environment says about it."""

from __future__ import annotations

import os
from pathlib import Path

from monitoring_platform.config.model import Settings

CONFIG_VARIABLE = "MONITORING_CONFIG"


def default_config_path() -> Path:
    """The configuration file: named by MONITORING_CONFIG, else monitoring.yaml in the working folder."""
    return Path(os.environ.get(CONFIG_VARIABLE) or "monitoring.yaml").absolute()


def use_config(path: Path) -> None:
    """Make this configuration the one that code loaded later in this process, or by its children, finds."""
    os.environ[CONFIG_VARIABLE] = str(path.absolute())


def dagster_home(settings: Settings) -> Path:
    """DAGSTER_HOME where set; else a folder beside the warehouse, so that two configurations never share one."""
    given = os.environ.get("DAGSTER_HOME")
    if given:
        return Path(given)
    path = settings.warehouse.path
    return path.with_name(f"{path.name}.dagster") if path else settings.base_dir / ".dagster"
