"""Views of one's own: SELECTs from the configuration that become tables like the marts.

They are refreshed after the marts, in order of dependence; one that fails stops only those that read it. A view has no
contract: its columns are those of its result, and a changed SELECT computes it anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from monitoring_platform.config import Settings
from monitoring_platform.event_log.schema import Column
from monitoring_platform.marts.registry import EVENTS_SUMMARY, STOCK
from monitoring_platform.warehouse import contracts
from monitoring_platform.warehouse.contracts import Table
from monitoring_platform.warehouse.duck import ask
from monitoring_platform.warehouse.store import Mark, Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_UPDATE = ["pipeline_id", "update_id"]


class ViewError(Exception):
    """A view of one's own cannot be computed; the message says which, why and what to do."""


class OwnView(NamedTuple):
    """One SELECT with the tables that it reads."""

    name: str
    sql: str
    refresh: Literal["full", "update"]
    inputs: tuple[str, ...]
    alias: str | None = None  # another name by which the SELECT may call the union

    @property
    def digest(self) -> str:
        """Changes with the SELECT and the way it is refreshed."""
        return hashlib.sha256(f"{self.refresh}\0{self.sql}".encode()).hexdigest()[:16]


@dataclass
class Computed:
    """What one refresh did to a view; `error` says why it was left as it was."""

    view: str
    written: int = 0
    error: str | None = None


def own_views(settings: Settings) -> list[OwnView]:
    """The configured views in order of dependence.

    Raises ViewError for a SELECT that cannot be parsed, a table that does not exist, a name that is taken, a cycle.
    """
    project = settings.plumber
    alias = project.streaming_table if project and project.streaming_table not in STOCK else None
    given = [OwnView(view.name, view.sql or "", view.refresh, ()) for view in settings.views]
    # Lakehouse Plumber's default view is a table of the platform, so listing it adds nothing.
    listed = (project.views or ()) if project else ()
    given += [OwnView(v.name, v.sql, "full", ()) for v in listed if v.name != EVENTS_SUMMARY.name]
    names = {view.name for view in given}
    views: dict[str, OwnView] = {}
    for view in given:
        if view.name in views:
            raise ViewError(f"view {view.name!r}: is defined twice. Give one of them another name")
        if view.name in STOCK:
            raise ViewError(f"view {view.name!r}: this is the name of a table of the platform. Choose another one")
        read = _tables_of(view.name, view.sql)
        inputs = tuple(sorted({contracts.UNION.name if table == alias else table for table in read}))
        for table in inputs:
            if table not in STOCK and table not in names:
                near = get_close_matches(table, [*STOCK, *names], 1)
                hint = f" Did you mean {near[0]!r}?" if near else ""
                raise ViewError(f"view {view.name!r}: reads {table!r}, and there is no such table.{hint}")
        views[view.name] = view._replace(inputs=inputs, alias=alias if alias in read else None)
    graph = {name: [table for table in view.inputs if table in views] for name, view in views.items()}
    try:
        return [views[name] for name in TopologicalSorter(graph).static_order()]
    except CycleError as error:
        raise ViewError(f"views depend on each other in a cycle: {' -> '.join(error.args[1])}") from None


def _tables_of(name: str, sql: str) -> tuple[str, ...]:
    import sqlglot  # only where there is a view: it takes a third of a second
    from sqlglot import exp

    try:
        parsed = sqlglot.parse(sql, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        first = str(error).splitlines()[0]
        raise ViewError(f"view {name!r}: its SQL cannot be parsed: {first}") from None
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Query):
        raise ViewError(f"view {name!r}: its SQL has to be one SELECT")
    common = {cte.alias for cte in parsed[0].find_all(exp.CTE)}
    found = {table.name for table in parsed[0].find_all(exp.Table) if table.name not in common}
    qualified = [table.sql("spark") for table in parsed[0].find_all(exp.Table) if table.db]
    if qualified:
        raise ViewError(f"view {name!r}: reads {qualified[0]}; tables are named without catalog and schema")
    return tuple(sorted(found))


def refresh_views(warehouse: Warehouse, views: list[OwnView]) -> Iterator[Computed]:
    """Refresh views in the given order; one that fails is reported, and those that read it are left as they are."""
    failed: set[str] = set()
    for view in views:
        report = Computed(view.name)
        broken = sorted(failed.intersection(view.inputs))
        try:
            if broken:
                raise ViewError(f"left as it was, because {broken[0]} failed")
            report.written = _refresh(warehouse.for_thread(), view)
        except Exception as error:  # whatever a SELECT of somebody else raises must not stop the others
            failed.add(view.name)
            report.error = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        yield report


def stored_views(warehouse: Warehouse) -> list[Table]:
    """The configured views that have a table, each with the columns that it has now."""
    names = [view.name for view in own_views(warehouse.settings)]
    return [table for name in names if (table := _stored_table(warehouse, name)) is not None]


def _stored_table(warehouse: Warehouse, name: str) -> Table | None:
    schema = warehouse.schema(name)
    if schema is None:
        return None
    columns = tuple(Column(field.name, field.type, "") for field in schema)
    return Table(name, "view of one's own", (), columns)


def _refresh(warehouse: Warehouse, view: OwnView) -> int:
    marks = warehouse.marks()
    inputs = {name: _input(warehouse, name) for name in view.inputs}
    versions = {_step(view, name): _mark(warehouse, table, view) for name, table in inputs.items()}
    if all(marks.of(step) == version for step, version in versions.items()):
        return 0
    before = marks.of(_step(view, contracts.UNION.name))
    is_new = not warehouse.exists(view.name) or any(
        (mark := marks.of(step)) is None or mark.input_id != version.input_id for step, version in versions.items()
    )
    if view.refresh == "full" or is_new or before is None:
        written = _refresh_full(warehouse, view, inputs)
    else:
        written = _refresh_updates(warehouse, view, inputs, before)
    # The union too, whether or not the SELECT reads it: its version says which updates were touched since.
    versions[_step(view, contracts.UNION.name)] = _mark(warehouse, contracts.UNION, view)
    for step, version in versions.items():
        marks.set(step, version)
    marks.save()
    return written


def _step(view: OwnView, table: str) -> str:
    return f"{view.name} < {table}"


def _input(warehouse: Warehouse, name: str) -> Table:
    table = STOCK.get(name) or _stored_table(warehouse, name)
    if table is None:
        raise ViewError(f"{name} has no table yet")
    if name in STOCK:
        warehouse.create((table,))
    return table


def _mark(warehouse: Warehouse, table: Table, view: OwnView) -> Mark:
    version, table_id = warehouse.version(table)
    return Mark(version, f"{table_id}:{view.digest}")


def _refresh_full(warehouse: Warehouse, view: OwnView, inputs: dict[str, Table]) -> int:
    for name, table in inputs.items():
        _register(view, name, warehouse.read(table))
    rows = warehouse.spark.sql(view.sql).toArrow()
    _check(view, rows)
    old = _stored_table(warehouse, view.name)
    if old is not None and old.schema.equals(rows.schema) and _equal(warehouse.arrow(old), rows):
        return 0
    warehouse.recreate(view.name, rows)
    return int(rows.num_rows)


def _refresh_updates(warehouse: Warehouse, view: OwnView, inputs: dict[str, Table], before: Mark) -> int:
    """Recompute the rows of the updates that events after the mark touched, from the inputs' rows of these updates."""
    added, _ = warehouse.added(contracts.UNION, Mark(before.version, before.input_id.rpartition(":")[0]))
    if not added:
        return 0
    touched = added.columns(_UPDATE)
    updates = touched.filter(pc.is_valid(touched["update_id"])).group_by(_UPDATE).aggregate([])
    warehouse.frame(updates).createOrReplaceTempView("_touched")
    for name, table in inputs.items():
        rows = warehouse.read(table)
        if set(_UPDATE) <= set(table.schema.names):
            rows.createOrReplaceTempView("_all_rows")
            rows = warehouse.spark.sql(
                "SELECT a.* FROM _all_rows a LEFT SEMI JOIN _touched t "
                "ON t.pipeline_id = a.pipeline_id AND t.update_id = a.update_id"
            )
        _register(view, name, rows)
    new = warehouse.spark.sql(view.sql).toArrow()
    _check(view, new)
    there = _stored_table(warehouse, view.name)
    if there is None or not there.schema.equals(new.schema):
        return _refresh_full(warehouse, view, inputs)
    old = warehouse.stored(there, None, updates)
    if _equal(old, new):
        return 0
    if old.num_rows:
        warehouse.remove(there, updates)
    warehouse.append_rows(there, new)
    return int(new.num_rows)


def _register(view: OwnView, name: str, rows: DataFrame) -> None:
    rows.createOrReplaceTempView(name)
    if view.alias and name == contracts.UNION.name:
        rows.createOrReplaceTempView(view.alias)


def _equal(old: pa.Table, new: pa.Table) -> bool:
    """Whether two tables hold the same rows, each as often."""
    both = "(SELECT * FROM a EXCEPT ALL SELECT * FROM b) UNION ALL (SELECT * FROM b EXCEPT ALL SELECT * FROM a)"
    return bool(ask(f"SELECT count(*) AS n FROM ({both})", a=old, b=new)["n"][0].as_py() == 0)


def _check(view: OwnView, rows: pa.Table) -> None:
    if len(set(rows.schema.names)) < len(rows.schema.names):
        raise ViewError("its result has two columns of one name: give each an alias of its own")
    if view.refresh == "update" and not set(_UPDATE) <= set(rows.schema.names):
        raise ViewError("refresh: update needs the columns pipeline_id and update_id in the result")
