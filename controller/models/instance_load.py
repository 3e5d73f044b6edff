"""What an operator's instances report of their load, as arrays [instance, metric] for filters to work on."""

from __future__ import annotations

from math import inf, isfinite, isnan, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.model import Observation

METRICS = ("cpu", "memory")
LARGEST_RATIO = 1.5  # a gauge may read a little above 1; anything beyond is no ratio
Loads = NDArray[np.float64]


class LoadSample(NamedTuple):
    """One look at an operator; NaN means "not measured"."""

    time_s: float
    ids: tuple[str, ...]  # of the instances that run
    loads: Loads  # [instance, metric]
    rate_per_s: float | None  # D of the EKF paper: the incoming data it measures at each operator (§2)


def load_sample(observation: Observation, operator: str) -> LoadSample:
    """What the observation shows of an operator's running instances; what is no ratio counts as missing."""
    seen = observation.operators[operator]
    running = [instance for instance in seen.instances if instance.state == "running"]
    # Plain Python up to the array: for a handful of instances twice as quick as array operations.
    rows = [(_ratio(one.cpu_ratio), _ratio(one.memory_ratio)) for one in running]
    loads = np.array(rows) if rows else np.empty((0, len(METRICS)))
    rate = seen.arrival_rate_per_s
    is_rate = rate is not None and 0.0 <= rate < inf  # NaN is not
    measured_s = observation.time_s if observation.measured_s is None else observation.measured_s
    return LoadSample(measured_s, tuple([one.id for one in running]), loads, rate if is_rate else None)


def _ratio(value: float | None) -> float:
    return value if value is not None and 0.0 <= value <= LARGEST_RATIO else nan


def mean_over_instances(loads: Loads) -> list[float]:
    """Per metric, over the instances for which there is a value; NaN where there is none."""
    instances = len(loads)
    if instances == 0:
        return [nan] * len(METRICS)
    means = [total / instances for total in np.add.reduce(loads, 0).tolist()]
    if not any(map(isnan, means)):  # the usual case, and quick
        return means
    known = np.isfinite(loads)
    sums, counts = np.where(known, loads, 0.0).sum(axis=0).tolist(), known.sum(axis=0).tolist()
    return [total / count if count else nan for total, count in zip(sums, counts, strict=True)]


def is_complete(loads: Loads) -> bool:
    """Whether nothing is missing; one sum is quicker than a look at each."""
    return isfinite(np.add.reduce(loads, None))
