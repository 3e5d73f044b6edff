"""What an operator manager sees of its operator, and what it proposes (§5): another number of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Protocol

from controller.model import Observation, Operator


@dataclass(frozen=True, slots=True)
class View:
    """One operator as its manager sees it. None: not measured, or no number."""

    replicas: int
    rate_per_s: float | None  # what arrives
    response_ms: float | None
    utilisations: tuple[float, ...]  # of each replica; (): not measured


@dataclass(frozen=True, slots=True)
class Proposal:
    """One replica more (+1) or fewer (−1)."""

    change: int
    score: float
    why: str


class OperatorManager(Protocol):
    def propose(self, view: View) -> Proposal | None:
        """What it wants of what it sees now; None: nothing."""

    def carried_out(self, change: int) -> None:
        """By how many replicas its operator is changed now, whatever it had proposed."""

    def learned(self) -> Mapping[str, Any] | None:
        """What it has learned, as plain numbers; None where it does not learn."""

    def learn_from(self, learned: Mapping[str, Any]) -> None:
        """Starts from what another one has learned."""


def number(value: float | None) -> float | None:
    """A reading that is no number is no reading."""
    return value if value is not None and isfinite(value) else None


def view_of(observation: Observation, operator: Operator) -> View | None:
    """None while the operator stands still or is being changed: then there is nothing to manage."""
    running = len(observation.placement[operator.name])
    if running == 0 or observation.placement[operator.name] != observation.requested[operator.name]:
        return None
    seen = observation.operators[operator.name]
    of_instances = [number(each.cpu_ratio) for each in seen.instances if each.state == "running"]
    own = number(seen.cpu_ratio)
    if not of_instances and own is not None:
        of_instances = [own] * running
    measured = tuple(each for each in of_instances if each is not None)
    return View(
        running,
        number(seen.arrival_rate_per_s),
        number(seen.response_time_ms),
        measured if len(measured) == running else (),
    )
