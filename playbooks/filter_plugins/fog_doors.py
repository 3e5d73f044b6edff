"""Filters of verify.yml: what each node, and a pod on it, tries at the next node, and what came of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))  # the checkout, also where the package is not installed

from fog.checks import doors

Nodes = Sequence[Mapping[str, Any]]
Facts = Mapping[str, bool]


def _from_node(nodes: Nodes, name: str, facts: Facts) -> list[doors.Attempt]:
    return doors.from_node(nodes, name, doors.Fog(**facts))


def _from_pod(nodes: Nodes, name: str, facts: Facts) -> list[doors.Attempt]:
    return doors.from_pod(nodes, name, doors.Fog(**facts))


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {
            "door_command": lambda *given: doors.node_command(_from_node(*given)),
            "door_problems": lambda lines, *given: doors.node_problems(_from_node(*given), lines),
            "kafka_door_command": lambda *given: doors.kafka_command(_from_node(*given)),
            "kafka_door_problems": lambda lines, *given: doors.kafka_problems(_from_node(*given), lines),
            "pod_door_urls": lambda *given: [each.url for each in _from_pod(*given)],
            "pod_door_problems": lambda lines, *given: doors.pod_problems(_from_pod(*given), lines),
        }
