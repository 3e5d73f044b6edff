"""A testbed with fog_tls: what Flink's parts say to each other opens to their own certificate only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.flink import scale, taskmanagers
from tests.support.fog import Fog, changes_in

pytestmark = pytest.mark.testbed

SITE = ("site.yml", "-e", "fog_nodes=1", "-e", "fog_tls=true")
# What a stranger on the JobManager's own node gets: the name of the certificate, and then no word.
KNOCK = """python3 -c '
import socket, ssl, sys
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
try:
    with context.wrap_socket(socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)) as door:
        door.sendall(b"hello")
        print("let in" if door.recv(1) else "turned away")
except (ssl.SSLError, ConnectionError) as error:
    print("turned away")
' {address} {port}"""


@pytest.fixture(scope="module")
def secured(can_emulate: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fog]:
    folder = Path("/tmp") / tmp_path_factory.mktemp("tls").parent.name / "tls"
    fog = Fog(folder)
    try:
        done = fog.playbook(*SITE)
        assert done.returncode == 0, done.stdout[-3000:]
        yield fog
    finally:
        fog.fogscale("down", check=False)
        shutil.rmtree(folder, ignore_errors=True)


def test_taskmanagers_come_and_go_and_a_second_run_changes_nothing(secured: Fog) -> None:
    scale(secured, "fog1", 1)
    assert taskmanagers(secured) == {"fog1", "services1"}
    scale(secured, "fog1", 0)
    again = secured.playbook(*SITE)
    assert (again.returncode, changes_in(again.stdout)) == (0, {})


@pytest.mark.parametrize("port", [6123, 6124])
def test_a_stranger_without_their_certificate_is_turned_away(secured: Fog, port: int) -> None:
    told = secured.kubectl(
        "get", "pods", "--namespace=fogscale", "--selector=component=jobmanager",
        "--output=jsonpath={.items[0].status.podIP}",
    ).stdout  # fmt: skip
    assert secured.ask("server1", KNOCK.format(address=told, port=port)).strip() == "turned away"
