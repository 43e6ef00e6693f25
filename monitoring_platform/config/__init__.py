"""The configuration file, checked and typed. No other code reads configuration files or the environment."""

from monitoring_platform.config.loader import load
from monitoring_platform.config.model import (
    Checks,
    Costs,
    Coverage,
    DeltaSource,
    Engine,
    FilesSource,
    Ingest,
    Jobs,
    LakehousePlumber,
    Pipelines,
    PipelineSettings,
    Redaction,
    Remote,
    Schedule,
    Settings,
    Source,
    SystemTables,
    Warehouse,
    WorkspaceSource,
)
from monitoring_platform.config.places import dagster_home, default_config_path, use_config
from monitoring_platform.config.plumber import LogPlace, PlumberProject, SummaryView
from monitoring_platform.config.reading import ConfigError

__all__ = [
    "Checks",
    "ConfigError",
    "Costs",
    "Coverage",
    "DeltaSource",
    "Engine",
    "FilesSource",
    "Ingest",
    "Jobs",
    "LakehousePlumber",
    "LogPlace",
    "PipelineSettings",
    "Pipelines",
    "PlumberProject",
    "Redaction",
    "Remote",
    "Schedule",
    "Settings",
    "Source",
    "SummaryView",
    "SystemTables",
    "Warehouse",
    "WorkspaceSource",
    "dagster_home",
    "default_config_path",
    "load",
    "use_config",
]
