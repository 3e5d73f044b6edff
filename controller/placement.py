"""Which nodes gain or lose a replica. Policies think in counts; here counts become nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from numpy.random import Generator

from controller.model import Observation, Placement, Plan, Topology
from fogscale.errors import FogscaleError

Score = Callable[[Topology, str, tuple[str, ...]], tuple[float, ...]]
"""(topology, node, the operator's other nodes) -> sort key."""


@dataclass(frozen=True)
class NodeChoice:
    """Scale-up takes the free node of the lowest score, scale-down gives up the one of the highest."""

    score: Score

    def add(self, topology: Topology, nodes: tuple[str, ...], free: tuple[str, ...]) -> tuple[str, ...]:
        return (*nodes, min(free, key=lambda node: self.score(topology, node, nodes)))

    def remove(self, topology: Topology, nodes: tuple[str, ...]) -> tuple[str, ...]:
        def score_of(position: int) -> tuple[float, ...]:
            return self.score(topology, nodes[position], nodes[:position] + nodes[position + 1 :])

        # Of equals the youngest leaves: it holds the least state.
        worst = max(range(len(nodes)), key=lambda position: (score_of(position), position))
        return nodes[:worst] + nodes[worst + 1 :]


def _distance(topology: Topology, node: str, others: tuple[str, ...]) -> tuple[float, ...]:
    rtts_ms = [topology.rtt_ms(node, other) for other in others] or [0.0]
    return max(rtts_ms), sum(rtts_ms)


nearest = NodeChoice(_distance)
farthest = NodeChoice(lambda topology, node, others: tuple(-rtt for rtt in _distance(topology, node, others)))
in_order = NodeChoice(lambda _topology, _node, _others: ())


def at_random(rng: Generator) -> NodeChoice:
    """The latency-unaware choice: any free node in, any of its own nodes out."""
    return NodeChoice(lambda _topology, _node, _others: (float(rng.random()),))


def standby_first(observation: Observation) -> NodeChoice:
    """Nodes with an idle instance are used first, then the topology's order; the youngest leaves."""
    ready = set(observation.standby)
    return NodeChoice(lambda _topology, node, _others: (float(node not in ready),))


def largest_rtt_ms(topology: Topology, nodes: tuple[str, ...]) -> float:
    """ND_max of Gesscale's Eq. 1: the largest round trip within a set of nodes."""
    distinct = tuple(dict.fromkeys(nodes))
    return max(
        (topology.rtt_ms(a, b) for i, a in enumerate(distinct) for b in distinct[i + 1 :]), default=0.0
    )


def free_nodes(topology: Topology, placement: Placement) -> tuple[str, ...]:
    """Nodes with an empty slot, in the topology's order; an elastic topology always has one more."""
    taken = Counter(node for nodes in placement.values() for node in nodes)
    free = tuple(node.name for node in topology.nodes if taken[node.name] < node.slots)
    return free if free or not topology.elastic else (next(_fresh_names(topology, taken)),)


def _fresh_names(topology: Topology, taken: Mapping[str, int]) -> Iterator[str]:
    known = {node.name for node in topology.nodes} | {name for name, replicas in taken.items() if replicas}
    return (name for number in count(1) if (name := f"elastic-{number}") not in known)


def grown(
    topology: Topology, placement: Placement, target: Mapping[str, int], choose: NodeChoice
) -> Placement:
    """The placement with each operator of the target at its count, all others as they were."""
    result = dict(placement)
    for operator, replicas in target.items():
        while len(result[operator]) > replicas:
            result[operator] = choose.remove(topology, result[operator])
    for operator, replicas in target.items():
        while len(result[operator]) < replicas:
            free = free_nodes(topology, result)
            if not free:
                raise FogscaleError(
                    f"no free slot for replica {len(result[operator]) + 1} of '{operator}': "
                    f"add nodes or slots, or lower its n_max"
                )
            result[operator] = choose.add(topology, result[operator], free)
    return result


def resized(
    observation: Observation, target: Mapping[str, int], choose: NodeChoice = nearest, anew: bool = False
) -> Placement:
    """What is requested now, resized: as many replicas as wanted, as many as there are slots for. `anew`:
    where replicas are given up, none keeps its node; those that remain are placed as if there were none."""
    requested = observation.requested
    room = sum(node.slots for node in observation.topology.nodes)
    if not observation.topology.elastic:
        others = sum(len(nodes) for operator, nodes in requested.items() if operator not in target)
        target = _fitted(target, requested, room - others)
    if anew:
        given_up: dict[str, tuple[str, ...]] = {
            name: () for name, replicas in target.items() if replicas < len(requested[name])
        }
        requested = {**requested, **given_up}
    return grown(observation.topology, requested, target, choose)


def resize_plan(
    observation: Observation,
    target: Mapping[str, int],
    reasons: list[str],
    choose: NodeChoice = nearest,
    anew: bool = False,
) -> Plan | None:
    """A plan for the counts wanted, or None where nothing would change (nothing wanted, or no slot left)."""
    placement = resized(observation, target, choose, anew)
    unchanged = all(tuple(placement[name]) == tuple(observation.requested[name]) for name in placement)
    return None if unchanged else Plan(placement, reason="; ".join(reasons))


def _fitted(target: Mapping[str, int], requested: Placement, room: int) -> dict[str, int]:
    """Takes back growth, operator by operator from the last, until the target fits the slots."""
    fitted = dict(target)
    for operator in reversed(list(fitted)):
        excess = sum(fitted.values()) - room
        if excess <= 0:
            break
        fitted[operator] = max(min(len(requested[operator]), fitted[operator]), fitted[operator] - excess)
    return fitted
