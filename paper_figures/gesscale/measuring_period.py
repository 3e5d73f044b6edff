"""What Table III tells by itself: over which period it was measured, how often, and the mean ideal.

A share of time is a number of samples, so all eight published ones must be k/N with whole k, after rounding
to two digits. The cost is the replicas held in each sample: over a period T, it is
T·(ideal + accuracy_O − accuracy_U), since supply is zero while the job is stopped and once everything has
been processed, and demand after the load. So T is the slope of cost over accuracy_O − accuracy_U, and the
mean ideal follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

MOST_SAMPLES = 1440
FEWEST_SAMPLES = 100
LOAD_MIN = 288.0  # §V-A-b: 48 h at ten times their pace

Row = Mapping[str, float]


@dataclass(frozen=True)
class Period:
    """How Table III was measured. The ideal is the mean over the period, and while there is load."""

    samples: int
    minutes: float
    residual: float  # the largest, of the cost
    ideals: tuple[float, ...]  # of each row

    @property
    def interval_s(self) -> float:
        return 60 * round(self.minutes) / self.samples

    @property
    def mean_ideal(self) -> float:
        return float(np.mean(self.ideals))

    @property
    def mean_ideal_under_load(self) -> float:
        return self.mean_ideal * round(self.minutes) / LOAD_MIN


def period_of(table: Mapping[str, Row]) -> Period:
    """From the rows of the published table alone."""
    rows = list(table.values())
    shares = [row[name] for row in rows for name in ("timeshare_o", "timeshare_u")]
    samples = sample_counts(shares)
    surplus = np.array([row["accuracy_o"] - row["accuracy_u"] for row in rows])
    costs = np.array([row["cost"] for row in rows])
    minutes, offset = np.polyfit(surplus, costs, 1)
    residual = np.abs(costs - (minutes * surplus + offset)).max()
    ideals = costs / round(float(minutes)) - surplus
    return Period(samples[0], float(minutes), float(residual), tuple(map(float, ideals)))


def sample_counts(
    shares_percent: Iterable[float], fewest: int = FEWEST_SAMPLES, most: int = MOST_SAMPLES
) -> list[int]:
    """The numbers of samples of which all shares, in % with two digits, are a whole number."""
    shares = list(shares_percent)
    return [n for n in range(fewest, most + 1) if all(_is_share(share, n) for share in shares)]


def _is_share(percent: float, samples: int) -> bool:
    return abs(100 * round(percent / 100 * samples) / samples - percent) <= 0.005 + 1e-9
