"""SELECT statements on a SQL warehouse, through the Statement Execution API: waiting, cancelling, results in chunks."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import requests
from pyarrow import ipc

from monitoring_platform.sources.base import INTERRUPTED, SourceError
from monitoring_platform.sources.workspace import errors

if TYPE_CHECKING:
    from monitoring_platform.sources.workspace.client import Workspace

Value = str | int | datetime

_STATEMENTS = "/api/2.0/sql/statements"
_FIRST_WAIT, _LONGEST_POLL, _HTTP_SECONDS = "5s", 5.0, 30


class NoSql(SourceError):
    """No statement can be run at all, whatever it reads."""


def run(workspace: Workspace, statement: str, parameters: Mapping[str, Value], seconds: float) -> pa.Table:
    """The result of a statement, which is cancelled if it takes longer or is interrupted. Raises SourceError."""
    deadline = time.monotonic() + seconds
    body = {
        "warehouse_id": workspace.sql_warehouse,
        "statement": statement,
        "parameters": [_parameter(name, value) for name, value in parameters.items()],
        "format": "ARROW_STREAM",
        "disposition": "EXTERNAL_LINKS",
        "wait_timeout": _FIRST_WAIT,
        "on_wait_timeout": "CONTINUE",
    }
    try:
        answer = workspace.call("POST", f"{_STATEMENTS}/", body=body)
    except SourceError as error:
        if error.state == "no_grant":
            raise NoSql(error.reason, f"give CAN USE on SQL warehouse {workspace.sql_warehouse}", "no_grant") from error
        if error.state == "deleted":
            raise NoSql(error.reason, f"set sql_warehouse of source {workspace.name} to one that exists") from error
        raise
    statement_id = answer["statement_id"]
    try:
        answer = _finished(workspace, statement_id, answer, deadline)
        return _result(workspace, statement_id, answer)
    except SourceError as error:
        if error.state == "deleted":  # the statement, which is kept for a while only
            raise SourceError(error.reason, "it is tried again by itself", transient=True) from error
        raise


def _finished(workspace: Workspace, statement_id: str, answer: dict[str, Any], deadline: float) -> dict[str, Any]:
    wait = 0.5
    try:
        while (state := answer["status"]["state"]) in ("PENDING", "RUNNING"):
            if time.monotonic() >= deadline:
                raise SourceError(
                    f"the SQL warehouse {workspace.sql_warehouse} did not finish in time ({state})",
                    "check that the warehouse starts and is not overloaded; it is tried again by itself",
                    transient=True,
                )
            if INTERRUPTED.wait(min(wait, max(0.0, deadline - time.monotonic()))):
                raise SourceError("interrupted", "it is read by the next run", transient=True)
            wait = min(wait * 2, _LONGEST_POLL)
            answer = workspace.get(f"{_STATEMENTS}/{statement_id}")
    except BaseException:
        _cancel(workspace, statement_id)
        raise
    if state != "SUCCEEDED":
        error = answer["status"].get("error") or {}
        raise errors.of_statement(workspace, state, error.get("error_code"), error.get("message"))
    return answer


def _result(workspace: Workspace, statement_id: str, answer: dict[str, Any]) -> pa.Table:
    manifest = answer.get("manifest") or {}
    if manifest.get("truncated"):
        raise SourceError("the result is larger than a SQL warehouse delivers", "report this: results are limited")
    names = [column["name"] for column in (manifest.get("schema") or {}).get("columns") or ()]
    chunks, part, seen = [], answer.get("result") or {}, set()
    while links := part.get("external_links"):
        following = None
        for link in links:
            index = link.get("chunk_index", 0)
            if index in seen:
                continue
            seen.add(index)
            chunks.append(_chunk(workspace, statement_id, link))
            following = link.get("next_chunk_index")
        if following is None or following in seen:
            break
        part = workspace.get(f"{_STATEMENTS}/{statement_id}/result/chunks/{following}")
    return pa.concat_tables(chunks) if chunks else pa.table({name: pa.nulls(0) for name in names})


def _chunk(workspace: Workspace, statement_id: str, link: dict[str, Any]) -> pa.Table:
    """The rows behind a presigned link, which is fetched without our credentials; a new link if it expired."""

    def fetch() -> pa.Table:
        nonlocal link
        try:
            # An `auth` that adds nothing also keeps requests from adding a password out of ~/.netrc.
            answer = requests.get(
                link["external_link"],
                headers=link.get("http_headers") or {},
                auth=lambda request: request,
                timeout=_HTTP_SECONDS,
            )
            answer.raise_for_status()
            return ipc.open_stream(answer.content).read_all()
        except (requests.RequestException, pa.ArrowInvalid):
            index = link.get("chunk_index", 0)
            path = f"{_STATEMENTS}/{statement_id}/result/chunks/{index}"
            link = next(new for new in workspace.get(path)["external_links"] if new.get("chunk_index", 0) == index)
            raise

    return workspace.attempt(fetch)


def _cancel(workspace: Workspace, statement_id: str) -> None:
    try:
        workspace.call("POST", f"{_STATEMENTS}/{statement_id}/cancel")
    except SourceError:  # what led here matters more; an idle statement is ended by the warehouse
        return


def _parameter(name: str, value: Value) -> dict[str, str]:
    if isinstance(value, datetime):
        return {"name": name, "type": "TIMESTAMP", "value": value.astimezone(timezone.utc).isoformat()}
    kind = "STRING" if isinstance(value, str) else "INT" if abs(value) < 2**31 else "BIGINT"  # a LIMIT takes an INT
    return {"name": name, "type": kind, "value": str(value)}
