"""Filters of fog_network: thin wrappers around the tested functions of fog."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3]))  # the checkout, also where the package is not installed

from fog.network import netem, ping
from fog.network.matrix import rtt_matrix
from fog.values import interface_name


def netem_peers(
    rows: Mapping[str, Any], node: str, nodes: Sequence[Mapping[str, Any]], known: Sequence[str],
    most_ms: float, behind: Mapping[str, Sequence[str]],
) -> list[dict[str, Any]]:  # fmt: skip
    names = [str(each["name"]) for each in nodes]
    networks = {str(each["name"]): [each["address"], *behind.get(each["name"], [])] for each in nodes}
    matrix = rtt_matrix(rows, names, known, float(most_ms))
    return [
        {"name": peer.name, "networks": list(peer.networks), "rtt_ms": peer.rtt_ms}
        for peer in netem.peers_of(node, matrix, networks)
    ]


def _peers(peers: Sequence[Mapping[str, Any]]) -> list[netem.Peer]:
    return [netem.Peer(peer["name"], tuple(peer["networks"]), float(peer["rtt_ms"])) for peer in peers]


def netem_structure(peers: Sequence[Mapping[str, Any]], interface: str, rate_mbit: int) -> str:
    return "\n".join(netem.structure(interface, _peers(peers), int(rate_mbit))) + "\n"


def netem_delays(peers: Sequence[Mapping[str, Any]], interface: str, rate_mbit: int) -> str:
    return "\n".join(netem.delays(interface, _peers(peers), int(rate_mbit))) + "\n"


def rtt_complaints(
    output: str, node: str, rows: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]], known: Sequence[str],
    most_ms: float,
) -> list[str]:  # fmt: skip
    addresses = {str(each["name"]): str(each["address"]) for each in nodes}
    matrix = rtt_matrix(rows, list(addresses), known, float(most_ms))
    return [pair.complaint for pair in ping.compared(node, output, matrix, addresses) if not pair.holds]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {
            "netem_peers": netem_peers,
            "netem_structure": netem_structure,
            "netem_delays": netem_delays,
            "ping_script": lambda addresses, count: ping.ping_script(addresses, int(count)),
            "rtt_complaints": rtt_complaints,
            "interface_name": interface_name,
        }
