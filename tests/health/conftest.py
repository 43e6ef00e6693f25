"""Shared by the tests of health."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.health.past import Past


@pytest.fixture
def past(tmp_path: Path) -> Past:
    made = Past(tmp_path)
    made.pipeline()
    return made
