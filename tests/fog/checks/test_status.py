"""What a status says of nodes that speak SSH: well, in part, or not any more."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import paramiko
import pytest

from fog.checks.status import status
from fog.manifest import Manifest, ManifestNode

PING = """PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.
64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=5.02 ms
"""
GOOD = f"6.1.0\nDebian 12\n1048576\nrunning\n-- round trips --\n{PING}"


@dataclass
class Sshd(paramiko.ServerInterface):
    """Lets everyone in, answers every command in the same way; with no answer it is silent for ever."""

    answer: str | None

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        if self.answer is not None:
            threading.Thread(target=self._send, args=(channel, self.answer.encode())).start()
        return True

    @staticmethod
    def _send(channel: paramiko.Channel, answer: bytes) -> None:
        channel.recv(1)  # as long as the client has not heard that its request was granted, nothing may end
        channel.sendall(answer)
        channel.send_exit_status(0)
        channel.close()


@contextmanager
def serving(answer: str | None, key: paramiko.PKey) -> Iterator[int]:
    """The port on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def work() -> None:
            client, _ = server.accept()
            transport = paramiko.Transport(client)
            transport.add_server_key(key)
            transport.start_server(server=Sshd(answer))
            transports.append(transport)

        transports: list[paramiko.Transport] = []
        thread = threading.Thread(target=work)
        thread.start()
        yield server.getsockname()[1]
        thread.join()
        for transport in transports:
            transport.close()


@pytest.fixture
def manifest_of(tmp_path: Path) -> Iterator[Callable[[dict[str, str | None]], Manifest]]:
    """Of nodes a, b, ... that answer as said."""
    key = paramiko.RSAKey.generate(2048)
    key.write_private_key_file(str(tmp_path / "key"))
    known = tmp_path / "known_hosts"
    with ExitStack() as stack:

        def build(answers: dict[str, str | None]) -> Manifest:
            nodes = []
            for name, answer in answers.items():
                port = stack.enter_context(serving(answer, key))
                with known.open("a") as file:
                    file.write(f"[127.0.0.1]:{port} {key.get_name()} {key.get_base64()}\n")
                nodes.append(
                    ManifestNode(
                        name, "fog", "127.0.0.1", "root", str(tmp_path / "key"), str(known), port=port
                    )
                )
            rows = {a: [0 if a == b else 5 for b in answers] for a in answers}
            return Manifest("pi", False, "netem", tuple(nodes), {"nodes": list(answers), **rows}, 300.0)

        yield build


def test_a_node_that_hangs_after_login_does_not_hide_the_others(
    tmp_path: Path, manifest_of: Callable[[dict[str, str | None]], Manifest]
) -> None:
    manifest = manifest_of({"a": GOOD, "b": None, "c": GOOD})
    found = status(manifest, tmp_path, patience_s=5)
    a, b, c = found.nodes
    assert (a.problem, a.kernel, a.system, a.memory_mb, a.state) == (
        None,
        "6.1.0",
        "Debian 12",
        1024,
        "running",
    )
    assert (c.problem, c.memory_mb) == (None, 1024)
    assert b.problem is not None
    assert b.problem.startswith("it let us in, then fell silent (")
    assert [(pair.source, pair.target, pair.measured_ms) for pair in found.round_trips] == [
        ("a", "b", 5.02), ("a", "c", 5.02), ("b", "c", None),
    ]  # fmt: skip
    assert not found.healthy


def test_a_node_that_tells_half_of_what_it_is_asked_is_named(
    tmp_path: Path, manifest_of: Callable[[dict[str, str | None]], Manifest]
) -> None:
    found = status(manifest_of({"a": "6.1.0\n", "b": GOOD}), tmp_path, patience_s=5)
    assert [node.problem for node in found.nodes] == [
        "it tells of itself only '6.1.0': log in and see what it lacks", None,
    ]  # fmt: skip
    assert found.versions["nodes"] == "Debian 12, Linux 6.1.0"
