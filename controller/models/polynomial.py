"""The thesis' performance model (§3.3.1): the share of slow records over workload and TaskManagers.

A polynomial in two variables of total degree 1–8, the degree chosen by RMSE (Algorithm 3). Powers of a raw
workload of thousands of records per second cannot be told apart in floating point, so both inputs are scaled
to −1..1 and expanded in Chebyshev polynomials. Columns are ordered by degree and orthogonalized once: the
fits of all degrees, and their leave-one-out errors, fall out of that single QR decomposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import ArrayLike, NDArray

from fogscale.errors import FogscaleError

Floats = NDArray[np.float64]
DegreeChoice = Literal["in_sample", "cross_validated", "printed"]

MAX_DEGREE = 8
_DEPENDENT = 1e-8  # a column with less than this share of its length of its own adds nothing but noise
_SAMPLES_PER_COLUMN = 2  # with fewer, a fit follows the noise instead of averaging it
_BISQUARE = 4.685  # Tukey's constant: 95 % of the efficiency of least squares where there are no outliers
_MAD_TO_DEVIATION = 1.4826


class UnfitError(Exception):
    """The data cannot carry a model; the message says why."""


class Samples(NamedTuple):
    """What exploration has measured, one row per sample."""

    workload_per_s: Floats
    replicas: Floats
    slow_ratio: Floats

    @classmethod
    def of(cls, rows: Sequence[tuple[float, float, float]]) -> Samples:
        return cls(*np.array(rows, dtype=np.float64).reshape(-1, 3).T)

    def where(self, chosen: NDArray[np.bool_]) -> Samples:
        return Samples(self.workload_per_s[chosen], self.replicas[chosen], self.slow_ratio[chosen])


@dataclass(frozen=True)
class Seen:
    """The workloads that were seen with one number of TaskManagers."""

    replicas: int
    lowest_per_s: float
    highest_per_s: float


@dataclass(frozen=True)
class Polynomial:
    """Plain numbers only, so that it can stand in an experiment file."""

    degree: int
    powers: tuple[tuple[int, int], ...]  # of workload and TaskManagers, one pair per coefficient
    coefficients: tuple[float, ...]
    workload_range_per_s: tuple[float, float]  # what is scaled to -1..1
    replicas_range: tuple[float, float]
    seen: tuple[Seen, ...]
    samples: int
    rmse: float

    def __post_init__(self) -> None:
        if len(self.powers) != len(self.coefficients) or not self.powers:
            raise FogscaleError(
                f"a model has {len(self.coefficients)} coefficients for {len(self.powers)} powers: "
                f"give one for each"
            )
        numbers = (*self.coefficients, *self.workload_range_per_s, *self.replicas_range)
        if not all(map(isfinite, numbers)) or min(map(min, self.powers)) < 0:
            raise FogscaleError(
                "a model holds numbers that are not finite, or negative powers: train it anew"
            )
        if not self.seen or any(one.lowest_per_s > one.highest_per_s for one in self.seen):
            raise FogscaleError("a model must list what it has `seen`, lowest_per_s up to highest_per_s")

    def design(self, workload_per_s: ArrayLike, replicas: ArrayLike) -> Floats:
        return _design(self.powers, self.workload_range_per_s, self.replicas_range, workload_per_s, replicas)

    def value(self, workload_per_s: ArrayLike, replicas: ArrayLike) -> Floats:
        """The bare polynomial, wherever it is asked."""
        predicted: Floats = self.design(workload_per_s, replicas) @ np.array(self.coefficients)
        return predicted

    def slow_ratio(self, workload_per_s: Floats, replicas: int) -> Floats:
        """The predicted share of slow records; NaN where the data say nothing: for a number of TaskManagers
        never seen, and for more workload than ever seen with it. Less workload than ever seen is no worse
        than the least seen."""
        seen = next((seen for seen in self.seen if seen.replicas == replicas), None)
        if seen is None:
            return np.full(len(workload_per_s), np.nan)
        within_per_s = np.clip(workload_per_s, seen.lowest_per_s, seen.highest_per_s)
        predicted = np.maximum(0.0, self.value(within_per_s, float(replicas)))
        return np.where(workload_per_s > seen.highest_per_s, np.nan, predicted)


def trained(
    samples: Samples,
    degree_by: DegreeChoice = "in_sample",
    max_degree: int = MAX_DEGREE,
    robust: bool = False,
) -> tuple[Polynomial, Samples]:
    """Algorithm 3: the best polynomial, and the samples it rests on (all, unless outliers are left out)."""
    basis = _basis(samples, max_degree)
    if robust:
        samples = samples.where(_inliers(basis.columns, samples.slow_ratio))
        basis = _basis(samples, max_degree)
    degree = _chosen_degree(basis, samples.slow_ratio, degree_by)
    used = sum(sum(powers) <= degree for powers in basis.powers)
    loads = basis.columns[:, :used].T @ samples.slow_ratio
    residuals = samples.slow_ratio - basis.columns[:, :used] @ loads
    model = Polynomial(
        degree=degree,
        powers=basis.powers[:used],
        coefficients=tuple(np.linalg.solve(basis.triangle[:used, :used], loads).tolist()),
        workload_range_per_s=basis.workload_range_per_s,
        replicas_range=basis.replicas_range,
        seen=_seen(samples),
        samples=len(samples.slow_ratio),
        rmse=_root_mean_square(residuals),
    )
    return model, samples


def orthogonal(design: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Q and R of the columns that do not depend on those before them, and which these are.

    With m distinct numbers of TaskManagers, the m-th power of that number already is a combination of lower
    ones, so dependent columns are the rule here, not an accident; leaving them out changes no prediction.
    """
    own_length = np.abs(np.diag(np.linalg.qr(design, mode="r")))
    kept: NDArray[np.bool_] = own_length > _DEPENDENT * np.linalg.norm(design, axis=0)
    columns, triangle = np.linalg.qr(design[:, kept])
    return columns, triangle, kept


# Training


class _Basis(NamedTuple):
    powers: tuple[tuple[int, int], ...]  # by total degree
    columns: Floats  # orthonormal over the samples, one per pair of powers
    triangle: Floats
    workload_range_per_s: tuple[float, float]
    replicas_range: tuple[float, float]


def _basis(samples: Samples, max_degree: int) -> _Basis:
    """Of the highest degree for which there are samples enough."""
    count = len(samples.slow_ratio)
    if not all(np.isfinite(values).all() for values in samples):
        raise UnfitError("samples that are not numbers")
    if count < _SAMPLES_PER_COLUMN * len(_powers(1)):
        raise UnfitError(f"{count} samples are too few")
    workload_range, replicas_range = _range(samples.workload_per_s), _range(samples.replicas)
    if workload_range[0] == workload_range[1]:
        raise UnfitError("all samples are of one workload")
    fitting = max(degree for degree in range(max_degree + 1) if len(_powers(degree)) <= count)
    powers = _powers(fitting)
    design = _design(powers, workload_range, replicas_range, samples.workload_per_s, samples.replicas)
    columns, triangle, kept = orthogonal(design)
    powers = tuple(pair for pair, is_kept in zip(powers, kept, strict=True) if is_kept)
    degree = max(
        degree
        for degree in range(fitting + 1)
        if _SAMPLES_PER_COLUMN * sum(sum(pair) <= degree for pair in powers) <= count
    )
    used = sum(sum(pair) <= degree for pair in powers)
    return _Basis(powers[:used], columns[:, :used], triangle[:used, :used], workload_range, replicas_range)


def _powers(degree: int) -> tuple[tuple[int, int], ...]:
    return tuple((total - j, j) for total in range(degree + 1) for j in range(total + 1))


def _range(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _scaled(values: ArrayLike, value_range: tuple[float, float]) -> Floats:
    low, high = value_range
    half = (high - low) / 2 or 1.0
    return (np.asarray(values, dtype=np.float64) - (low + high) / 2) / half


def _design(
    powers: tuple[tuple[int, int], ...],
    workload_range_per_s: tuple[float, float],
    replicas_range: tuple[float, float],
    workload_per_s: ArrayLike,
    replicas: ArrayLike,
) -> Floats:
    workload, servers = np.broadcast_arrays(
        np.atleast_1d(_scaled(workload_per_s, workload_range_per_s)), _scaled(replicas, replicas_range)
    )
    of_workload, of_servers = np.array(powers).T
    return np.asarray(
        chebvander(workload, int(of_workload.max()))[:, of_workload]
        * chebvander(servers, int(of_servers.max()))[:, of_servers],
        dtype=np.float64,
    )


def _chosen_degree(basis: _Basis, slow_ratio: Floats, degree_by: DegreeChoice) -> int:
    """Algorithm 3, lines 5–13. As printed it compares predictions with themselves, from degree 0 on: the
    first always wins, and the model is a constant."""
    negligible = 1e-12 * (_root_mean_square(slow_ratio) or 1.0)
    totals = np.array([sum(pair) for pair in basis.powers])
    best, least_error = 0, np.inf
    residuals, leverages = slow_ratio.copy(), np.zeros(len(slow_ratio))
    for degree in range(int(totals.max()) + 1):
        columns = basis.columns[:, totals == degree]
        residuals -= columns @ (columns.T @ slow_ratio)
        leverages += (columns**2).sum(axis=1)
        if degree_by == "printed":
            error = _root_mean_square((slow_ratio - residuals) - (slow_ratio - residuals))
        elif degree == 0:
            continue
        elif degree_by == "cross_validated":  # the error on each sample of the fit to all others
            error = _root_mean_square(residuals / np.maximum(1 - leverages, 1e-9))
        else:
            error = _root_mean_square(residuals)
        if error < least_error - negligible:
            best, least_error = degree, error
    return best


def _inliers(columns: Floats, slow_ratio: Floats) -> NDArray[np.bool_]:
    """Outliers are what a robust fit (Huber's weights, then Tukey's) gives no weight at all."""
    weights = np.ones(len(slow_ratio))
    least = 1e-9 * (_root_mean_square(slow_ratio) or 1.0)
    for turn in range(20):
        weighted = columns * weights[:, None]
        gram = columns.T @ weighted + 1e-12 * np.eye(columns.shape[1])
        residuals = np.abs(slow_ratio - columns @ np.linalg.solve(gram, weighted.T @ slow_ratio))
        deviation = max(_MAD_TO_DEVIATION * float(np.median(residuals)), least)
        if turn < 10:
            weights = 1.345 * deviation / np.maximum(residuals, 1.345 * deviation)
        else:
            weights = np.clip(1 - (residuals / (_BISQUARE * deviation)) ** 2, 0, None) ** 2
    return weights > 0


def _seen(samples: Samples) -> tuple[Seen, ...]:
    ranges = {
        int(replicas): _range(samples.workload_per_s[samples.replicas == replicas])
        for replicas in np.unique(samples.replicas)
    }
    return tuple(Seen(replicas, low, high) for replicas, (low, high) in ranges.items())


def _root_mean_square(values: Floats) -> float:
    return float(np.sqrt(np.mean(values**2))) if len(values) else 0.0
