"""Dagster: thin wrappers around the rooms that do the work. One module for each concept."""

import warnings

import dagster as dg

# backfill_policy is in beta; the pinned version is tested, and users should not read about it at every command.
warnings.filterwarnings("ignore", category=dg.BetaWarning)
