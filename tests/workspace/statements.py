"""The Statement Execution service: waiting, polling, cancelling, results in chunks behind links that expire."""

from __future__ import annotations

import csv
import io
import re
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import orjson
import pyarrow as pa

from tests.workspace import sql
from tests.workspace.model import Principal, Warehouse
from tests.workspace.refusal import Refusal, SqlError, invalid
from tests.workspace.server import Answer, Request, as_json
from tests.workspace.shapes import Json

if TYPE_CHECKING:
    from tests.workspace.world import Workspace

INLINE_BYTES = 25 * 1024 * 1024
_FIELDS = {
    "statement",
    "warehouse_id",
    "byte_limit",
    "catalog",
    "disposition",
    "format",
    "on_wait_timeout",
    "parameters",
    "row_limit",
    "schema",
    "wait_timeout",
    "query_tags",
}


@dataclass
class Statement:
    """A statement that was accepted. Its result is known at once but not told before its time is over."""

    id: str
    who: Principal
    warehouse: Warehouse
    format: str
    disposition: str
    started: float
    result: pa.Table | None = None
    error: SqlError | None = None
    truncated: bool = False
    is_cancelled: bool = False

    @property
    def state(self) -> str:
        if self.is_cancelled:
            return "CANCELED"
        passed = time.monotonic() - self.started
        if passed < self.warehouse.seconds:
            return "PENDING" if passed < self.warehouse.seconds / 3 else "RUNNING"
        return "FAILED" if self.error else "SUCCEEDED"

    @property
    def chunks(self) -> list[pa.Table]:
        """The result in parts."""
        assert self.result is not None
        step = self.warehouse.chunk_rows
        return [self.result.slice(start, step) for start in range(0, self.result.num_rows, step)]


def usable_warehouse(workspace: Workspace, who: Principal, warehouse_id: str) -> Warehouse:
    """The warehouse, if it is there and the principal may use it."""
    warehouse = workspace.warehouses.get(warehouse_id)
    if warehouse is None:
        raise Refusal(404, "RESOURCE_DOES_NOT_EXIST", f"SQL warehouse {warehouse_id} does not exist.")
    if not who.is_admin and who.name not in warehouse.users:
        message = f"You do not have permission to use the SQL Warehouse {warehouse_id}."
        raise Refusal(403, "PERMISSION_DENIED", message)
    if warehouse.state == "DELETED":
        raise Refusal(404, "RESOURCE_DOES_NOT_EXIST", f"SQL warehouse {warehouse_id} was deleted.")
    return warehouse


def execute(workspace: Workspace, request: Request) -> Answer:
    body = request.call.body
    if not isinstance(body, dict) or not body.get("statement"):
        raise invalid("statement is required")
    if unknown := sorted(set(body) - _FIELDS):
        raise invalid(f"Unknown fields: {', '.join(unknown)}")
    if len(body["statement"].encode()) > 16 * 1024 * 1024:
        raise invalid("The query text is larger than 16 MiB")
    warehouse = usable_warehouse(workspace, request.who, str(body.get("warehouse_id")))
    format, disposition = body.get("format", "JSON_ARRAY"), body.get("disposition", "INLINE")
    if format not in ("JSON_ARRAY", "ARROW_STREAM", "CSV") or disposition not in ("INLINE", "EXTERNAL_LINKS"):
        raise invalid(f"Unknown format {format} or disposition {disposition}")
    if disposition == "INLINE" and format != "JSON_ARRAY":
        raise invalid(f"The format {format} is supported only with EXTERNAL_LINKS disposition.")
    wait, on_timeout = _wait(body), body.get("on_wait_timeout", "CONTINUE")
    if on_timeout not in ("CONTINUE", "CANCEL"):
        raise invalid(f"Unknown on_wait_timeout {on_timeout}")
    warehouse.statements.append(body["statement"])
    warehouse.state = "RUNNING"  # it starts by itself
    made = Statement(str(uuid4()), request.who, warehouse, format, disposition, time.monotonic())
    try:
        result = sql.run(
            workspace,
            request.who,
            body["statement"],
            body.get("parameters") or [],
            body.get("catalog"),
            body.get("schema"),
        )
        limit = body.get("row_limit")
        made.truncated = limit is not None and result.num_rows > int(limit)
        result = result.slice(0, int(limit)) if limit is not None else result
        made.result = sql.as_sent(result, warehouse.complex_types)
        if disposition == "INLINE" and made.result.nbytes > INLINE_BYTES:
            message = (
                f"Inline byte limit exceeded. Results with disposition=INLINE can be at most {INLINE_BYTES} bytes."
            )
            made.error = SqlError(message)
    except SqlError as error:
        made.error = error
    with workspace.lock:
        workspace.statements[made.id] = made
    time.sleep(min(wait, warehouse.seconds))
    if wait and made.state in ("PENDING", "RUNNING") and on_timeout == "CANCEL":
        made.is_cancelled = True
    return as_json(_described(workspace, made, is_new=wait == 0))


def _wait(body: Json) -> float:
    text = body.get("wait_timeout", "10s")
    found = re.fullmatch(r"(\d+)s", str(text))
    if not found or not (int(found[1]) == 0 or 5 <= int(found[1]) <= 50):
        raise invalid("wait_timeout must be 0s, which disables the wait, or between 5s and 50s")
    return float(found[1])


def _described(workspace: Workspace, made: Statement, is_new: bool = False) -> Json:
    state = "PENDING" if is_new else made.state
    answer: Json = {"statement_id": made.id, "status": {"state": state}}
    if state == "FAILED" and made.error:
        answer["status"]["error"] = {"error_code": made.error.code, "message": made.error.message}
    if state == "SUCCEEDED":
        answer["manifest"] = _manifest(made)
        answer["result"] = _chunk(workspace, made, 0) if made.chunks else {}
    return answer


def _manifest(made: Statement) -> Json:
    assert made.result is not None
    rows, chunks = 0, []
    for number, part in enumerate(made.chunks):
        chunks.append(
            {"chunk_index": number, "row_offset": rows, "row_count": part.num_rows, "byte_count": part.nbytes}
        )
        rows += part.num_rows
    columns = [
        {"name": field.name, "position": place, **sql.described_type(field)}
        for place, field in enumerate(made.result.schema)
    ]
    return {
        "format": made.format,
        "schema": {"column_count": len(columns), "columns": columns},
        "total_chunk_count": len(chunks),
        "chunks": chunks,
        "total_row_count": rows,
        "total_byte_count": sum(part["byte_count"] for part in chunks),
        "truncated": made.truncated,
    }


def _chunk(workspace: Workspace, made: Statement, number: int) -> Json:
    parts = made.chunks
    if not 0 <= number < len(parts):
        raise invalid(f"The chunk index {number} is out of range")
    part = parts[number]
    about: Json = {
        "chunk_index": number,
        "row_offset": number * made.warehouse.chunk_rows,
        "row_count": part.num_rows,
        "byte_count": part.nbytes,
    }
    if number + 1 < len(parts):
        about["next_chunk_index"] = number + 1
        about["next_chunk_internal_link"] = f"/api/2.0/sql/statements/{made.id}/result/chunks/{number + 1}"
    if made.disposition == "INLINE":
        return {**about, "data_array": sql.as_texts(part)}
    expires = time.time() + made.warehouse.link_seconds
    until = datetime.now(timezone.utc) + timedelta(seconds=made.warehouse.link_seconds)
    signature = uuid4().hex
    workspace.links[signature] = expires
    link = f"{workspace.host}/external/{made.id}/{number}?X-Amz-Signature={signature}"
    return {"external_links": [{**about, "external_link": link, "expiration": until.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}]}


def _statement(workspace: Workspace, request: Request) -> Statement:
    assert request.match is not None
    made = workspace.statements.get(request.match["id"])
    if made is None or made.who.name != request.who.name:
        raise Refusal(404, "NOT_FOUND", f"The statement {request.match['id']} was not found.")
    return made


def poll(workspace: Workspace, request: Request) -> Answer:
    return as_json(_described(workspace, _statement(workspace, request)))


def cancel(workspace: Workspace, request: Request) -> Answer:
    made = _statement(workspace, request)
    if made.state in ("PENDING", "RUNNING"):
        made.is_cancelled = True
    return Answer(200, b"{}")


def chunk(workspace: Workspace, request: Request) -> Answer:
    made = _statement(workspace, request)
    if made.state != "SUCCEEDED":
        raise invalid(f"The statement is in state {made.state}, it has no result")
    assert request.match is not None
    return as_json(_chunk(workspace, made, int(request.match["chunk"])))


def external(workspace: Workspace, request: Request) -> Answer:
    """A chunk in cloud storage: the signature in the address is the only credential it takes."""
    assert request.match is not None
    if "Authorization" in request.headers:
        return _storage_error(400, "InvalidArgument", "Only one auth mechanism allowed; found Authorization header")
    expires = workspace.links.get(request.one("X-Amz-Signature") or "")
    if expires is None:
        return _storage_error(403, "SignatureDoesNotMatch", "The request signature does not match")
    if expires < time.time():
        return _storage_error(403, "AccessDenied", "Request has expired")
    made = workspace.statements[request.match["id"]]
    part = made.chunks[int(request.match["chunk"])]
    if made.format == "ARROW_STREAM":
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, part.schema) as writer:
            writer.write_table(part)
        return Answer(200, sink.getvalue().to_pybytes(), "binary/octet-stream")
    texts = sql.as_texts(part)
    if made.format == "JSON_ARRAY":
        return Answer(200, orjson.dumps(texts), "binary/octet-stream")
    out = io.StringIO()
    rows: list[list[Any]] = [part.column_names] if request.match["chunk"] == "0" else []
    csv.writer(out).writerows(rows + [["null" if value is None else value for value in row] for row in texts])
    return Answer(200, out.getvalue().encode(), "binary/octet-stream")


def _storage_error(status: int, code: str, message: str) -> Answer:
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Answer(status, body.encode(), "application/xml")
