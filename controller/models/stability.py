"""Can a performance model be relied on? The thesis' stability check by bootstrap (Algorithms 4 and 5).

As printed, Algorithm 4 resamples the inputs of one fixed model: that measures how much its predictions vary
over the data, not how sure it is. What is meant, and done by default, is a refit for each resample: the
spread of what the refitted models predict at one point, averaged over the points.

A resample is a vector of counts, so all refits are weighted normal equations, solved in one batch. In a basis
that is orthonormal over the data these equations are close to the identity, and safe to solve.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from controller.models.polynomial import Floats, Polynomial, Samples, orthogonal

Algorithm4 = Literal["refit", "printed"]

_POINTS = 50  # of phase 2, between the workload now and what the TaskManagers can bear
_ROWS = 512  # worked on at a time: bounds the memory, whatever the number of samples
_RIDGE = 1e-9  # a resample that misses a whole part of the data is then wildly off, but not an error


class Stability(NamedTuple):
    spread: float | None  # phase 1: over the samples; None: not checked
    spread_ahead: float | None  # phase 2: from the workload now to the capacity
    stable: bool
    reason: str


def stability(
    model: Polynomial,
    samples: Samples,
    capacity_per_s: float | None,
    workload_per_s: float,
    replicas: int,
    rng: Generator,
    resamples: int = 250,
    threshold: float = 0.05,
    algorithm_4: Algorithm4 = "refit",
) -> Stability:
    """Algorithm 5: stable over the samples, and over the workload that the TaskManagers can still take."""
    if capacity_per_s is None:
        return Stability(None, None, False, "the capacity is not known before the first scale-up")
    ahead_per_s = np.linspace(workload_per_s, max(workload_per_s, replicas * capacity_per_s), _POINTS)
    over_samples = model.design(samples.workload_per_s, samples.replicas)
    over_ahead = model.design(ahead_per_s, float(replicas))
    if algorithm_4 == "printed":
        coefficients = np.array(model.coefficients)
        spread = _printed_spread(over_samples @ coefficients, resamples, rng)
        ahead = _printed_spread(over_ahead @ coefficients, resamples, rng)
    else:
        refits = refitted(over_samples, samples.slow_ratio, resamples, rng)
        spread, ahead = _spread(over_samples, refits), _spread(over_ahead, refits)
    stable = spread <= threshold and ahead <= threshold
    said = f"spread {spread:.3f}, {ahead:.3f} up to the capacity; allowed {threshold:g}"
    return Stability(spread, ahead, stable, said)


def drawn(samples: int, resamples: int, rng: Generator) -> NDArray[np.intp]:
    """How often each sample was drawn, with replacement: one row per resample."""
    picks = rng.integers(samples, size=(resamples, samples))
    offsets = np.arange(resamples)[:, None] * samples
    return np.bincount((picks + offsets).ravel(), minlength=resamples * samples).reshape(resamples, samples)


def refitted(design: Floats, slow_ratio: Floats, resamples: int, rng: Generator) -> Floats:
    """The coefficients of a least-squares fit to each resample, one column each."""
    columns, triangle, kept = orthogonal(design)
    size = columns.shape[1]
    upper, lower = np.triu_indices(size)
    counts = drawn(len(slow_ratio), resamples, rng)
    products, crossed = np.zeros((resamples, len(upper))), np.zeros((resamples, size))
    for start in range(0, len(slow_ratio), _ROWS):
        rows = columns[start : start + _ROWS]
        weights = counts[:, start : start + _ROWS].astype(np.float64)
        products += weights @ (rows[:, upper] * rows[:, lower])
        crossed += weights @ (rows * slow_ratio[start : start + _ROWS, None])
    grams = np.zeros((resamples, size, size))
    grams[:, upper, lower] = products
    grams[:, lower, upper] = products
    loads = np.linalg.solve(grams + _RIDGE * np.eye(size), crossed[:, :, None])[:, :, 0]
    coefficients = np.zeros((design.shape[1], resamples))
    coefficients[kept] = np.linalg.solve(triangle, loads.T)
    return coefficients


def _spread(design: Floats, refits: Floats) -> float:
    return float((design @ refits).std(axis=1).mean())


def _printed_spread(predicted: Floats, resamples: int, rng: Generator) -> float:
    """Algorithm 4 to the letter."""
    picks = rng.integers(len(predicted), size=(resamples, len(predicted)))
    return float(predicted[picks].std(axis=1).mean())
