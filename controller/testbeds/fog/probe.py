"""Asks nodes through SSH; emulated ones from within their own network."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from controller.errors import FogscaleError
from controller.testbeds.fog import namespaces
from controller.testbeds.fog.manifest import ManifestNode

if TYPE_CHECKING:
    import paramiko


@contextmanager
def shell(node: ManifestNode, network: Path | None, timeout_s: float = 10.0) -> Iterator[paramiko.SSHClient]:
    """`network` is the namespace that leads to the node, None for the machine's own."""
    import paramiko

    client = paramiko.SSHClient()
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    if node.known_hosts:
        client.load_host_keys(node.known_hosts)
    else:
        client.load_system_host_keys()
    try:
        client.connect(
            node.address, username=node.user, key_filename=node.key,
            timeout=timeout_s, auth_timeout=timeout_s, banner_timeout=timeout_s,
            allow_agent=node.key is None, look_for_keys=node.key is None,
            sock=None if network is None else namespaces.connect(network, node.address, 22, timeout_s),
        )  # fmt: skip
    except (paramiko.SSHException, OSError) as error:
        client.close()
        raise FogscaleError(f"node {node.name} ({node.address}) does not answer: {error}") from None
    with client:
        yield client


def ask(client: paramiko.SSHClient, command: str, timeout_s: float = 60.0) -> str:
    """What a command prints; it must succeed."""
    _, output, errors = client.exec_command(command, timeout=timeout_s)
    text = output.read().decode(errors="replace")
    code = output.channel.recv_exit_status()
    if code != 0:
        raise FogscaleError(
            f"'{command}' ended with {code}: {errors.read().decode(errors='replace').strip()}"
        )
    return text


def listens(network: Path | None, address: str, port: int, timeout_s: float = 3.0) -> bool:
    try:
        if network is None:
            socket.create_connection((address, port), timeout_s).close()
        else:
            namespaces.connect(network, address, port, timeout_s).close()
    except OSError:
        return False
    return True
