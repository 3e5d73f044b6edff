"""Latency by `tc`: an htb class, a u32 filter and a netem delay for every peer of a node.

Each end delays what it sends by half of the round trip. The structure (classes, filters) and the delays are
two batches for `tc -batch`, so that latencies change in mid-experiment while the queues keep their packets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from math import ceil

from controller.network import RttMatrix
from fog.values import interface_name
from fogscale.errors import FogscaleError

FRAME_BYTES = 1500
FIRST_CLASS = 0x10  # minor number of the first peer's class; 1:1 is for everyone who is no peer
MOST_PEERS = 0xFFFF - FIRST_CLASS


@dataclass(frozen=True)
class Peer:
    name: str
    networks: tuple[str, ...]  # its address, and what lies behind it (its pods)
    rtt_ms: float


def peers_of(node: str, rtt_ms: RttMatrix, networks: Mapping[str, Sequence[str]]) -> list[Peer]:
    """Everyone else in the matrix, in its order."""
    for name in rtt_ms.names:
        if name != node and not networks.get(name):
            raise FogscaleError(f"no address is known for {name}: set its ansible_host in the inventory")
    return [Peer(name, tuple(networks[name]), rtt_ms(node, name)) for name in rtt_ms.names if name != node]


def structure(interface: str, peers: Sequence[Peer], rate_mbit: int = 1000) -> list[str]:
    """What stays while latencies change: one class, one netem without delay and the filters of every peer."""
    interface_name(interface)
    if len(peers) > MOST_PEERS:
        raise FogscaleError(f"tc has no room for {len(peers)} peers: use at most {MOST_PEERS}")
    # The quantum is given because htb would otherwise derive one from the rate and warn that it is too big.
    htb = f"htb rate {rate_mbit}mbit quantum {10 * FRAME_BYTES}"
    lines = [
        f"qdisc add dev {interface} root handle 1: htb default 1",
        f"class add dev {interface} parent 1: classid 1:1 {htb}",
    ]
    for number, peer in enumerate(peers, start=FIRST_CLASS):
        lines.append(f"class add dev {interface} parent 1: classid 1:{number:x} {htb}")
        lines.append(f"qdisc add dev {interface} parent 1:{number:x} handle {number:x}: netem limit 1000")
        lines += [
            f"filter add dev {interface} parent 1: protocol ip prio 1 u32 match ip dst {ip_network(network)} "
            f"flowid 1:{number:x}"
            for network in peer.networks
        ]
    return lines


def delays(interface: str, peers: Sequence[Peer], rate_mbit: int = 1000) -> list[str]:
    """Half of each round trip; the other end adds its half."""
    interface_name(interface)
    return [
        f"qdisc change dev {interface} parent 1:{number:x} handle {number:x}: netem "
        f"limit {packets_in_flight(peer.rtt_ms / 2, rate_mbit)} delay {peer.rtt_ms / 2 * 1000:.0f}us"
        for number, peer in enumerate(peers, start=FIRST_CLASS)
    ]


def packets_in_flight(one_way_ms: float, rate_mbit: int) -> int:
    """netem holds every delayed packet: with its default of 1000 a fast link would lose most of them."""
    full_link = rate_mbit * 1e6 / 8 / FRAME_BYTES * one_way_ms / 1000
    return 1000 + 2 * ceil(full_link)
