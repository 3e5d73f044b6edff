"""Means, confidence intervals and comparisons over repeated runs.

Runs of two policies with one seed see the same arrivals, so they come in pairs: tests for pairs (Student's t,
Wilcoxon's signed ranks) see differences that Welch's test, for independent runs, may miss.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit
from scipy.stats import wilcoxon

from analysis.verdicts import Test, Verdict


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its confidence interval; the interval is NaN where one value alone cannot give any."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """How metric values of b differ from those of a; relative_* are shares of a's mean."""

    metric: str
    a: str
    b: str
    mean_a: float
    mean_b: float
    difference: float  # b - a
    low: float
    high: float
    relative: float  # (b - a) / a
    relative_low: float
    relative_high: float
    p: float  # two-sided; NaN where it cannot be known
    test: Test


def _known(values: ArrayLike) -> NDArray[np.float64]:
    array: NDArray[np.float64] = np.asarray(values, dtype=float).ravel()
    return array[np.isfinite(array)]


def _mean_and_variance(values: NDArray[np.float64]) -> tuple[float, float]:
    """The sample variance is NaN for fewer than two values; equal values have exactly none."""
    if values.size == 0:
        return nan, nan
    if values.size == 1:
        return float(values[0]), nan
    if np.ptp(values) == 0:  # the mean of equal floats may round, and leave a variance of 1e-33
        return float(values[0]), 0.0
    return float(values.mean()), float(values.var(ddof=1))


def estimate(values: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Mean and Student's t confidence interval; values that are not finite are left out."""
    known = _known(values)
    mean, variance = _mean_and_variance(known)
    if known.size < 2:
        return Estimate(mean, nan, nan, known.size)
    reach = _t_quantile(known.size - 1, confidence) * sqrt(variance / known.size)
    return Estimate(mean, mean - reach, mean + reach, known.size)


def _t_quantile(degrees: float, confidence: float) -> float:
    return float(stdtrit(degrees, (1 + confidence) / 2))


def welch(a: ArrayLike, b: ArrayLike) -> float:
    """The two-sided p of Welch's t-test; NaN where fewer than two values are known of either."""
    error, degrees = _difference_error(_known(a), _known(b))
    difference = _mean_and_variance(_known(b))[0] - _mean_and_variance(_known(a))[0]
    if not np.isfinite(error):
        return nan
    if error == 0:  # both without any spread: they differ for certain, or not at all
        return 1.0 if difference == 0 else 0.0
    return float(2 * stdtr(degrees, -abs(difference) / error))


def paired(a: ArrayLike, b: ArrayLike) -> float:
    """The two-sided p of the t-test for pairs; NaN where fewer than two pairs are known."""
    mean, variance = _mean_and_variance(_differences(a, b))
    n = _differences(a, b).size
    if n < 2:
        return nan
    if variance == 0:  # all pairs differ by the same: for certain, or not at all
        return 1.0 if mean == 0 else 0.0
    return float(2 * stdtr(n - 1, -abs(mean) / sqrt(variance / n)))


def signed_rank(a: ArrayLike, b: ArrayLike) -> float:
    """The two-sided p of Wilcoxon's test for pairs, which asks for no shape of the differences."""
    differences = _differences(a, b)
    if differences.size < 2:
        return nan
    return 1.0 if not differences.any() else float(wilcoxon(differences).pvalue)


def _differences(a: ArrayLike, b: ArrayLike) -> NDArray[np.float64]:
    """b - a, pair by pair; those with an unknown value are left out."""
    return _known(np.asarray(b, dtype=float) - np.asarray(a, dtype=float))


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Holm's adjusted p of tests made together: below the level, none of them is wrong but with that
    probability. What is not known stays so, and counts as no test."""
    values = np.asarray(p, dtype=float)
    adjusted = np.full(values.shape, nan)
    ascending = [place for place in np.argsort(values) if np.isfinite(values[place])]
    largest = 0.0
    for rank, place in enumerate(ascending):
        largest = max(largest, (len(ascending) - rank) * values[place])
        adjusted[place] = min(1.0, largest)
    return adjusted


def _difference_error(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """The standard error of the difference of means, and its degrees of freedom (Welch-Satterthwaite)."""
    if a.size < 2 or b.size < 2:
        return nan, nan
    share_a = _mean_and_variance(a)[1] / a.size
    share_b = _mean_and_variance(b)[1] / b.size
    total = share_a + share_b
    if total == 0:
        return 0.0, inf
    # Relative shares, since the squares of tiny variances underflow.
    degrees = 1 / ((share_a / total) ** 2 / (a.size - 1) + (share_b / total) ** 2 / (b.size - 1))
    return sqrt(total), degrees


def compare(
    metrics: pd.DataFrame, metric: str, a: str, b: str, confidence: float = 0.95, test: Test | None = None
) -> Comparison:
    """Compares two policies by one metric of their runs; `paired` takes those with the same seed together, as
    is done where they can be unless `test` says otherwise."""
    test = test or _fitting_test(metrics, a, b)
    values_a, values_b = _values(metrics, metric, a, b, test)
    mean_a, mean_b = _mean_and_variance(values_a)[0], _mean_and_variance(values_b)[0]
    difference = mean_b - mean_a
    error, degrees = _error(values_a, values_b, test)
    reach = 0.0 if error == 0 else _t_quantile(degrees, confidence) * error
    relative, relative_low, relative_high = _relative_change(values_a, values_b, confidence, test)
    return Comparison(
        metric=metric,
        a=a,
        b=b,
        mean_a=mean_a,
        mean_b=mean_b,
        difference=difference,
        low=difference - reach,
        high=difference + reach,
        relative=relative,
        relative_low=relative_low,
        relative_high=relative_high,
        p=p_of(values_a, values_b, test),
        test=test,
    )


def _fitting_test(metrics: pd.DataFrame, a: str, b: str) -> Test:
    """For pairs where both ran once with each of the same seeds, and so saw the same arrivals."""
    if "seed" not in metrics:
        return "welch"
    of_a, of_b = (sorted(metrics.loc[metrics["policy"] == policy, "seed"]) for policy in (a, b))
    return "paired" if of_a == of_b and len(set(of_a)) == len(of_a) else "welch"


def p_of(a: ArrayLike, b: ArrayLike, test: Test) -> float:
    return paired(a, b) if test == "paired" else welch(a, b)


def _values(
    metrics: pd.DataFrame, metric: str, a: str, b: str, test: Test
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if test == "welch":
        of_a, of_b = (metrics.loc[metrics["policy"] == policy, metric] for policy in (a, b))
        return _known(of_a), _known(of_b)
    return pairs_by_seed(metrics[metrics["policy"] == a], metrics[metrics["policy"] == b], metric)


def pairs_by_seed(
    runs_a: pd.DataFrame, runs_b: pd.DataFrame, metric: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What both have for the seeds that both ran with, in the same order."""
    both = pd.concat(
        [runs.set_index("seed")[metric].astype(float) for runs in (runs_a, runs_b)], axis=1, join="inner"
    ).to_numpy()
    known = both[np.isfinite(both).all(axis=1)]
    return known[:, 0], known[:, 1]


def _error(a: NDArray[np.float64], b: NDArray[np.float64], test: Test) -> tuple[float, float]:
    """The standard error of the difference of means, and its degrees of freedom."""
    if test == "welch":
        return _difference_error(a, b)
    if a.size < 2:
        return nan, nan
    return sqrt(_mean_and_variance(b - a)[1] / a.size), a.size - 1


def _relative_change(
    a: NDArray[np.float64], b: NDArray[np.float64], confidence: float, test: Test
) -> tuple[float, float, float]:
    """mean(b) / mean(a) - 1 with Fieller's interval, which knows that a's mean is uncertain too.

    The interval is NaN where a's mean cannot be told from zero: the ratio is then unbounded.
    """
    mean_a, variance_a = _mean_and_variance(a)
    mean_b, variance_b = _mean_and_variance(b)
    if not np.isfinite(mean_a) or not np.isfinite(mean_b) or mean_a == 0:
        return nan, nan, nan
    ratio = mean_b / mean_a
    error, degrees = _error(a, b, test)
    if not np.isfinite(error):
        return ratio - 1, nan, nan
    # All ratios r for which mean_b - r·mean_a is within its own error of zero: a quadratic in r.
    quantile = _t_quantile(degrees, confidence) if np.isfinite(degrees) else 0.0
    square_a = quantile**2 * variance_a / a.size
    square_b = quantile**2 * variance_b / b.size
    shared = quantile**2 * float(np.cov(a, b)[0, 1]) / a.size if test == "paired" else 0.0
    spread = mean_a**2 - square_a
    if spread <= 0:
        return ratio - 1, nan, nan
    centre = (mean_a * mean_b - shared) / spread
    reach = sqrt(max(0.0, (mean_a * mean_b - shared) ** 2 - spread * (mean_b**2 - square_b))) / spread
    return ratio - 1, centre - reach - 1, centre + reach - 1


def judge_order(
    published_a: float, published_b: float, ours_a: float, ours_b: float, p: float, level: float = 0.05
) -> Verdict:
    """Whether our means order a and b as published, p being that of their difference.

    A published tie agrees only with runs that do not differ significantly. Without a p, as with a single
    run each, nothing is significant.
    """
    is_significant = bool(p < level)
    if published_a == published_b:
        return "disagree" if is_significant else "agree"
    if not is_significant:
        return "not_significant"
    return "agree" if (ours_b > ours_a) == (published_b > published_a) else "disagree"
