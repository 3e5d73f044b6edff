"""What follows from published facts: what replicas can do, and how bursty the ranking operators are.

Thresholds without noise are a hysteresis on the offered rate alone, whose mean number of replicas depends on
nothing but the capacity of a replica. Six published numbers go in (FACTS); everything else in Table 1 is
output. To see the results anew:

    python -m paper_figures.edf.calibration
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray

from controller.experiment import Experiment, varied
from paper_figures.published import load as load_published
from workloads import catalog
from workloads.replay import offered_rate_per_s

FOLDER = Path(__file__).parent
PERIOD_S = 30.0  # T_OM
SLACK_RATIO = 0.75  # c
OPERATORS = 8  # replicas that nobody can take away (footnote 4)
SMALL = ("parser", "filterByCoordinates", "computeRouteID", "countByWindow")
# Thresholds at which, by their mean replicas, one operator alone is scaled; the lowest scales all.
ALONE = {"th_70": 0.7, "th_60": 0.6, "th_50": 0.5, "th_40": 0.4}
LOWEST = ("th_30", 0.3)
R_MAX_MS, SHARE_MS = 250.0, 210.0  # of the job, and of partialRank (§9)
SKIPPED_S = 1800.0  # of every run, in all metrics

Rates = NDArray[np.float64]


class Facts(NamedTuple):
    """What calibration takes from Table 1."""

    replicas: Mapping[str, float]  # mean numbers, all operators
    violations: float  # the share of time with thresholds of 0.7


class Found(NamedTuple):
    rank_per_s: float  # what a replica of partialRank can do
    small_per_s: float  # … of the four others that may be scaled
    rank_variability: float  # (SCV of arrivals + SCV of service) / 2, of partialRank
    rate_at_bound_per_s: float  # at which two replicas of partialRank just take 210 ms
    global_variability: float  # of globalRank, which takes what is left of 250 ms then


def facts() -> Facts:
    table = load_published(FOLDER).table
    replicas = {name: table[name]["mean_instances"] for name in (*ALONE, LOWEST[0])}
    return Facts(replicas, table["th_70"]["violation_timeshare"] / 100)


def offered() -> Rates:
    """The mean rate of every period."""
    workload = catalog.load("debs")
    return offered_rate_per_s(workload.profile, workload.replay, PERIOD_S)


def held_by_thresholds(rates_per_s: Rates, one_per_s: float, high_ratio: float, most: int) -> Rates:
    """Replicas of one operator, period by period, if nothing is noisy (§5.1)."""
    replicas, held = 1, []
    for rate_per_s in rates_per_s:
        if rate_per_s / (replicas * one_per_s) > high_ratio and replicas < most:
            replicas += 1
        elif replicas > 1 and rate_per_s / ((replicas - 1) * one_per_s) < SLACK_RATIO * high_ratio:
            replicas -= 1
        held.append(replicas)
    return np.array(held, dtype=float)


def found(given: Facts, rates_per_s: Rates) -> Found:
    rank_per_s = _rank_capacity(given, rates_per_s)
    small_per_s = _small_capacity(given, rates_per_s, rank_per_s)
    # With a line for each replica, a record is there for s (1 + v ρ / (1 − ρ)): the ρ / (1 − ρ) that as much
    # of the time is above as R_max is exceeded, is the one at which partialRank takes its share.
    load = rates_per_s / (rank_per_s * held_by_thresholds(rates_per_s, rank_per_s, 0.7, 6))
    counted = (load / (1 - load))[round(SKIPPED_S / PERIOD_S) :]
    at_bound = float(np.quantile(counted, 1 - given.violations))
    service_ms = 1000 / rank_per_s
    rate_per_s = 2 * rank_per_s * at_bound / (1 + at_bound)
    small_ms = 1000 / (small_per_s - rate_per_s)  # M/M/1
    left_ms = R_MAX_MS - SHARE_MS - (len(SMALL) + 1) * small_ms  # the source is one like them
    small_load = rate_per_s / small_per_s
    return Found(
        rank_per_s,
        small_per_s,
        (SHARE_MS / service_ms - 1) / at_bound,
        rate_per_s,
        (left_ms * small_per_s / 1000 - 1) * (1 - small_load) / small_load,
    )


def _rank_capacity(given: Facts, rates_per_s: Rates) -> float:
    """Where only partialRank is scaled: what is above one replica of each operator is its own."""

    def error(one_per_s: float) -> float:
        off = [
            held_by_thresholds(rates_per_s, one_per_s, ratio, 6).mean()
            - (given.replicas[name] - OPERATORS + 1)
            for name, ratio in ALONE.items()
        ]
        return float(np.square(off).sum())

    return float(min(np.arange(300.0, 800.0, 5.0).tolist(), key=error))


def _small_capacity(given: Facts, rates_per_s: Rates, rank_per_s: float) -> float:
    """At the lowest threshold the rest is shared by the four others."""
    name, ratio = LOWEST
    own = held_by_thresholds(rates_per_s, rank_per_s, ratio, 6).mean() - 1
    wanted = 1 + (given.replicas[name] - OPERATORS - own) / len(SMALL)

    def error(one_per_s: float) -> float:
        return abs(float(held_by_thresholds(rates_per_s, one_per_s, ratio, 3).mean()) - float(wanted))

    return float(min(np.arange(700.0, 2500.0, 5.0).tolist(), key=error))


def calibrated(
    experiment: Experiment, _drawn: Mapping[str, float], small_violate: bool = False
) -> Experiment:
    """What else follows: with `small_violate`, the four small operators are so bursty that they take their
    published 5 ms where partialRank takes its 210."""
    if not small_violate:
        return experiment
    result = found(facts(), offered())
    load = result.rate_at_bound_per_s / result.small_per_s
    variability = (5.0 * result.small_per_s / 1000 - 1) * (1 - load) / load
    scv = round(2 * variability - 1, 1)
    return varied(experiment, {f"testbed.arrival_scv.{name}": scv for name in SMALL})


def main() -> None:
    result = found(facts(), offered())
    print(
        yaml.safe_dump({name: round(value, 1) for name, value in result._asdict().items()}, sort_keys=False),
        end="",
    )


if __name__ == "__main__":
    main()
