"""The SQL ways run by the engine, as they are where it runs in Databricks or is connected to it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from deltalake import write_deltalake

from monitoring_platform.config import Engine
from monitoring_platform.sources.base import SourceError
from monitoring_platform.sources.workspace import paths
from monitoring_platform.sources.workspace.client import Workspace
from monitoring_platform.sources.workspace.paths import Ask, Span, Spot
from monitoring_platform.warehouse.session import session
from tests.conftest import state
from tests.workspace import shapes


@pytest.fixture
def ask() -> Ask:
    spark = session(Engine())
    return partial(Workspace("prod", by_engine=True).sql, engine=lambda: spark)


def test_the_same_statements(ask: Ask, tmp_path: Path) -> None:
    """R-NEW-03: parameters are bound by the engine as by a SQL warehouse."""
    events = [shapes.as_event(state(f"e{n}", 60 * n, "RUNNING", pipeline_id="p")) for n in range(6)]
    write_deltalake(tmp_path / "log", shapes.table(events))
    log = paths.storage(str(tmp_path / "log"))
    first = log.fetch(ask, Span(), None, 4)
    assert [id for _, id in first.stamps] == ["e0", "e1", "e2", "e3"] and not first.is_end
    micros, id_ = first.stamps[-1]
    assert micros is not None and id_ is not None
    rest = log.fetch(ask, Span(), Spot(micros, id_), 4)
    assert [id for _, id in rest.stamps] == ["e4", "e5"] and rest.is_end
    assert [id for _, id in log.fetch(ask, Span(micros, micros + 1), None, 4).stamps] == ["e3"]
    assert list(log.by_id(ask, ["e1", "e2"])) == ["e1", "e2"]
    assert sum(log.months(ask).values()) == 6


def test_what_the_engine_refuses(ask: Ask) -> None:
    with pytest.raises(SourceError) as missing:
        paths.table(("main", "s", "log")).fetch(ask, Span(), None, 4)
    assert (missing.value.state, missing.value.transient) == ("log_not_published", False)
