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
from scipy.optimize import minimize_scalar, nnls

BETA_RANGE = (0.2, 1.0)  # a replica never adds more than the first one has, and always something


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
        return _fit_alpha_gamma(replicas, rtt_ms, throughput, beta=1.0)[0]

    def residual(beta: float) -> float:
        return _fit_alpha_gamma(replicas, rtt_ms, throughput, beta)[1]

    best = minimize_scalar(residual, bounds=BETA_RANGE, method="bounded", options={"xatol": 1e-6})
    # The bounded search never tries the ends themselves; perfect parallelism is one of them.
    beta = min((float(best.x), *BETA_RANGE), key=residual)
    return _fit_alpha_gamma(replicas, rtt_ms, throughput, beta)[0]


def _mean_per_configuration(measurements: Iterable[Measurement]) -> NDArray[np.float64]:
    """A configuration measured twice is one point: it says nothing new about α, β and γ."""
    seen: dict[tuple[int, float], list[float]] = defaultdict(list)
    for point in measurements:
        seen[point.replicas, point.largest_rtt_ms].append(point.throughput_per_s)
    return np.array([(n, rtt, np.mean(rates)) for (n, rtt), rates in sorted(seen.items())], dtype=float)


def _fit_alpha_gamma(
    replicas: NDArray[np.float64], rtt_ms: NDArray[np.float64], throughput: NDArray[np.float64], beta: float
) -> tuple[MstModel, float]:
    """For a given β the model is linear, and α, γ ≥ 0 are a non-negative least-squares problem."""
    design = np.column_stack([replicas**beta, -rtt_ms])
    scale = np.maximum(np.abs(design).max(axis=0), 1e-12)  # milliseconds and replicas on one scale
    (alpha, gamma), residual = nnls(design / scale, throughput)
    return MstModel(float(alpha / scale[0]), beta, float(gamma / scale[1])), float(residual)
