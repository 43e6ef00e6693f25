"""Tests of marts: a cycle of theirs refreshes the marts that the test names, and what these are computed from."""

import inspect
import re
from typing import Any

import pytest

from monitoring_platform.marts.registry import BY_NAME, MARTS
from tests.conftest import Site


@pytest.fixture(autouse=True)
def named_marts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names in the test and in the helpers of its module that it calls; all marts for a test that names none."""
    words = _words(request.function)
    helpers = [made for name, made in inspect.getmembers(request.module, inspect.isfunction) if name in words]
    wanted = words.union(*map(_words, helpers)) & BY_NAME.keys()
    for mart in reversed(MARTS):  # what others are computed from comes first
        if mart.name in wanted:
            wanted.update(name for name in mart.inputs if name in BY_NAME)
    if wanted:
        monkeypatch.setattr(Site, "marts", [mart for mart in MARTS if mart.name in wanted])


def _words(function: Any) -> set[str]:
    return set(re.findall(r"\w+", inspect.getsource(function)))
