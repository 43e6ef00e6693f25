"""Prints docs/queries.md."""

from monitoring_platform.queries import index

print(index(), end="")
