"""The configuration file, checked and typed. No other code reads configuration files or the environment."""

from monitoring_platform.config.loader import ConfigError, load
from monitoring_platform.config.model import (
    Checks,
    Coverage,
    DeltaSource,
    Engine,
    FilesSource,
    Ingest,
    Pipelines,
    PipelineSettings,
    Redaction,
    Schedule,
    Settings,
    Source,
    Warehouse,
)
from monitoring_platform.config.places import dagster_home, default_config_path, use_config

__all__ = [
    "Checks",
    "ConfigError",
    "Coverage",
    "DeltaSource",
    "Engine",
    "FilesSource",
    "Ingest",
    "PipelineSettings",
    "Pipelines",
    "Redaction",
    "Schedule",
    "Settings",
    "Source",
    "Warehouse",
    "dagster_home",
    "default_config_path",
    "load",
    "use_config",
]
