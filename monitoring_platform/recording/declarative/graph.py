"""The graph of a pipeline, read from the commands that define it: outputs, flows and what each flow reads.

Names come as written and are qualified here as the server does it. What cannot be told without guessing is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

Name = tuple[str, ...]

_FLOW = re.compile(r"CREATE\s+FLOW\s+(`[^`]+`|\w+)(?:\s+COMMENT\s+(?:'[^']*'|\"[^\"]*\"))?\s+AS\s+", re.I)
_ELSEWHERE = re.compile(r"(?:USE|SET\s+CATALOG)\b", re.I)  # names after it belong to another catalog or schema
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")


class Output(NamedTuple):
    """A dataset, or a sink. `kind`: MATERIALIZED_VIEW, STREAMING_TABLE, VIEW or SINK."""

    name: Name
    kind: str

    @property
    def is_table(self) -> bool:
        return self.kind in ("MATERIALIZED_VIEW", "STREAMING_TABLE")


class Flow(NamedTuple):
    """What writes to `target`. `inputs`: what it reads, each once."""

    name: Name
    target: Name
    inputs: tuple[Name, ...]
    language: str
    kind: str | None = None  # CHANGE; None = as its output says


class Graph:
    """Collects definitions; `outputs` and `flows` give them with qualified names, in the order in which they came."""

    def __init__(self, catalog: str | None = None, schema: str | None = None) -> None:
        self.catalog, self.schema = catalog, schema
        self._outputs: list[Output] = []
        self._flows: list[Flow] = []

    def add(self, command: Any) -> None:
        """A PipelineCommand that defines something."""
        kind = command.WhichOneof("command_type")
        body = getattr(command, kind)
        if kind == "define_output":
            self._outputs.append(Output(_parts(body.output_name), _OUTPUTS.get(body.output_type, "VIEW")))
        elif kind == "define_flow":
            is_change = body.WhichOneof("details") == "auto_cdc_flow_details"
            reads = [_parts(body.auto_cdc_flow_details.source)] if is_change else _reads(body.relation_flow_details)
            flow, target = _parts(body.flow_name), _parts(body.target_dataset_name)
            self._flows.append(Flow(flow, target, _once(reads), "PYTHON", "CHANGE" if is_change else None))
        elif kind == "define_sql_graph_elements":
            for statement in _statements(body.sql_text):
                if _ELSEWHERE.match(statement):
                    return
                self._add_sql(statement)

    @property
    def outputs(self) -> list[Output]:
        return [entry._replace(name=self._qualified(entry.name)) for entry in self._outputs]

    @property
    def flows(self) -> list[Flow]:
        kinds = {entry.name: entry.kind for entry in self.outputs}
        found = []
        for flow in self._flows:
            target = self._qualified(flow.target)
            # A flow is in the schema like a table, except that of a view, which has the view's name.
            name = target if flow.name == flow.target else self._qualified(flow.name)
            kind = flow.kind or _FLOW_TYPES.get(kinds.get(target, ""))
            inputs = tuple(map(self._qualified, flow.inputs))
            found.append(Flow(name, target, inputs, flow.language, kind))
        return found

    def _qualified(self, name: Name) -> Name:
        is_view = any(entry.name == name and entry.kind in ("VIEW", "SINK") for entry in self._outputs)
        defaults = tuple(part for part in (self.catalog, self.schema) if part)
        return name if is_view or len(name) >= 3 else defaults[: 3 - len(name)] + name

    def _add_sql(self, statement: str) -> None:
        import sqlglot
        from sqlglot import exp

        if change := _FLOW.match(statement):
            tree = _parsed(statement[change.end() :])
            if isinstance(tree, exp.Insert) and (target := tree.find(exp.Table)):
                self._flows.append(Flow(_parts(change[1]), _table(target), _once(_tables(tree.expression)), "SQL"))
            return
        tree = _parsed(statement)
        if not isinstance(tree, sqlglot.exp.Create) or (target := tree.find(exp.Table)) is None:
            return
        name = _table(target)
        self._outputs.append(Output(name, _sql_kind(tree)))
        if tree.expression:
            self._flows.append(Flow(name, name, _once(_tables(tree.expression)), "SQL"))


_OUTPUTS = {1: "MATERIALIZED_VIEW", 2: "STREAMING_TABLE", 3: "VIEW", 4: "SINK"}  # pb2.OutputType
_FLOW_TYPES = {"MATERIALIZED_VIEW": "MATERIALIZED_VIEW", "STREAMING_TABLE": "APPEND", "SINK": "APPEND", "VIEW": "VIEW"}


def dotted(name: Name) -> str:
    """A name as Spark's messages have it."""
    return ".".join(name)


def quoted(name: Name) -> str:
    """A name as SQL reads it, whatever is in it."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in name)


def spelled(name: Name) -> str:
    """A name with back-ticks where they are needed to tell its parts."""
    return ".".join(part if re.fullmatch(r"[\w-]+", part) else quoted((part,)) for part in name)


def _parts(text: str) -> Name:
    return tuple((ticked or plain).replace("``", "`").strip() for ticked, plain in _PART.findall(text))


def _once(names: Iterator[Name] | list[Name]) -> tuple[Name, ...]:
    return tuple(dict.fromkeys(names))


def _reads(message: Any) -> Iterator[Name]:
    """Tables that a relation reads, wherever they are in its plan."""
    waiting = [message]
    while waiting:  # a plan may be deeper than Python's stack
        node = waiting.pop()
        if node.DESCRIPTOR.full_name == "spark.connect.Read.NamedTable":
            yield _parts(node.unparsed_identifier)
        elif node.DESCRIPTOR.full_name == "spark.connect.SQL":
            tree = _parsed(node.query)
            yield from _tables(tree) if tree else ()
        for field, value in reversed(node.ListFields()):
            if field.message_type and not field.message_type.GetOptions().map_entry:
                waiting.extend(reversed(value) if hasattr(value, "add") else [value])


def _tables(query: Any) -> Iterator[Name]:
    """Tables that a query reads; a common table expression is none, unlike a table of its name inside it."""
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    plain = query.transform(lambda node: node.this if isinstance(node, exp.Stream) else node)  # unknown to scopes
    for scope in traverse_scope(plain):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and (name := _table(source)):
                yield name


def _table(table: Any) -> Name:
    """A table's name; empty for a function or files in its place."""
    from sqlglot import exp

    is_name = all(isinstance(part, exp.Identifier) for part in table.parts) and "/" not in table.name
    return tuple(part.name for part in table.parts) if is_name else ()


def _statements(text: str) -> Iterator[str]:
    from sqlglot.dialects.databricks import Databricks

    begin: int | None = None  # of the first token: comments are none
    for token in Databricks().tokenize(text):
        if token.token_type.name != "SEMICOLON":
            begin = token.start if begin is None else begin
        elif begin is not None:
            yield text[begin : token.start]
            begin = None
    if begin is not None:
        yield text[begin:]


def _parsed(sql: str) -> Any:
    """The tree of one statement; None if it is beyond the parser, or nothing but a comment."""
    import sqlglot

    try:
        return sqlglot.parse_one(sql, dialect="databricks")
    except sqlglot.errors.SqlglotError:
        return None


def _sql_kind(tree: Any) -> str:
    from sqlglot import exp

    if tree.args.get("kind") != "VIEW":
        return "STREAMING_TABLE"
    properties = tree.args.get("properties")
    is_stored = properties is not None and properties.find(exp.MaterializedProperty)
    return "MATERIALIZED_VIEW" if is_stored else "VIEW"
