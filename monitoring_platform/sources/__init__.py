"""Access paths to event logs. Adding one: a settings class in config, a module here, one case in `_source`."""

from __future__ import annotations

from monitoring_platform.config import DeltaSource, FilesSource, JobsSource, Settings, WorkspaceSource
from monitoring_platform.sources.base import (
    Chunk,
    Cursor,
    Facts,
    Listing,
    Log,
    Look,
    NeedsEngine,
    Source,
    SourceError,
)
from monitoring_platform.sources.delta import DeltaLogs
from monitoring_platform.sources.files import Files
from monitoring_platform.sources.jobs import Jobs


def configured(settings: Settings) -> list[Source]:
    """One source for each entry of the configuration."""
    return [_source(entry, settings) for entry in settings.sources]


def _source(entry: FilesSource | DeltaSource | JobsSource | WorkspaceSource, settings: Settings) -> Source:
    match entry:
        case FilesSource():
            return Files.from_settings(entry, settings.base_dir)
        case DeltaSource():
            return DeltaLogs.from_settings(entry, settings.base_dir)
        case JobsSource():
            return Jobs.from_settings(entry, settings.base_dir)
        case WorkspaceSource():  # the SDK takes a second to import
            from monitoring_platform.sources.workspace.logs import WorkspaceLogs

            return WorkspaceLogs.from_settings(entry, settings)


__all__ = [
    "Chunk",
    "Cursor",
    "Facts",
    "Listing",
    "Log",
    "Look",
    "NeedsEngine",
    "Source",
    "SourceError",
    "configured",
]
