"""Paths as written in the configuration: a folder, a file or a glob, relative to the configuration file."""

from __future__ import annotations

import glob
from pathlib import Path

_MAGIC = set("*?[")


def resolve(base_dir: Path, written: str) -> str:
    """Absolute form of a path or glob; what is absolute already stays."""
    return str(base_dir / Path(written).expanduser())


def expand(path: str) -> list[Path]:
    """What the path or glob names now, sorted; an empty list if there is nothing."""
    found = glob.glob(path, recursive=True) if _MAGIC & set(path) else [path]
    return sorted(Path(name) for name in found if Path(name).exists())
