"""What the roles of k3s bring along, without a node."""

from __future__ import annotations

import importlib.util
import socket
import struct
from threading import Thread

import pytest

from fog.folders import checkout

PROGRAM = checkout() / "roles/k3s_server/files/ask_dns.py"
POINTER = b"\xc0\x0c"  # to the name in the question
ALIAS = POINTER + struct.pack(">HHIH", 5, 1, 5, 6) + b"\x03api" + POINTER
RECORD = POINTER + struct.pack(">HHIH", 1, 1, 5, 4)


@pytest.mark.parametrize(
    ("records", "addresses"),
    [
        pytest.param([RECORD + bytes([10, 43, 0, 1])], ["10.43.0.1"], id="one address"),
        pytest.param([], [], id="an unknown name"),
        pytest.param(
            [ALIAS, b"\x03api" + RECORD + bytes([10, 0, 0, 1]), RECORD + bytes([10, 0, 0, 2])],
            ["10.0.0.1", "10.0.0.2"],
            id="an alias and two addresses",
        ),
    ],
)
def test_a_name_is_looked_up_without_a_program_of_the_system(
    records: list[bytes], addresses: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("ask_dns", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    monkeypatch.setattr(program, "PATIENCE_S", 0.5)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(20)

        def answer() -> None:
            server.recvfrom(512)  # lost: it has to ask again
            asked, client = server.recvfrom(512)
            assert b"\x0akubernetes\x07default\x00" in asked
            head = asked[:2] + struct.pack(">5H", 0x8180, 1, len(records), 0, 0)
            server.sendto(head + asked[12:] + b"".join(records), client)

        thread = Thread(target=answer)
        thread.start()
        found = program.ask("127.0.0.1", "kubernetes.default.", server.getsockname()[1])
        thread.join()
    assert found == addresses
