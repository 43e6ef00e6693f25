"""Real receivers on this machine: a web service that can fail in every way, and a mail server."""

from __future__ import annotations

import email
import json
import socket
import threading
import time
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


class Web:
    """Takes what is posted. `answers`: what the next requests get, then 200; "hang" = nothing for longer than anyone waits."""

    def __init__(self, *answers: int | str) -> None:
        self.answers = list(answers)
        self.taken: list[dict[str, Any]] = []
        self.refused: list[dict[str, Any]] = []
        self.paths: list[str] = []

    def __enter__(self) -> Web:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                receiver.paths.append(self.path)
                answer = receiver.answers.pop(0) if receiver.answers else 200
                if answer == "hang":
                    receiver.refused.append(body)
                    time.sleep(2)
                    return
                (receiver.taken if answer == 200 else receiver.refused).append(body)
                self.send_response(int(answer))
                if answer == 429:
                    self.send_header("Retry-After", "30")
                self.end_headers()
                self.wfile.write(b"ok")

            def do_GET(self) -> None:
                receiver.paths.append(self.path)
                self.send_response(receiver.answers.pop(0) if receiver.answers else 200)  # type: ignore[arg-type]
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def titles(self) -> list[str]:
        return [body["title"] for body in self.taken]


class Mail:
    """Takes mail. `is_down`: answers each mail with a temporary failure."""

    def __init__(self) -> None:
        self.taken: list[EmailMessage] = []
        self.is_down = False

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.is_down:
            return "451 later"
        assert isinstance(envelope.content, bytes)
        self.taken.append(email.message_from_bytes(envelope.content, policy=default))  # type: ignore[arg-type]
        return "250 taken"

    def __enter__(self) -> Mail:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)
        self._controller.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._controller.stop()
