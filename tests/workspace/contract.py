"""Which calls the service has, as the SDK's own generated code makes them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import databricks.sdk.service

from tests.workspace.server import Call

_MODULES = ("pipelines", "jobs", "sql", "iam", "files")


class Definition(NamedTuple):
    """One call: verb, path as an expression, names of the parameters in the query and in the body."""

    method: str
    path: re.Pattern[str]
    query: frozenset[str]
    body: frozenset[str]


@cache
def definitions() -> tuple[Definition, ...]:
    """All calls of the services that matter here."""
    folder = Path(str(databricks.sdk.service.__file__)).parent
    texts = [(folder / f"{module}.py").read_text(encoding="utf-8") for module in _MODULES]
    # The many data classes in between make parsing whole modules slow.
    services = [part for text in texts for part in text.split("\nclass ") if "self._api.do(" in part]
    return tuple(
        definition
        for service in services
        for function in ast.parse(f"class {service}").body[0].body  # type: ignore[attr-defined]
        if isinstance(function, ast.FunctionDef)
        for definition in _made_by(function)
    )


def _made_by(function: ast.FunctionDef) -> Iterator[Definition]:
    names: dict[str, set[str]] = {"query": set(), "body": set()}
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in names:
            assert isinstance(node.slice, ast.Constant)
            names[node.value.id].add(str(node.slice.value))
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "self._api.do":
            method, path = node.args
            assert isinstance(method, ast.Constant)
            expression = re.compile(_expression(path).rstrip("/") + "/?")
            yield Definition(str(method.value), expression, frozenset(names["query"]), frozenset(names["body"]))


def _expression(path: ast.expr) -> str:
    """A path as an expression: what is put in is one part of it, or a whole path of a file."""
    if isinstance(path, ast.Constant):
        return re.escape(str(path.value))
    assert isinstance(path, ast.JoinedStr)
    return "".join(
        re.escape(str(part.value))
        if isinstance(part, ast.Constant)
        else "/.+"
        if "multi_segment" in ast.unparse(part)
        else "[^/]+"
        for part in path.values
    )


def unknown(calls: Iterable[Call]) -> list[str]:
    """What was called that the SDK does not call, or with parameters that it does not know. Not of interest: how a
    token is got, and the cloud storage that results lie in."""
    found = set()
    for call in calls:
        if call.path.startswith(("/oidc/", "/external/")) or call.path.endswith("/oauth2/token"):
            continue
        query, body = set(call.query), set(call.body or ())
        if not any(
            d.method == call.method and d.path.fullmatch(call.path) and query <= d.query and body <= d.body
            for d in definitions()
        ):
            found.add(f"{call.method} {call.path} {sorted(query)} {sorted(body)}")
    return sorted(found)
