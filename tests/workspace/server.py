"""HTTP: who is calling, whether the service has that call, what goes wrong on the way, and a record of every call."""

from __future__ import annotations

import re
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from tests.workspace.model import Principal
from tests.workspace.refusal import Refusal

if TYPE_CHECKING:
    from tests.workspace.world import Workspace

Query = dict[str, list[str]]


@dataclass
class Call:
    """One request as it arrived and what became of it. `fault` names what was made to go wrong."""

    method: str
    path: str
    query: Query
    principal: str | None
    body: Any = None
    status: int = 0
    fault: str | None = None
    at: float = field(default_factory=time.monotonic)


@dataclass
class Request:
    """A call that is about to be answered."""

    call: Call
    headers: dict[str, str]
    raw: bytes
    match: re.Match[str] | None = None

    @property
    def who(self) -> Principal:
        assert self.principal is not None
        return self.principal

    principal: Principal | None = None

    def one(self, name: str) -> str | None:
        """A query parameter that comes once."""
        found = self.call.query.get(name)
        return found[-1] if found else None

    def number(self, name: str, default: int) -> int:
        """A query parameter that is a whole number."""
        text = self.one(name)
        if text is None:
            return default
        if not re.fullmatch(r"-?\d+", text):
            raise Refusal(400, "MALFORMED_REQUEST", f"Could not parse request: {name} must be a number")
        return int(text)

    def flag(self, name: str) -> bool:
        """A query parameter that is true or false."""
        text = self.one(name)
        if text not in (None, "true", "false"):
            raise Refusal(400, "MALFORMED_REQUEST", f"Could not parse request: {name} must be true or false")
        return text == "true"


@dataclass
class Answer:
    """What goes back."""

    status: int
    body: bytes
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


def as_json(value: Any, status: int = 200) -> Answer:
    return Answer(status, orjson.dumps(value))


KINDS = ("429", "500", "503", "reset", "half", "html", "401")


class Faults:
    """What goes wrong, and when. Nothing does by default."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._every, self._count, self._only = 0, 0, ""
        self._kinds = cycle(KINDS)
        self.retry_after = 0
        self.seconds, self.slow = 0.0, ""  # every call whose path matches the expression takes this long
        self._limit: tuple[int, float, int] | None = None
        self._recent: deque[float] = deque()
        self.made: list[str] = []

    def every(self, n: int, kinds: tuple[str, ...] = KINDS, only: str = "") -> None:
        """Every n-th call (whose path matches the expression) goes wrong, each time in the next way. 0: none does.

        Beside those of KINDS there is `echo`: an error that repeats the request with its credentials.
        """
        self._every, self._count, self._only, self._kinds = n, 0, only, cycle(kinds)

    def limit(self, calls: int, seconds: float, retry_after: int = 1) -> None:
        """More than so many calls in so many seconds are refused with 429 and `Retry-After`."""
        self._limit = (calls, seconds, retry_after)

    def unlimited(self) -> None:
        """No limit any more."""
        self._limit = None

    def over_limit(self) -> int | None:
        """Seconds after which to come again, if this call is one too many."""
        if self._limit is None:
            return None
        calls, seconds, retry_after = self._limit
        now = time.monotonic()
        with self._lock:
            while self._recent and self._recent[0] <= now - seconds:
                self._recent.popleft()
            if len(self._recent) >= calls:
                return retry_after
            self._recent.append(now)
        return None

    def next(self, path: str) -> str | None:
        """The fault of this call."""
        if not self._every or not re.search(self._only, path):
            return None
        with self._lock:
            self._count += 1
            if self._count % self._every:
                return None
            kind = next(self._kinds)
            self.made.append(kind)
            return kind


Endpoint = Callable[["Workspace", Request], Answer]


@dataclass(frozen=True)
class Route:
    """A call that the service has. Paths are anchored expressions."""

    method: str
    path: re.Pattern[str]
    answer: Endpoint
    is_public: bool = False  # neither credentials nor limits


def serve(workspace: Workspace, routes: list[Route]) -> ThreadingHTTPServer:
    """A running server on a free port of this machine."""
    handler = type("Handler", (_Handler,), {"workspace": workspace, "routes": routes})
    server = _Server(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    workspace: Workspace
    routes: list[Route]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120

    def log_message(self, format: str, *args: Any) -> None:
        """Calls are recorded, not printed."""

    def _handle(self) -> None:
        workspace, parts = self.workspace, urlsplit(self.path)
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        call = Call(self.command, unquote(parts.path), parse_qs(parts.query, keep_blank_values=True), None)
        request = Request(call, dict(self.headers), raw)
        with workspace.lock:
            workspace.calls.append(call)
        if workspace.faults.seconds and re.search(workspace.faults.slow, call.path):
            time.sleep(workspace.faults.seconds)
        call.fault = workspace.faults.next(call.path)
        answer = self._answer(request)
        self._send(call, answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _handle

    def _answer(self, request: Request) -> Answer:
        call = request.call
        try:
            route = self._route(request)
            if not route.is_public:
                if call.fault and call.fault.isdigit():
                    raise refused_with(int(call.fault), self.workspace.faults.retry_after)
                wait = self.workspace.faults.over_limit()
                if wait is not None:
                    raise refused_with(429, wait)
                request.principal = self.workspace.authenticate(request.headers)
                call.principal = request.principal.name
            if request.raw and "json" in (request.headers.get("Content-Type") or ""):
                try:
                    call.body = orjson.loads(request.raw)
                except orjson.JSONDecodeError:
                    raise Refusal(400, "MALFORMED_REQUEST", "Could not parse request object") from None
            return route.answer(self.workspace, request)
        except Refusal as refusal:
            body = {"error_code": refusal.code, "message": refusal.message}
            return Answer(refusal.status, orjson.dumps(body), headers=refusal.headers)
        except Exception as error:  # a bug of the stand-in must not look like a fault of the service
            self.workspace.bugs.append(error)
            raise

    def _route(self, request: Request) -> Route:
        call = request.call
        for route in self.routes:
            found = route.path.fullmatch(call.path)
            if found and route.method == call.method:
                request.match = found
                return route
        self.workspace.unknown_calls.append(f"{call.method} {call.path}")
        raise Refusal(404, "ENDPOINT_NOT_FOUND", f"No API found for '{call.method} {call.path}'")

    def _send(self, call: Call, answer: Answer) -> None:
        if call.fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        if call.fault == "echo":
            message = f"Request refused: {self.command} {self.path} {self.headers.get('Authorization')}"
            answer = as_json({"error_code": "BAD_REQUEST", "message": message}, 400)
        if call.fault == "html":
            page = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Please sign in.</body></html>"
            answer = Answer(200, page, "text/html;charset=utf-8")
        call.status = answer.status
        head = [f"HTTP/1.1 {answer.status} {self.responses[answer.status][0]}", f"Content-Type: {answer.kind}"]
        head += [f"{name}: {value}" for name, value in answer.headers.items()]
        head += [f"Content-Length: {len(answer.body)}", f"Date: {self.date_time_string()}"]
        body = answer.body
        if call.fault == "half":
            body, self.close_connection = body[: len(body) // 2], True
            head.append("Connection: close")
        if call.method == "HEAD":
            body = b""
        # One write: a header alone in its packet would wait for the client's delayed acknowledgement.
        self.wfile.write("\r\n".join([*head, "", ""]).encode() + body)


def refused_with(status: int, retry_after: int) -> Refusal:
    """Trouble of the service itself."""
    again = {"Retry-After": str(retry_after)}
    if status == 429:
        message = "Current request has to be retried, the rate limit of this API was exceeded"
        return Refusal(429, "REQUEST_LIMIT_EXCEEDED", message, again)
    if status == 503:
        return Refusal(503, "TEMPORARILY_UNAVAILABLE", "The service is temporarily unavailable", again)
    if status == 401:
        return Refusal(401, "401", "Token is expired or invalid. [ReqId: 00000000-0000]")
    return Refusal(status, "INTERNAL_ERROR", "An internal error occurred.")
