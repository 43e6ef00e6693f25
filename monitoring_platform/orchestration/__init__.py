"""Dagster: thin wrappers around the rooms that do the work. One module for each concept."""
