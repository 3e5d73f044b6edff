"""Joins standard input and output to a TCP connection: ssh's ProxyCommand inside the fog's network."""

from __future__ import annotations

import os
import select
import socket
import sys


def relay(connection: socket.socket) -> None:
    """Ends when the other side does, or when nobody reads any more."""
    source: int | None = 0
    while True:
        watched = [connection.fileno()] if source is None else [connection.fileno(), source]
        readable, _, _ = select.select(watched, [], [])
        if connection.fileno() in readable:
            data = connection.recv(1 << 16)
            if not data:
                return
            _write(1, data)
        if source is not None and source in readable:
            data = os.read(source, 1 << 16)
            if data:
                connection.sendall(data)
            else:
                connection.shutdown(socket.SHUT_WR)
                source = None


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as joined:
        joined.settimeout(None)
        relay(joined)
