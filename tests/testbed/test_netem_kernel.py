"""The generated `tc` commands, as the role's unit gives them, under a real kernel that has netem, in
namespaces joined by a bridge."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from controller.network import RttMatrix
from fog.folders import checkout
from fog.network.matrix import rtt_matrix
from fog.network.netem import delays, peers_of, structure
from fog.network.ping import compared, ping_script
from tests.support.qemu import QemuMissingError, run_script

pytestmark = pytest.mark.qemu

UNIT = checkout() / "roles/fog_network/templates/etc/systemd/system/fog-network.service.j2"
NODES = ("server1", "fog1", "fog2", "fog3")
ADDRESSES = {name: f"10.9.0.{number}" for number, name in enumerate(NODES, start=1)}
POD_OF_FOG1 = "10.42.1.7"  # behind fog1, routed and not tunnelled
BEFORE = rtt_matrix(
    {"nodes": NODES, "server1": [0, 5, 50, 300], "fog1": [5, 0, 120, 40], "fog2": [50, 120, 0, 0],
     "fog3": [300, 40, 0, 0]}, NODES,
)  # fmt: skip
AFTER = rtt_matrix(
    {"nodes": NODES, "server1": [0, 80, 50, 20], "fog1": [80, 0, 10, 40], "fog2": [50, 10, 0, 200],
     "fog3": [20, 40, 200, 0]}, NODES,
)  # fmt: skip


def files_of(node: str) -> dict[str, str]:
    networks = {name: [address] for name, address in ADDRESSES.items()}
    networks["fog1"].append("10.42.1.0/24")
    before, after = (peers_of(node, rtt_ms, networks) for rtt_ms in (BEFORE, AFTER))
    batches = {
        "structure.tc": structure("eth0", before),
        "delays.tc": delays("eth0", before),
        "after.tc": delays("eth0", after),
    }
    return {f"{node}/{name}": "\n".join(lines) + "\n" for name, lines in batches.items()}


def of_the_unit(node: str, *kinds: str) -> list[str]:
    """What systemd would run on a node to start, reload or stop the unit."""
    found = []
    for kind in kinds:
        for command in re.findall(rf"^{kind}=(.*)$", UNIT.read_text(), re.MULTILINE):
            words = command.replace("{{ fog_network_interface | interface_name }}", "eth0")
            words = words.replace("/sbin/tc", "tc")
            words = words.replace("/etc/fogscale/network/", f"/{node}/")
            may_fail = " 2> /dev/null || true" if words.startswith("-") else ""
            found.append(f"ip netns exec {node} {words.removeprefix('-')}{may_fail}")
    assert found
    return found


def pings(when: str) -> list[str]:
    """One after the other: an emulated processor is busy with a few already."""
    lines = []
    for node in NODES:
        others = [address for name, address in ADDRESSES.items() if name != node]
        others += [POD_OF_FOG1] if node == "server1" else []
        lines.append(f"echo '{when} {node}'")
        lines += [f"ip netns exec {node} sh -c '{ping_script([other], count=5)}'" for other in others]
    return lines


def script() -> str:
    lines = ["ip link add fabric type bridge", "ip link set fabric up"]
    for node in NODES:
        lines += [
            f"ip netns add {node}",
            f"ip link add p-{node} type veth peer name eth0 netns {node}",
            f"ip link set p-{node} master fabric up",
            f"ip -n {node} addr add {ADDRESSES[node]}/24 dev eth0",
            f"ip -n {node} link set eth0 up",
            *of_the_unit(node, "ExecStartPre", "ExecStart"),
        ]
    lines += [f"ip -n fog1 addr add {POD_OF_FOG1}/32 dev lo", "ip -n fog1 link set lo up"]
    lines += [f"ip -n server1 route add {POD_OF_FOG1}/32 via {ADDRESSES['fog1']}"]
    lines += pings("before")
    for node in NODES:
        lines += [f"cp /{node}/after.tc /{node}/delays.tc", *of_the_unit(node, "ExecReload")]
    lines += pings("after")
    for node in NODES:
        lines += of_the_unit(node, "ExecStop", "ExecStartPre", "ExecStart")
    lines += pings("again")
    lines += of_the_unit("fog1", "ExecStop")
    lines += ["echo 'stopped fog1'", "ip netns exec fog1 tc qdisc show dev eth0"]
    return "\n".join(lines) + "\necho done nobody\n"


@pytest.fixture(scope="module")
def told(require: Callable[[str, bool, str], None]) -> str:
    files = {path: text for node in NODES for path, text in files_of(node).items()}
    try:
        return run_script(script(), files)
    except QemuMissingError as error:
        require("qemu", False, str(error))
        raise


def section(told: str, when: str, node: str) -> str:
    _, _, rest = told.partition(f"{when} {node}\n")
    return re.split(r"^(?:before|after|again|stopped|done) \w+$", rest, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(
    ("when", "wanted"),
    [
        pytest.param("before", BEFORE, id="started"),
        pytest.param("after", AFTER, id="reloaded with other delays"),
        pytest.param("again", AFTER, id="restarted"),
    ],
)
def test_every_pair_has_its_round_trip(told: str, when: str, wanted: RttMatrix) -> None:
    measured = [
        pair for node in NODES for pair in compared(node, section(told, when, node), wanted, ADDRESSES)
    ]
    assert len(measured) == 12
    assert [pair.complaint for pair in measured if not pair.holds] == []


def test_a_unit_that_was_stopped_leaves_no_delay(told: str) -> None:
    left = section(told, "stopped", "fog1")
    assert "qdisc" in left  # the kernel's own
    assert "netem" not in left
    assert "htb" not in left


def test_pods_behind_a_node_are_as_far_as_the_node(told: str) -> None:
    to_pod = {**ADDRESSES, "fog1": POD_OF_FOG1}
    (pair,) = compared("server1", section(told, "before", "server1"), BEFORE, to_pod, peers=["fog1"])
    # The answer leaves from the pod's address, but to the server's: delayed on both ways.
    assert pair.holds, pair.complaint
