#!/usr/bin/python3
"""CPU and memory of an emulated node, for Prometheus. Its kernel shows those of the whole machine in /proc,
so they are read from the node's own cgroup at the moment they are asked for. Needs nothing but Python."""

from __future__ import annotations

import argparse
import base64
import hmac
import ssl
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")


def cpu_seconds(root: Path) -> float:
    first = root / "cpuacct/cpuacct.usage"  # version 1, in ns
    if first.exists():
        return int(first.read_text()) / 1e9
    return _field(root / "cpu.stat", "usage_usec") / 1e6


def memory_used_bytes(root: Path) -> int:
    """Without what the kernel would give back at once: the working set, as a kubelet counts it."""
    if (root / "memory/memory.usage_in_bytes").exists():
        used = int((root / "memory/memory.usage_in_bytes").read_text())
        return max(0, used - _field(root / "memory/memory.stat", "total_inactive_file"))
    used = int((root / "memory.current").read_text())
    return max(0, used - _field(root / "memory.stat", "inactive_file"))


def _field(file: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in file.read_text().splitlines() if line.split()[0] == name)


def metrics(root: Path, cpus: float, memory_mb: int) -> str:
    values = {
        "fog_node_cpu_seconds_total": ("counter", "CPU time the node used", cpu_seconds(root)),
        "fog_node_cpus": ("gauge", "CPUs the node may use", cpus),
        "fog_node_memory_used_bytes": ("gauge", "Memory the node cannot do without", memory_used_bytes(root)),
        "fog_node_memory_limit_bytes": ("gauge", "Memory the node may use", memory_mb << 20),
    }
    return "".join(
        f"# HELP {name} {text}.\n# TYPE {name} {kind}\n{name} {value}\n"
        for name, (kind, text, value) in values.items()
    )


def handler(expected: str, cpus: float, memory_mb: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5

        def do_GET(self) -> None:
            if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), expected.encode()):
                self._answer(401, "Unauthorized\n")
            elif self.path != "/metrics":
                self._answer(404, "Ask for /metrics\n")
            else:
                self._answer(200, metrics(CGROUPS, cpus, memory_mb))

        def _answer(self, code: int, text: str) -> None:
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            if code == 401:
                self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """A line per scrape would fill the journal."""

    return Handler


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--user", required=True)
    parser.add_argument("--password-file", type=Path, required=True)
    parser.add_argument("--cpus", type=float, required=True)
    parser.add_argument("--memory-mb", type=int, required=True)
    parser.add_argument("--certificate", type=Path, help="with its key: TLS")
    parser.add_argument("--key", type=Path)
    given = parser.parse_args()
    login = f"{given.user}:{given.password_file.read_text().strip()}"
    expected = f"Basic {base64.b64encode(login.encode()).decode()}"
    address = (given.address, given.port)
    server = HTTPServer(address, handler(expected, given.cpus, given.memory_mb))
    if given.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(given.certificate, given.key)
        # The handshake is the handler's first read: there it has a time limit, so that nobody's silence stops
        # the server.
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main()
