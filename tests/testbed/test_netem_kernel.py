"""The generated `tc` commands under a real kernel that has netem, in namespaces joined by a bridge."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.network import RttMatrix
from controller.testbeds.fog.matrix import rtt_matrix
from controller.testbeds.fog.netem import delays, peers_of, structure
from controller.testbeds.fog.ping import compared, ping_script
from tests.support.qemu import QemuMissingError, run_script

pytestmark = pytest.mark.qemu

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


def files_of(node: str, rtt_ms: RttMatrix, suffix: str) -> dict[str, str]:
    networks = {name: [address] for name, address in ADDRESSES.items()}
    networks["fog1"].append("10.42.1.0/24")
    peers = peers_of(node, rtt_ms, networks)
    return {
        f"{node}/structure": "\n".join(structure("eth0", peers)) + "\n",
        f"{node}/{suffix}": "\n".join(delays("eth0", peers)) + "\n",
    }


def script() -> str:
    lines = ["ip link add fabric type bridge", "ip link set fabric up"]
    for node in NODES:
        lines += [
            f"ip netns add {node}",
            f"ip link add p-{node} type veth peer name eth0 netns {node}",
            f"ip link set p-{node} master fabric up",
            f"ip -n {node} addr add {ADDRESSES[node]}/24 dev eth0",
            f"ip -n {node} link set eth0 up",
            f"ip netns exec {node} tc -batch /{node}/structure",
            f"ip netns exec {node} tc -batch /{node}/before",
        ]
    lines += [f"ip -n fog1 addr add {POD_OF_FOG1}/32 dev lo", "ip -n fog1 link set lo up"]
    lines += [f"ip -n server1 route add {POD_OF_FOG1}/32 via {ADDRESSES['fog1']}"]
    for when in ("before", "after"):
        for node in NODES:
            others = [address for name, address in ADDRESSES.items() if name != node]
            if when == "after":
                lines.append(f"ip netns exec {node} tc -batch /{node}/after")
            others += [POD_OF_FOG1] if node == "server1" else []
            # One after the other: an emulated processor is busy with a few already.
            lines.append(f"echo '{when} {node}'")
            lines += [f"ip netns exec {node} sh -c '{ping_script([other], count=5)}'" for other in others]
    return "\n".join(lines) + "\necho done nobody\n"


@pytest.fixture(scope="module")
def told(require: Callable[[str, bool, str], None]) -> str:
    files: dict[str, str] = {}
    for node in NODES:
        files |= files_of(node, BEFORE, "before") | files_of(node, AFTER, "after")
    try:
        return run_script(script(), files)
    except QemuMissingError as error:
        require("qemu", False, str(error))
        raise


def section(told: str, when: str, node: str) -> str:
    _, _, rest = told.partition(f"{when} {node}\n")
    return rest.split("\nbefore ")[0].split("\nafter ")[0].split("\ndone ")[0]


def test_every_pair_has_its_round_trip(told: str) -> None:
    # The delays of the second matrix came one node after the other: only the first is as wanted all the time.
    measured = [
        pair for node in NODES for pair in compared(node, section(told, "before", node), BEFORE, ADDRESSES)
    ]
    assert len(measured) == 12
    assert [pair.complaint for pair in measured if not pair.holds] == []


def test_delays_change_while_the_network_is_in_use(told: str) -> None:
    last = NODES[-1]  # by then all nodes have their new delays
    measured = compared(last, section(told, "after", last), AFTER, ADDRESSES)
    assert [pair.complaint for pair in measured if not pair.holds] == []


def test_pods_behind_a_node_are_as_far_as_the_node(told: str) -> None:
    to_pod = {**ADDRESSES, "fog1": POD_OF_FOG1}
    (pair,) = compared("server1", section(told, "before", "server1"), BEFORE, to_pod, peers=["fog1"])
    # The answer leaves from the pod's address, but to the server's: delayed on both ways.
    assert pair.holds, pair.complaint
