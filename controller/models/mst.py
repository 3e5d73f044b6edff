"""Gesscale's performance model: the maximum sustainable throughput (MST) of an operator.

Eq. 1: MST = α·n^β − γ·ND_max, calibrated by bounded least squares on what the operator did while it was
saturated; with fewer than three distinct configurations the simpler Eq. 3 (β = 1) or Eq. 2 (γ = 0) serves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

BETA_RANGE = (0.2, 1.0)  # a replica never adds more than the first one has, and always something
_GRID = 41  # steps of 0.02, and 20 times finer with each zoom
_ZOOMS = 4


class Measurement(NamedTuple):
    replicas: int
    largest_rtt_ms: float
    throughput_per_s: float


@dataclass(frozen=True, slots=True)
class MstModel:
    alpha_per_s: float
    beta: float = 1.0
    gamma_per_s_per_ms: float = 0.0

    def mst_per_s(self, replicas: int, largest_rtt_ms: float) -> float:
        return float(self.alpha_per_s * replicas**self.beta - self.gamma_per_s_per_ms * largest_rtt_ms)


def single_point(latest: Measurement) -> MstModel:
    """Eq. 2, all that one measurement can tell."""
    return MstModel(latest.throughput_per_s / latest.replicas)


def calibrated(measurements: Iterable[Measurement]) -> MstModel | None:
    """The calibration ladder, Eq. 2 → Eq. 3 → Eq. 1, by the number of distinct configurations measured."""
    points = _mean_per_configuration(measurements)
    if len(points) == 0:
        return None
    replicas, rtt_ms, throughput = points.T
    if len(points) == 1:
        return single_point(Measurement(int(replicas[0]), rtt_ms[0], throughput[0]))
    if len(points) == 2:
        return _best_fit(replicas, rtt_ms, throughput, np.ones(1))
    # For a given β the model is linear, so only β is searched: a grid over its range, then finer ones around
    # the best. No start value, no local minimum.
    low, high = BETA_RANGE
    for _ in range(_ZOOMS):
        betas = np.linspace(low, high, _GRID)
        model = _best_fit(replicas, rtt_ms, throughput, betas)
        spacing = betas[1] - betas[0]
        low, high = max(BETA_RANGE[0], model.beta - spacing), min(BETA_RANGE[1], model.beta + spacing)
    return model


def _mean_per_configuration(measurements: Iterable[Measurement]) -> NDArray[np.float64]:
    """A configuration measured twice is one point: it says nothing new about α, β and γ."""
    seen: dict[tuple[int, float], list[float]] = defaultdict(list)
    for point in measurements:
        seen[point.replicas, point.largest_rtt_ms].append(point.throughput_per_s)
    return np.array([(n, rtt, np.mean(rates)) for (n, rtt), rates in sorted(seen.items())], dtype=float)


def _best_fit(
    replicas: NDArray[np.float64],
    rtt_ms: NDArray[np.float64],
    throughput: NDArray[np.float64],
    betas: NDArray[np.float64],
) -> MstModel:
    """The best of these β: for each, least squares in α and γ, in closed form, with γ ≥ 0."""
    power = replicas[None, :] ** betas[:, None]
    squared, crossed = (power * power).sum(axis=1), power @ rtt_ms
    determinant = squared * (rtt_ms @ rtt_ms) - crossed**2
    slope = (power @ throughput) * crossed - squared * (rtt_ms @ throughput)
    # Where RTTs grow just as n^β does, nothing tells the two apart, and α takes it all.
    solvable = (determinant > 1e-12 * squared * (rtt_ms @ rtt_ms)) & (slope > 0)
    gammas = np.divide(slope, determinant, out=np.zeros_like(slope), where=solvable)
    alphas = (power @ throughput + gammas * crossed) / squared
    residuals = throughput - (alphas[:, None] * power - gammas[:, None] * rtt_ms)
    best = int((residuals**2).sum(axis=1).argmin())
    return MstModel(float(alphas[best]), float(betas[best]), float(gammas[best]))
