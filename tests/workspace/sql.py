"""Statements on real tables: Databricks SQL, translated for DuckDB, with the catalog's rights checked first."""

from __future__ import annotations

import re
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import duckdb
import orjson
import pyarrow as pa
import sqlglot
from deltalake import DeltaTable
from sqlglot import exp

from tests.workspace.model import Pipeline, Principal
from tests.workspace.refusal import SqlError
from tests.workspace.shapes import Json

if TYPE_CHECKING:
    from tests.workspace.world import Workspace


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One database without tables of its own; each statement has a connection to it."""
    database = duckdb.connect()
    database.execute("SET GLOBAL TimeZone = 'UTC'; SET GLOBAL threads = 1")
    return database


def run(
    workspace: Workspace,
    who: Principal,
    statement: str,
    parameters: list[Json],
    catalog: str | None = None,
    schema: str | None = None,
) -> pa.Table:
    """The rows of a SELECT as this principal. Raises SqlError."""
    tree = _parsed(workspace, statement)
    tree = _bound(tree, parameters)
    return _computed(workspace, who, tree, catalog or "hive_metastore", schema or "default")


def _parsed(workspace: Workspace, statement: str) -> exp.Expression:
    try:
        trees = [tree for tree in sqlglot.parse(statement, read="databricks") if tree is not None]
    except sqlglot.errors.SqlglotError as error:
        near = str(error).splitlines()[0][:200]
        raise SqlError(f"[PARSE_SYNTAX_ERROR] Syntax error: {near} SQLSTATE: 42601") from None
    if len(trees) != 1:
        raise SqlError("[PARSE_SYNTAX_ERROR] Syntax error at or near ';': extra input. SQLSTATE: 42601")
    (tree,) = trees
    if not isinstance(tree, exp.Query):
        workspace.refused_statements.append(statement)
        raise SqlError("[INSUFFICIENT_PERMISSIONS] Insufficient privileges: only SELECT is allowed. SQLSTATE: 42501")
    return tree


def _bound(tree: exp.Expression, parameters: list[Json]) -> exp.Expression:
    """Named parameters as typed literals; a value is checked against its type as `cast` would."""
    given = {each["name"]: each for each in parameters}

    def bind(node: exp.Expression) -> exp.Expression:
        if not isinstance(node, exp.Placeholder):
            return node
        name = node.name
        if name not in given:
            raise SqlError(
                f"[UNBOUND_SQL_PARAMETER] Found the unbound parameter: {name}. Please, fix `args` and provide a "
                "mapping of the parameter to either a SQL literal or collection constructor functions. SQLSTATE: 42P02"
            )
        value, type_name = given[name].get("value"), given[name].get("type") or "STRING"
        if value is not None and not isinstance(value, str):
            raise SqlError(f"The value of parameter {name} must be a string")
        type = exp.DataType.build(type_name, dialect="databricks")
        literal = exp.null() if value is None else exp.Literal.string(value)
        if value is not None and type_name.upper() != "STRING":
            _check(value, type_name)
        return exp.cast(literal, type)

    return tree.transform(bind)


def _check(value: str, type_name: str) -> None:
    target = exp.DataType.build(type_name, dialect="databricks").sql("duckdb")
    with _database().cursor() as connection:
        (cast,) = connection.execute(f"SELECT TRY_CAST(? AS {target})", [value]).fetchone() or (None,)
    if cast is None:
        raise SqlError(
            f'[CAST_INVALID_INPUT] The value \'{value}\' of the type "STRING" cannot be cast to "{type_name}" '
            "because it is malformed. SQLSTATE: 22018"
        )


def _computed(workspace: Workspace, who: Principal, tree: exp.Expression, catalog: str, schema: str) -> pa.Table:
    relations: dict[str, pa.Table] = {}
    local = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    for node in list(tree.find_all(exp.Table)):
        if isinstance(node.this, exp.Anonymous):
            rows = _function(workspace, who, node.this, catalog, schema)
        elif not node.db and node.name.lower() in local:
            continue
        else:
            rows = _relation(workspace, who, _full_name(node, catalog, schema))
        stand_in = f"relation_{len(relations)}"
        relations[stand_in] = rows
        alias = node.alias or (node.name if not isinstance(node.this, exp.Anonymous) else node.this.name)
        node.replace(exp.alias_(exp.to_table(stand_in), exp.to_identifier(alias, quoted=True), table=True))
    text = tree.sql("duckdb")
    with _database().cursor() as connection:
        for name, rows in relations.items():
            connection.register(name, rows)
        try:
            return connection.execute(text).to_arrow_table()
        except duckdb.Error as error:
            raise _translated(error) from None


def _full_name(node: exp.Table, catalog: str, schema: str) -> tuple[str, str, str]:
    return node.catalog or catalog, node.db or schema, node.name


def _relation(workspace: Workspace, who: Principal, name: tuple[str, str, str]) -> pa.Table:
    catalog, schema, place = name
    if schema == "delta":
        return _folder(workspace, who, place)
    found = workspace.relation(".".join(name))
    quoted = ".".join(f"`{part}`" for part in name)
    if found is None and not workspace.has_schema(catalog, schema):
        raise _not_found(quoted)
    for privilege, kind, thing in (
        ("USE CATALOG", "Catalog", catalog),
        ("USE SCHEMA", "Schema", f"{catalog}.{schema}"),
        ("SELECT", "Table", ".".join(name)),
    ):
        if found is None and kind == "Table":
            raise _not_found(quoted)
        if not workspace.has_privilege(who, privilege, thing, found):
            message = f"Insufficient privileges: User does not have {privilege} on {kind} '{thing}'."
            raise SqlError(f"[INSUFFICIENT_PERMISSIONS] {message} SQLSTATE: 42501")
    assert found is not None
    if found.definition is None:
        return found.rows()
    owner = workspace.principals.get(found.owner) or Principal(found.owner)
    return _computed(workspace, owner, sqlglot.parse_one(found.definition, read="databricks"), catalog, schema)


def _folder(workspace: Workspace, who: Principal, path: str) -> pa.Table:
    """delta.`<path>`: files need a right of their own."""
    place = path.removeprefix("dbfs:").rstrip("/")
    found = next((p.stored_at[place] for p in workspace.pipelines.values() if place in p.stored_at), None)
    if not workspace.has_privilege(who, "READ FILES", place, None):
        raise SqlError(
            "[INSUFFICIENT_PERMISSIONS] Insufficient privileges: User does not have permission SELECT on any file. "
            "SQLSTATE: 42501"
        )
    if found is None:
        raise SqlError(f"[DELTA_PATH_DOES_NOT_EXIST] {path} doesn't exist, or is not a Delta table. SQLSTATE: 42K03")
    return DeltaTable(found).to_pyarrow_table()


def _not_found(quoted: str) -> SqlError:
    return SqlError(
        f"[TABLE_OR_VIEW_NOT_FOUND] The table or view {quoted} cannot be found. Verify the spelling and correctness "
        "of the schema and catalog. If you did not qualify the name with a schema, verify the current_schema() "
        "output, or qualify the name with the correct schema and catalog. To tolerate the error on drop use DROP "
        "VIEW IF EXISTS or DROP TABLE IF EXISTS. SQLSTATE: 42P01"
    )


def _function(workspace: Workspace, who: Principal, call: exp.Anonymous, catalog: str, schema: str) -> pa.Table:
    name, arguments = str(call.this).lower(), call.expressions
    if name == "identifier" and len(arguments) == 1:
        text = _literal(arguments[0])
        parts = [part.name for part in sqlglot.parse_one(text, into=exp.Table, read="databricks").parts]
        return _relation(workspace, who, tuple([catalog, schema, *parts][-3:]))  # type: ignore[arg-type]
    if name != "event_log" or len(arguments) != 1:
        raise SqlError(
            f"[UNRESOLVABLE_TABLE_VALUED_FUNCTION] Could not resolve {name} to a table-valued function. SQLSTATE: 42883"
        )
    (argument,) = arguments
    if isinstance(argument, exp.Anonymous) and str(argument.this).upper() == "TABLE":
        (table,) = argument.expressions
        parts = [part.name for part in table.parts]
        full = ".".join([catalog, schema, *parts][-3:])
        pipeline = workspace.pipeline_of(full)
        if pipeline is None:
            raise _not_found(".".join(f"`{part}`" for part in full.split(".")))
    else:
        pipeline = workspace.pipelines.get(_literal(argument))
    return _event_log(workspace, who, pipeline, argument.sql("databricks"))


def _event_log(workspace: Workspace, who: Principal, pipeline: Pipeline | None, argument: str) -> pa.Table:
    if pipeline is None or pipeline.deleted:
        raise SqlError(f"[EVENT_LOG_UNAVAILABLE] No event logs available for {argument}. SQLSTATE: 55019")
    if who.name != pipeline.owner:
        message = f"Insufficient privileges: User is not an owner of Pipeline '{pipeline.id}'."
        raise SqlError(f"[INSUFFICIENT_PERMISSIONS] {message} SQLSTATE: 42501")
    if workspace.function_for_legacy_only and not pipeline.is_legacy:
        raise SqlError(
            "[EVENT_LOG_TVF_UNSUPPORTED_FOR_PIPELINE] The EVENT_LOG Table-Valued Function is not supported for "
            "pipelines that use the 'schema' field or pipelines that publish to default storage. To query the event "
            "log, publish it to the metastore by specifying the event_log field in the pipeline settings. "
            "SQLSTATE: 0A000"
        )
    if not pipeline.events:
        raise SqlError(
            f"[EVENT_LOG_UNAVAILABLE] No event logs available for {argument}. Please try again later after events "
            "are generated. SQLSTATE: 55019"
        )
    return pipeline.table()


def _literal(node: exp.Expression) -> str:
    inner = node.this if isinstance(node, exp.Cast) else node
    if not isinstance(inner, exp.Literal):
        raise SqlError("[NON_FOLDABLE_ARGUMENT] The function requires a string literal. SQLSTATE: 42K08")
    return str(inner.this)


def _translated(error: duckdb.Error) -> SqlError:
    """An error of DuckDB in the words of the service."""
    text = str(error)
    column = re.search(r'column(?: named)? "([^"]+)"|Column "([^"]+)" in (?:EXCLUDE|REPLACE)', text)
    if isinstance(error, duckdb.BinderException) and column:
        name = column[1] or column[2]
        return SqlError(
            f"[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function parameter with name `{name}` cannot "
            "be resolved. SQLSTATE: 42703"
        )
    if isinstance(error, duckdb.CatalogException):
        return SqlError(f"[UNRESOLVED_ROUTINE] Cannot resolve routine: {text.splitlines()[0]} SQLSTATE: 42883")
    return SqlError(f"[INTERNAL_ERROR] {text.splitlines()[0]} SQLSTATE: XX000", "INTERNAL_ERROR")


# Results as they are sent


def as_sent(rows: pa.Table, complex_types: str) -> pa.Table:
    """Structs, arrays and maps as JSON text unless Arrow types are wanted; the SQL type is in the field's metadata."""
    columns, fields = [], []
    for field, column in zip(rows.schema, rows.columns):
        named = field.with_metadata({"Spark:DataType:SqlName": _sql_type(field.type)})
        if pa.types.is_nested(field.type) and complex_types == "json":
            texts = [
                None if value is None else orjson.dumps(_plain(value), default=_leaf).decode()
                for value in column.to_pylist()
            ]
            column, named = pa.array(texts, pa.string()), named.with_type(pa.string())
        columns.append(column)
        fields.append(named)
    return pa.table(columns, schema=pa.schema(fields))


def _plain(value: Any) -> Any:
    """Maps arrive from Arrow as lists of pairs and are sent as lists of objects."""
    if isinstance(value, dict):
        return {name: _plain(content) for name, content in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(pair, tuple) for pair in value):
            return [{"key": _plain(key), "value": _plain(content)} for key, content in value]
        return [_plain(content) for content in value]
    return value


def _leaf(value: Any) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(type(value))


def as_texts(rows: pa.Table) -> list[list[str | None]]:
    """Every value as its text, or null."""
    return [[_text(value) for value in row.values()] for row in rows.to_pylist()]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        at = value.astimezone(timezone.utc) if value.tzinfo else value
        return at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, (dict, list)):
        return orjson.dumps(_plain(value), default=_leaf).decode()
    return str(value)


def described_type(field: pa.Field) -> Json:
    """The type of a column in a manifest."""
    text = (field.metadata or {}).get(b"Spark:DataType:SqlName", b"").decode() or _sql_type(field.type)
    wire = "STRING" if pa.types.is_string(field.type) else re.split(r"[<(]", text)[0]
    return {"type_text": text, "type_name": wire}


def _sql_type(type: pa.DataType) -> str:
    if pa.types.is_struct(type):
        return "STRUCT<" + ", ".join(f"{field.name}: {_sql_type(field.type)}" for field in type) + ">"
    if pa.types.is_map(type):
        return f"MAP<{_sql_type(type.key_type)}, {_sql_type(type.item_type)}>"
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        return f"ARRAY<{_sql_type(type.value_type)}>"
    if pa.types.is_decimal(type):
        return f"DECIMAL({type.precision},{type.scale})"
    if pa.types.is_timestamp(type):
        return "TIMESTAMP" if type.tz else "TIMESTAMP_NTZ"
    names = {
        pa.int64(): "BIGINT",
        pa.int32(): "INT",
        pa.float64(): "DOUBLE",
        pa.bool_(): "BOOLEAN",
        pa.date32(): "DATE",
        pa.null(): "VOID",
    }
    return names.get(type, "STRING")
