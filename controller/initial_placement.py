"""Where a job starts, with the network in view: so that records have the shortest way through it.

What a record takes at an operator is the same wherever that is; what its placement decides are the hops
between operators. The response time is that of the longest way from a source to a sink, the time of a hop the
mean over all pairs of sender and receiver, since records are spread evenly. The EDF paper (§8.3) has its
application manager do this once, when the job is submitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from controller.model import Operator, Placement, Topology
from controller.placement import free_nodes

MOST_TRIED = 20_000
"""Partial placements that are looked at. Small jobs need far fewer to find the best; of a large one, the best
so far is taken: at the least, every replica is on the best node that those before it have left."""


class Way(NamedTuple):
    """How long hops take, in ms; shorter ways come first."""

    longest_ms: float  # from a source to a sink
    all_ms: float  # every hop of the job, which settles ties


def way_of(topology: Topology, placement: Placement, replicas: Mapping[str, int] | None = None) -> Way:
    """Of a job, or of the part of it that is placed: with as many `replicas` as it will have in the end, that
    is the least the whole can take."""
    reached_ms: dict[str, float] = {}
    all_ms = 0.0
    for operator in topology.operators:
        hops_ms = {
            above: _hop_ms(topology, placement, above, operator, replicas) for above in operator.upstream
        }
        all_ms += sum(hops_ms.values())
        reached_ms[operator.name] = max(
            (reached_ms[name] + hop_ms for name, hop_ms in hops_ms.items()), default=0.0
        )
    return Way(max(reached_ms.values()), all_ms)


def _hop_ms(
    topology: Topology,
    placement: Placement,
    above: str,
    operator: Operator,
    replicas: Mapping[str, int] | None,
) -> float:
    senders, receivers = placement[above], placement[operator.name]
    pairs = len(senders) * len(receivers) if replicas is None else replicas[above] * replicas[operator.name]
    rtts_ms = sum(topology.rtt_ms(a, b) for a in senders for b in receivers)
    return rtts_ms / pairs / 2 if pairs else 0.0


def quickest(topology: Topology, pinned: Placement, replicas: Mapping[str, int]) -> Placement:
    """A placement with the shortest way: operators of `replicas` with so many of them, the others as pinned.
    There must be slots for all.

    Branch and bound, one replica after the other, upstream first: a part that takes no less than the best
    whole is not looked into. Of equals, the first in the topology's order.
    """
    final = {name: replicas.get(name, len(nodes)) for name, nodes in pinned.items()}
    to_place = [name for name in final for _ in range(final[name] - len(pinned[name]))]
    waiting = [_Part(way_of(topology, pinned, final), pinned)]
    best: _Part | None = None
    known: set[tuple[tuple[str, ...], ...]] = set()
    for _ in range(MOST_TRIED + len(to_place) + 1):
        if not waiting:
            break
        part = waiting.pop()
        if best is not None and part.way >= best.way:
            continue
        placed = sum(map(len, part.placement.values())) - sum(map(len, pinned.values()))
        if placed == len(to_place):
            best = part
            continue
        longer = []
        for placement in _with_one_more(topology, part.placement, to_place[placed]):
            alike = tuple(tuple(sorted(nodes)) for nodes in placement.values())
            if alike not in known:  # replicas of one operator are all the same
                known.add(alike)
                longer.append(_Part(way_of(topology, placement, final), placement))
        waiting.extend(sorted(longer, key=lambda each: each.way)[::-1])  # the shortest lies on top
    assert best is not None  # the first way down takes one step for each replica
    return best.placement


class _Part(NamedTuple):
    way: Way  # the least that a job placed like this can take
    placement: Placement


def _with_one_more(topology: Topology, placement: Placement, name: str) -> list[Placement]:
    return [{**placement, name: (*placement[name], node)} for node in free_nodes(topology, placement)]
