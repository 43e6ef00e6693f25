"""Access paths to event logs. Adding one: a settings class in config, a module here, one line in `_KINDS`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from monitoring_platform.config import Settings
from monitoring_platform.sources.base import Chunk, Cursor, Log, NeedsEngine, Source, SourceError
from monitoring_platform.sources.delta import DeltaLogs
from monitoring_platform.sources.files import Files

_KINDS: dict[str, Callable[[Any, Path], Source]] = {"files": Files.from_settings, "delta": DeltaLogs.from_settings}


def configured(settings: Settings) -> list[Source]:
    """One source for each entry of the configuration."""
    return [_KINDS[entry.type](entry, settings.base_dir) for entry in settings.sources]


__all__ = ["Chunk", "Cursor", "Log", "NeedsEngine", "Source", "SourceError", "configured"]
