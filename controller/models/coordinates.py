"""Network coordinates by Vivaldi (Dabek et al., SIGCOMM 2004): every node finds a position of its own from a
few measured round trips, such that distances between positions predict all the others.

Algorithm of the paper's Fig. 3, with adaptive steps: who is sure of its position moves little, and who
measures against an unsure neighbour learns little from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from fogscale.errors import FogscaleError

_STEP = 0.25  # c_c and c_e of the paper
_NOWHERE_ERROR = 1.0  # of a node that has measured nothing yet, relative


@dataclass
class _Position:
    at: NDArray[np.float64]
    error: float = _NOWHERE_ERROR


@dataclass
class Vivaldi:
    """Positions in a space of some dimensions, in ms; nodes may join at any time."""

    dimensions: int
    rng: Generator
    _positions: dict[str, _Position] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if self.dimensions < 1:
            raise FogscaleError(f"network coordinates of {self.dimensions} dimensions: give at least 1")

    def _position(self, node: str) -> _Position:
        if node not in self._positions:
            self._positions[node] = _Position(np.zeros(self.dimensions))
        return self._positions[node]

    def measured(self, node: str, other: str, rtt_ms: float) -> None:
        """A node has measured its round trip to another one, and moves. What is no time is not looked at."""
        if node == other or not isfinite(rtt_ms) or rtt_ms < 0:
            return
        own, there = self._position(node), self._position(other)
        apart = own.at - there.at
        far_ms = float(np.linalg.norm(apart))
        # Two at the same place are pushed apart in any direction.
        direction = apart / far_ms if far_ms > 0 else _any_direction(self.rng, self.dimensions)
        balance = own.error / (own.error + there.error) if own.error + there.error > 0 else 0.5
        off = abs(far_ms - rtt_ms) / max(rtt_ms, 1e-3)
        own.error = min(_NOWHERE_ERROR, off * _STEP * balance + own.error * (1 - _STEP * balance))
        own.at = own.at + _STEP * balance * (rtt_ms - far_ms) * direction

    def gossip(self, nodes: Sequence[str], rtt_ms: Callable[[str, str], float], neighbours: int = 1) -> None:
        """Every node measures its round trip to some others, which chance chooses."""
        for node in nodes:
            others = [other for other in nodes if other != node]
            for pick in self.rng.integers(len(others), size=neighbours if others else 0):
                self.measured(node, others[pick], rtt_ms(node, others[pick]))

    def distance_ms(self, a: str, b: str) -> float:
        """The round trip that the positions predict."""
        if a == b:
            return 0.0
        return float(np.linalg.norm(self._position(a).at - self._position(b).at))


def _any_direction(rng: Generator, dimensions: int) -> NDArray[np.float64]:
    drawn = rng.standard_normal(dimensions)
    direction: NDArray[np.float64] = drawn / np.linalg.norm(drawn)
    return direction
