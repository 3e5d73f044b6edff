"""Round-trip times between nodes, from a matrix, from network coordinates or from one delay per node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import dist


@dataclass(frozen=True)
class RttMatrix:
    """Measured or wanted RTTs, row by row in the order of the names."""

    names: tuple[str, ...]
    rows_ms: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", {name: i for i, name in enumerate(self.names)})

    def __call__(self, a: str, b: str) -> float:
        index: dict[str, int] = self._index  # type: ignore[attr-defined]
        return self.rows_ms[index[a]][index[b]]


@dataclass(frozen=True)
class RttCoordinates:
    """Positions in a space whose distances are milliseconds (Vivaldi and its kin)."""

    positions_ms: Mapping[str, tuple[float, ...]]

    def __call__(self, a: str, b: str) -> float:
        return dist(self.positions_ms[a], self.positions_ms[b])


@dataclass(frozen=True)
class RttDelays:
    """One delay per node, and between two nodes the larger of theirs: what `tc` on each node's own
    interface makes when the far end of a path dominates it."""

    delays_ms: Mapping[str, float]

    def __call__(self, a: str, b: str) -> float:
        return 0.0 if a == b else max(self.delays_ms[a], self.delays_ms[b])


@dataclass(frozen=True)
class RttUniform:
    """The same RTT between any two nodes, also those created while a job runs."""

    between_ms: float = 0.0

    def __call__(self, a: str, b: str) -> float:
        return 0.0 if a == b else self.between_ms


@dataclass(frozen=True)
class RttScaled:
    """Another network, slowed down by a factor (a fault, not a topology of its own)."""

    base: Rtt
    factor: float

    def __call__(self, a: str, b: str) -> float:
        return self.factor * self.base(a, b)


Rtt = RttMatrix | RttCoordinates | RttDelays | RttUniform | RttScaled
