"""Node managers (§5, §6): where a replica goes to, which one leaves, and what an overloaded node sheds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from numpy.random import Generator

from controller.model import NodeMetrics, Observation, Placement
from controller.placement import free_nodes
from controller.policies.edf.operator_manager import number
from controller.policies.edf.requests import Request

Distance = Callable[[str, str], float]
"""How far two nodes are from each other, in ms."""


def a_near_one(
    candidates: Sequence[str], origins: Sequence[str], distance_ms: Distance, rng: Generator
) -> str:
    """One of the candidates by chance: every further distance from where replicas are now is half as likely
    as the one before, and nodes that are equally far are equally likely."""
    far_ms = [sum(distance_ms(node, origin) for origin in origins) / len(origins) for node in candidates]
    ranks = {each: rank for rank, each in enumerate(sorted(set(far_ms)))}
    weights = [2.0 ** -ranks[each] for each in far_ms]
    return candidates[int(rng.choice(len(candidates), p=[weight / sum(weights) for weight in weights]))]


def busiest_of(nodes: Sequence[str], metrics: Mapping[str, NodeMetrics]) -> str:
    """The node of the highest utilisation, which a scale-in relieves; of equals, the youngest replica's."""
    used = {name: number(each.cpu_ratio) or 0.0 for name, each in metrics.items()}
    return max(enumerate(nodes), key=lambda each: (used.get(each[1], 0.0), each[0]))[1]


def room_for(observation: Observation, operator: str, distance_ms: Distance, rng: Generator) -> str | None:
    """Where one more replica of an operator could go; None where no slot is free."""
    free = free_nodes(observation.topology, observation.requested)
    return a_near_one(free, observation.requested[operator], distance_ms, rng) if free else None


def migrations(
    observation: Observation, high_ratio: float, distance_ms: Distance, rng: Generator
) -> list[Request]:
    """What every overloaded node asks for: that one of its replicas, any of them, moves to a node nearby that
    is not overloaded."""
    used = {name: number(each.cpu_ratio) for name, each in observation.nodes.items()}
    calm = [
        node
        for node in free_nodes(observation.topology, observation.requested)
        if (ratio := used.get(node)) is not None and ratio <= high_ratio
    ]
    requests = []
    for node in observation.topology.nodes:
        ratio = used.get(node.name)
        hosted = _hosted(observation, node.name)
        if ratio is None or ratio <= high_ratio or not hosted or not calm:
            continue
        operator = hosted[int(rng.integers(len(hosted)))]
        target = a_near_one(calm, [node.name], distance_ms, rng)
        score = (ratio - high_ratio) / (1 - high_ratio)
        why = f"{node.name} at {ratio:.0%}, above {high_ratio:.0%}"
        requests.append(Request("migrate", operator, target, score, f"node {node.name}", why, node.name))
    return requests


def _hosted(observation: Observation, node: str) -> list[str]:
    """The operators of the replicas on a node, those under reconfiguration aside."""
    return [
        name
        for name, nodes in observation.requested.items()
        if observation.placement[name] == nodes
        for replica in nodes
        if replica == node
    ]


def changed(placement: Placement, request: Request) -> dict[str, tuple[str, ...]]:
    """The placement once a request is carried out."""
    nodes = list(placement[request.operator])
    if request.action == "scale_out":
        nodes.append(request.node)
    else:
        leaving = request.moved_from or request.node
        last = (
            len(nodes) - 1 - nodes[::-1].index(leaving)
        )  # the youngest of those there: it has the least state
        nodes[last : last + 1] = [request.node] if request.action == "migrate" else []
    return {**placement, request.operator: tuple(nodes)}
