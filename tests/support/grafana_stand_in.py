#!/usr/bin/python3
"""Stands in for Grafana, which the package registries do not offer: reads the settings and files that the
role gives it, as Grafana would, and answers the two questions that the role asks. It shows nothing."""

from __future__ import annotations

import base64
import json
import os
import ssl
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

LOGIN = base64.b64encode(f"admin:{os.environ['GF_SECURITY_ADMIN_PASSWORD']}".encode()).decode()
PROVISIONED = Path(os.environ["GF_PATHS_PROVISIONING"])


def dashboards() -> dict[str, object]:
    (line,) = [
        line for line in (PROVISIONED / "dashboards/fog.yml").read_text().splitlines() if " path: " in line
    ]
    folder = Path(line.split(": ")[1])
    found = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    return {each["uid"]: each for each in found}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        uid = self.path.rpartition("/")[2]
        if self.headers.get("Authorization") != f"Basic {LOGIN}":
            code = 401
        else:
            code = 200 if uid in dashboards() else 404
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    address = (os.environ["GF_SERVER_HTTP_ADDR"], int(os.environ["GF_SERVER_HTTP_PORT"]))
    server = HTTPServer(address, Handler)
    if os.environ.get("GF_SERVER_PROTOCOL") == "https":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.environ["GF_SERVER_CERT_FILE"], os.environ["GF_SERVER_CERT_KEY"])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()
