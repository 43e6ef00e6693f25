"""Tests of ingest and union: the marts that they look at, not all."""

import pytest

from monitoring_platform.marts.registry import BY_NAME
from tests.conftest import Site

_LOOKED_AT = ("flow_metrics", "pipeline_runs", "requests")


@pytest.fixture(autouse=True)
def few_marts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle of these tests refreshes few marts."""
    monkeypatch.setattr(Site, "marts", [BY_NAME[name] for name in _LOOKED_AT])
