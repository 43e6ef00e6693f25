"""Which pipelines of a workspace an entry of the configuration is about."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from monitoring_platform.config import WorkspaceSource
from monitoring_platform.sources.base import Facts

Tag = tuple[str, str | None]


class Filter(NamedTuple):
    """What a pipeline must have: one of `tags` wholly, a name and an owner that match a glob; empty = anything."""

    tags: tuple[tuple[Tag, ...], ...] = ()
    names: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()

    @classmethod
    def from_settings(cls, entry: WorkspaceSource) -> Filter:
        return cls(entry.tag_alternatives, entry.names, entry.owners)

    def left_out_by(self, facts: Facts) -> str | None:
        """The setting that leaves this pipeline out; None if it is wanted."""
        if self.names and not _matches(self.names, facts.get("name")):
            return "names"
        if self.owners and not _matches(self.owners, facts.get("creator"), facts.get("run_as")):
            return "owners"
        tags = None if facts["spec"] is None else facts["spec"].get("tags") or {}
        if self.tags and tags is not None and not any(_has(tags, every) for every in self.tags):
            return "tags"  # without settings the tags are not known: better one too many
        return None


def _matches(globs: tuple[str, ...], *texts: Any) -> bool:
    return any(fnmatchcase(str(text), glob) for glob in globs for text in texts if text is not None)


def _has(tags: dict[str, Any], every: tuple[Tag, ...]) -> bool:
    return all(key in tags and value in (None, str(tags[key])) for key, value in every)
