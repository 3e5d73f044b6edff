"""Every listener of every node stands in docs/ports.md, listens where it says, and refuses
clients without credentials."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pytest

from fog.folders import checkout
from tests.support.fog import Fog

pytestmark = pytest.mark.testbed

GROUPS = {"all": {"server", "services", "fog"}, "server": {"server"}, "services": {"services"}}
ROW = re.compile(
    r"^\| (\d+) \| (\S+) \| (all|server|services) \| ([a-z, ]+) \| (.+?) \| (.+?) \|$", re.MULTILINE
)
LISTENER = re.compile(
    r"^(?:tcp|udp)\s+\S+\s+\S+\s+\S+\s+(\S+):(\d+)\s+\S+(?:\s+users:\(\(\"([^\"]+)\")?", re.MULTILINE
)
LEAST_ROWS = 20


@dataclass(frozen=True)
class Door:
    port: int
    groups: frozenset[str]
    at: frozenset[str]
    tried: str


@dataclass(frozen=True)
class Listener:
    node: str
    group: str
    at: str  # node, loopback or any
    port: int
    program: str


def doors() -> dict[int, Door]:
    text = (checkout() / "docs/ports.md").read_text()
    found = {
        int(port): Door(int(port), frozenset(GROUPS[on]), frozenset(at.split(", ")), tried)
        for port, _, on, at, _, tried in ROW.findall(text)
    }
    assert len(found) >= LEAST_ROWS
    return found


def where(address: str) -> str:
    plain = address.strip("[]").split("%")[0]
    if plain in ("*", "0.0.0.0", "::"):
        return "any"
    parsed = ip_address(plain)
    mapped = getattr(parsed, "ipv4_mapped", None) or parsed
    return "loopback" if mapped.is_loopback else "node"


@pytest.fixture(scope="module")
def listeners(fog: Fog) -> list[Listener]:
    found = []
    for node in fog.manifest.nodes:
        for address, port, program in LISTENER.findall(fog.ask(node.name, "ss -Hltnup")):
            found.append(Listener(node.name, node.group, where(address), int(port), program))
    return found


def test_no_node_has_a_listener_that_the_table_does_not_know(listeners: list[Listener]) -> None:
    known = doors()
    unknown = [
        each
        for each in listeners
        if not (each.program == "containerd" and each.at == "loopback")
        and (
            each.port not in known
            or each.group not in known[each.port].groups
            or each.at not in known[each.port].at
        )
    ]
    assert unknown == []
    assert {"sshd", "minio", "prometheus", "java", "coredns"} <= {each.program for each in listeners}


def test_a_request_without_a_password_or_certificate_is_refused(fog: Fog, listeners: list[Listener]) -> None:
    """Wherever the table names the answer of a web server; asked from this machine's end of the network."""
    wanted = {
        port: match.group(1)
        for port, door in doors().items()
        if (match := re.search(r": (40[13])$", door.tried))
    } | {9000: "403"}
    tried = []
    for each in listeners:
        if each.at == "node" and each.port in wanted:
            tried.append(each.port)
            scheme = "https" if each.port in (6443, 10250) else "http"
            url = f"{scheme}://{fog.manifest.addresses[each.node]}:{each.port}/metrics"
            if each.port == 9000:
                url = f"http://{fog.manifest.addresses[each.node]}:9000/fogscale/"
            options = ["--silent", "--insecure", "--max-time", "20", "--output", "/dev/null"]
            done = fog.enter("curl", *options, "--write-out", "%{http_code}", url)
            assert (url, done.stdout) == (url, wanted[each.port])
    assert {6443, 9000, 9090, 9100, 9101, 9404, 10250} <= set(tried)


def test_what_listens_on_loopback_is_not_reached_from_another_node(
    fog: Fog, listeners: list[Listener]
) -> None:
    addresses = fog.manifest.addresses
    for each in listeners:
        on_node = {other.port for other in listeners if other.node == each.node and other.at != "loopback"}
        if each.at == "loopback" and each.port not in on_node:
            done = fog.enter(
                "curl", "--silent", "--max-time", "5", f"http://{addresses[each.node]}:{each.port}/"
            )
            assert (each, done.returncode) == (each, 7)  # refused: nobody listens there


def test_ssh_lets_nobody_in_without_the_key(fog: Fog, tmp_path: Path) -> None:
    for address in fog.manifest.addresses.values():
        done = fog.enter(
            "ssh", "-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
            "-o", f"UserKnownHostsFile={tmp_path / 'hosts'}", "-o", "IdentitiesOnly=yes",
            "-o", "IdentityFile=/nowhere", f"root@{address}", "true",
        )  # fmt: skip
        assert done.returncode == 255
        assert "Permission denied (publickey)" in done.stderr


VERIFY = ("playbooks/verify.yml", "-e", "fog_nodes=1", "--tags", "doors")


def test_verify_finds_a_port_that_was_opened(fog: Fog) -> None:
    """An exporter without a password in place of fog1's own, and a server whose kernel lets everybody read
    Flink's metrics; once both are set right, nothing is found."""
    address = fog.manifest.addresses["fog1"]
    open_server = f"systemd-run --quiet --unit=open python3 -m http.server 9100 --bind {address}"
    fog.ask("fog1", f"systemctl stop prometheus-node-exporter; {open_server}")
    fog.ask("server1", "iptables -w 10 -t raw -D PREROUTING -j FOGSCALE-DOORS")
    try:
        opened = fog.playbook(*VERIFY)
    finally:
        fog.ask("fog1", "systemctl stop open; systemctl start prometheus-node-exporter")
        fog.ask("server1", "systemctl restart pod-doors")
    assert opened.returncode == 2
    told = " ".join(opened.stdout.split())
    for place in (f"{address}:9100/metrics", f"{fog.manifest.addresses['server1']}:9249/"):
        assert re.search(
            rf"accepts a client without credentials at http://{re.escape(place)} \(\d+\)", told
        ), told
    assert "node exporter accepts a client with a wrong password" in told
    closed = fog.playbook(*VERIFY)
    assert closed.returncode == 0, closed.stdout[-3000:]
