"""Views of one's own: R-CFG-10. Any table by its bare name, in order of dependence, each failure by itself."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from monitoring_platform.config import load
from monitoring_platform.marts.own import ViewError, own_views, refresh_views, stored_views
from monitoring_platform.marts.registry import BY_NAME
from monitoring_platform.warehouse.looking import question
from monitoring_platform.warehouse.opening import open_warehouse
from tests.conftest import Site, event, flow, state

VIEWS = """
views:
  - name: slow_teams
    sql: SELECT pipeline_name, count(*) AS runs FROM run_minutes GROUP BY pipeline_name
  - name: run_minutes
    refresh: update
    sql: |
      SELECT r.pipeline_id, r.update_id, r.pipeline_name, r.duration_seconds / 60 AS minutes, count(f.flow_name) AS flows
      FROM pipeline_runs r
      LEFT JOIN flow_metrics f ON f.pipeline_id = r.pipeline_id AND f.update_id = r.update_id
      GROUP BY ALL_COLUMNS
  - name: broken
    sql: SELECT no_such_column FROM pipeline_runs
  - name: on_broken
    sql: SELECT * FROM broken
  - name: error_texts
    sql_path: errors.sql
""".replace("ALL_COLUMNS", "r.pipeline_id, r.update_id, r.pipeline_name, r.duration_seconds")


@pytest.fixture(autouse=True)
def few_marts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what the views read."""
    monkeypatch.setattr(Site, "marts", [BY_NAME[n] for n in ("flow_metrics", "pipeline_runs", "pipeline_errors")])


def refreshed(site: Site) -> dict[str, tuple[int, str | None]]:
    """Refresh all views: rows written and error, by view."""
    done = refresh_views(site.warehouse, own_views(site.warehouse.settings))
    return {report.view: (report.written, report.error) for report in done}


def rows(site: Site, query: str) -> list[tuple[object, ...]]:
    """The answer to a query over the views."""
    return question(site.warehouse, query, stored_views(site.warehouse)).fetchall()


def test_views_become_tables_and_follow_the_news(make_site: Callable[..., Site]) -> None:
    """R-CFG-10: dependent views in order, a broken one stops only its reader, an increment touches its updates only."""
    folder = make_site("views")
    (folder.folder / "errors.sql").write_text("SELECT event_id, message FROM pipeline_errors", encoding="utf-8")
    file = folder.folder / "monitoring.yaml"
    file.write_text(file.read_text() + VIEWS, encoding="utf-8")
    site = Site(folder.folder, open_warehouse(load(file)))
    site.write(
        "a.jsonl",
        state("1", 0, "RUNNING"),
        flow("2", 10, "f", {"status": "COMPLETED"}),
        event("3", 20, level="ERROR", message="lost"),
        state("4", 120, "COMPLETED"),
    )
    site.cycle()
    first = refreshed(site)
    assert list(first) == [view.name for view in own_views(site.warehouse.settings)]
    assert (first["run_minutes"], first["slow_teams"], first["error_texts"]) == ((1, None), (1, None), (1, None))
    assert "no_such_column" in str(first["broken"][1])
    assert first["on_broken"] == (0, "left as it was, because broken failed")
    assert rows(site, "SELECT pipeline_id, update_id, minutes, flows FROM run_minutes") == [("p", "u", 2.0, 1)]
    assert rows(site, "SELECT * FROM error_texts") == [("3", "lost")]

    assert refreshed(site)["run_minutes"] == (0, None)  # nothing new
    site.write("a.jsonl", state("5", 300, "RUNNING", update_id="v"), state("6", 360, "COMPLETED", update_id="v"))
    site.write("a.jsonl", flow("7", 30, "g", {"status": "COMPLETED"}))  # late, of the first update
    site.cycle()
    assert refreshed(site)["run_minutes"] == (2, None)
    assert rows(site, "SELECT update_id, minutes, flows FROM run_minutes ORDER BY 1") == [("u", 2.0, 2), ("v", 1.0, 0)]
    assert rows(site, "SELECT * FROM slow_teams") == [("pipe", 2)]


@pytest.mark.parametrize(
    ("views", "says"),
    [
        ("- {name: a, sql: SELECT * FROM b}\n  - {name: b, sql: SELECT * FROM a}", "in a cycle: "),
        ("- {name: a, sql: SELECT * FROM pipeline_run}", "Did you mean 'pipeline_runs'?"),
        ("- {name: requests, sql: SELECT 1 AS x}", "is the name of a table of the platform"),
        ("- {name: a, sql: SELECT FROM WHERE}", "cannot be parsed"),
        ("- {name: a, sql: DROP TABLE requests}", "has to be one SELECT"),
        ("- {name: a, sql: SELECT 1 AS x; SELECT 2 AS y}", "has to be one SELECT"),
        ("- {name: a, sql: SELECT * FROM main.s.t}", "without catalog and schema"),
    ],
)
def test_views_that_cannot_be(make_site: Callable[..., Site], views: str, says: str) -> None:
    """A cycle is an error that names the views; so are unknown tables, taken names and SQL that is no SELECT."""
    site = make_site("wrong", f"views:\n  {views}\n")
    with pytest.raises(ViewError, match="view") as error:
        own_views(site.warehouse.settings)
    assert says in str(error.value)


def test_common_table_expressions_are_no_inputs(make_site: Callable[..., Site]) -> None:
    """A view may build on its own WITH."""
    sql = "WITH late AS (SELECT * FROM requests) SELECT l.request_id FROM late l JOIN pipelines p USING (pipeline_id)"
    site = make_site("cte", f"views:\n  - name: a\n    sql: {sql}\n")
    assert [view.inputs for view in own_views(site.warehouse.settings)] == [("pipelines", "requests")]
