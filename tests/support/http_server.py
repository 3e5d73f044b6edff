"""A small HTTP server that answers as a test tells it to, for clients of Flink, Prometheus and Kubernetes."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    body: Any
    headers: dict[str, str]


Answer = tuple[int, Any] | None
"""Status and JSON (or text as it is); None: the connection is closed without a word."""


@dataclass
class Server:
    url: str = ""
    requests: list[Request] = field(default_factory=list)

    def asked(self, method: str) -> list[str]:
        return [each.path for each in self.requests if each.method == method]


@contextmanager
def serving(answer: Callable[[Request], Answer]) -> Iterator[Server]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def _handle(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                body = json.loads(raw) if raw else None
            except ValueError:
                body = raw
            request = Request(self.command, self.path, body, dict(self.headers))
            server.requests.append(request)
            found = answer(request)
            if found is None:
                self.close_connection = True
                return
            status, content = found
            data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if data.startswith(b"<"):
                self.send_header("Content-Type", "application/xml")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            """Tests print what they need."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
