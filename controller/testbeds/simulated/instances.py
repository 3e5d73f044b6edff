"""Instances and their names: counts become named instances, and no name is ever used twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import count

from controller.model import Instance, Instances, Placement, Plan, placement_of

Named = dict[str, tuple[Instance, ...]]


class Names:
    """All names of a run; those that a testbed gives are numbered node by node."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: Counter[tuple[str, str]] = Counter()

    def new(self, operator: str, node: str) -> Instance:
        for number in count(self._next[operator, node]):
            name = f"{operator}-{node}-{number}"
            if name not in self._used:
                self._next[operator, node] = number + 1
                self._used.add(name)
                return Instance(name, node)
        raise AssertionError("numbers do not end")

    def take(self, instances: Instances) -> None:
        self._used.update(_ids(instances))

    def give_back(self, never_created: Instances, kept: Instances) -> None:
        """Those of a change that failed have never been there."""
        self._used -= _ids(never_created) - _ids(kept)

    def objection(self, plan: Plan, requested: Instances) -> str:
        """Why the names in a plan cannot be had; empty if they can."""
        if plan.instances is None:
            return ""
        if placement_of(plan.instances) != {name: tuple(nodes) for name, nodes in plan.placement.items()}:
            return "the placement is not that of the active instances: write Plan.of_instances(…)"
        named = Counter(each.id for some in plan.instances.values() for each in some)
        if twice := next((name for name, times in named.items() if times > 1), None):
            return f"two instances are called {twice}: give each a name of its own"
        operators = {each.id: name for name, some in requested.items() for each in some}
        for name, some in plan.instances.items():
            for each in some:
                if operators.get(each.id, name) != name:
                    return f"{each.id} is an instance of {operators[each.id]}, not of {name}"
                if each.id in self._used and each.id not in operators:
                    return f"{each.id} has been used before: give a new instance a new name"
        return ""


def first_named(placement: Placement, names: Names) -> Named:
    return {name: tuple(names.new(name, node) for node in nodes) for name, nodes in placement.items()}


def named_for(
    nodes: tuple[str, ...], operator: str, requested: tuple[Instance, ...], serving: Instances, names: Names
) -> tuple[Instance, ...]:
    """The instances on these nodes: those that are there stay, the oldest first, before any is created.

    What serves already comes before what boots, and that before what is not active.
    """
    serves = set(serving[operator])
    there = sorted(requested, key=lambda each: 0 if each in serves else 1 if each.active else 2)
    chosen = []
    for node in nodes:
        match = next((each for each in there if each.node == node), None)
        if match is None:
            chosen.append(names.new(operator, node))
        else:
            there.remove(match)
            chosen.append(match if match.active else Instance(match.id, match.node))
    return tuple(chosen)


def active_of(instances: tuple[Instance, ...]) -> tuple[Instance, ...]:
    return tuple(each for each in instances if each.active)


def occupied_by(instances: Instances) -> dict[str, tuple[str, ...]]:
    """Every slot that is taken, be it by one that serves nothing."""
    return {name: tuple(each.node for each in some) for name, some in instances.items()}


def without_nodes(instances: Mapping[str, tuple[Instance, ...]], lost: Mapping[str, float]) -> Named:
    return {name: tuple(each for each in some if each.node not in lost) for name, some in instances.items()}


def _ids(instances: Instances) -> set[str]:
    return {each.id for some in instances.values() for each in some}
