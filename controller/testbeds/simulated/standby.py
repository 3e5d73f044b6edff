"""Hot standby: idle instances that a scale-up can use at once. By node, with the time each is up from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from controller.model import Placement, Topology
from controller.placement import free_nodes


def kept_idle(
    standby: Mapping[str, float],
    instances: int,
    running: Placement,
    wanted: Placement,
    topology: Topology,
    now_s: float,
) -> dict[str, float]:
    """At most so many, the oldest: those given up become idle, those in use are never among them."""
    used = nodes_of(wanted)
    given_up = [node for node in nodes_of(running) if node not in used]
    idle = {**dict.fromkeys(given_up, now_s), **standby}
    slots = {node.name: node.slots for node in topology.nodes}
    idle = {node: up_s for node, up_s in idle.items() if used[node] < slots.get(node, 1)}
    oldest_first = sorted(idle.items(), key=lambda node_and_time: node_and_time[1])
    return dict(oldest_first[:instances])


def nodes_for_more(
    standby: Mapping[str, float], instances: int, wanted: Placement, topology: Topology
) -> list[str]:
    """Where those that are missing can be provisioned, as far as there is room."""
    nodes = list(standby)
    while len(nodes) < instances:
        free = free_nodes(topology, {**wanted, "": tuple(nodes)})
        if not free:
            break
        nodes.append(free[0])
    return nodes[len(standby) :]


def nodes_of(placement: Placement) -> Counter[str]:
    return Counter(node for nodes in placement.values() for node in nodes)
