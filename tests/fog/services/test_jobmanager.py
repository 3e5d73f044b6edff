"""The doors of a JobManager, against real TLS servers on loopback: one asks for certificates, others
are careless."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fog.services.jobmanager import JobManager, open_doors, wait
from fog.services.pki import Certificate, ensure
from fogscale.errors import FogscaleError

CERTIFICATES = [
    Certificate("rest", "rest", hosts=("127.0.0.1",), is_client=False),
    Certificate("controller", "fogscale-controller"),
]
Serve = Callable[[ssl.VerifyMode | None], JobManager]


class _Flink(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"taskmanagers": [{"id": "services1"}, {"id": "fog1"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Handshakes fail here on purpose."""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """A server that asks for certificates as told, or speaks no TLS at all."""
    ensure(tmp_path, CERTIFICATES, tokens=False)
    servers = []

    def start(verify: ssl.VerifyMode | None) -> JobManager:
        server = _Quiet(("127.0.0.1", 0), _Flink)
        if verify is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.load_cert_chain(tmp_path / "rest.crt", tmp_path / "rest.key")
            context.load_verify_locations(tmp_path / "ca.crt")
            context.verify_mode = verify
            server.socket = context.wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        ca, certificate, key = (tmp_path / name for name in ("ca.crt", "controller.crt", "controller.key"))
        return JobManager("127.0.0.1", server.server_address[1], ca, certificate, key)

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_controllers_certificate_opens_it_and_nothing_else_does(serve: Serve) -> None:
    jobmanager = serve(ssl.CERT_REQUIRED)
    assert wait(jobmanager, "services1", patience_s=10) == ["fog1", "services1"]
    assert open_doors(jobmanager) == []


def test_a_server_that_asks_nobody_for_a_certificate_is_told_of(serve: Serve) -> None:
    assert [line.partition(":")[0] for line in open_doors(serve(ssl.CERT_NONE))] == [
        "Flink accepts a client without a certificate",
        "Flink accepts a client with a certificate of another authority",
    ]


def test_a_server_without_tls_is_told_of(serve: Serve) -> None:
    assert "Flink accepts a client without TLS: run services.yml again" in open_doors(serve(None))


def test_a_taskmanager_that_never_comes_is_said_with_the_reason(serve: Serve) -> None:
    with pytest.raises(FogscaleError, match="no TaskManager on fog9 after 1 s"):
        wait(serve(ssl.CERT_REQUIRED), "fog9", patience_s=1)
