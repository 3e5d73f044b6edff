"""Asks nodes through SSH; emulated ones from within their own network."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from fog.emulation import namespaces
from fog.manifest import ManifestNode
from fogscale.errors import FogscaleError

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
            node.address, node.port, username=node.user, key_filename=node.key,
            timeout=timeout_s, auth_timeout=timeout_s, banner_timeout=timeout_s, channel_timeout=timeout_s,
            allow_agent=node.key is None, look_for_keys=node.key is None,
            sock=None if network is None else namespaces.connect(network, node.address, node.port, timeout_s),
        )  # fmt: skip
    except (paramiko.SSHException, OSError) as error:
        client.close()
        raise FogscaleError(f"node {node.name} ({node.address}) does not answer: {error}") from None
    with client:
        yield client


def ask(client: paramiko.SSHClient, command: str, timeout_s: float = 60.0) -> str:
    """What a command prints; it must succeed, and not be silent for longer than that."""
    import paramiko

    try:
        _, output, errors = client.exec_command(command, timeout=timeout_s)
        output.channel.shutdown_write()  # whatever reads its input would wait for ever
        text, complaint = (stream.read().decode(errors="replace") for stream in (output, errors))
        if not output.channel.status_event.wait(timeout_s):
            raise TimeoutError("timed out")
    except (paramiko.SSHException, OSError) as error:
        reason = str(error) or type(error).__name__
        raise FogscaleError(
            f"it let us in, then fell silent ({reason}): restart it, or give it more memory"
        ) from None
    code = output.channel.recv_exit_status()
    if code != 0:
        raise FogscaleError(f"'{command}' ended with {code}: {complaint.strip()}")
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
