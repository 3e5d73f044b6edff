"""What the EKF paper determines before a run: a and b by ordinary least squares (§2.3), R at constant load
(§2.4). From recorded samples, or step by step while a policy runs.

The regression is Δz = a·D + b·ΔD on the mean over instances, with D as a deviation (see RateInput). Steps
in which instances came or went, something was not measured, or a load stood at its limit say nothing of a
and b, and are left out. a belongs to the interval between samples it was fitted at.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from controller.model import Observation
from controller.models.instance_load import METRICS, Loads, LoadSample, load_sample, mean_over_instances
from controller.models.kalman import RateInput, SystemInput
from fogscale.errors import FogscaleError

LEAST_STEPS = 20
SATURATED_RATIO = 0.98
_SINGULAR = 1e-9  # of the product of the variances: the two inputs are one

RateOf = Literal["per_instance", "operator"]


class Sensitivity(NamedTuple):
    """By how much each metric moves in a step."""

    level: tuple[float, ...]  # a, per record/s
    change: tuple[float, ...]  # b, per record/s
    problem: str = ""  # why it is less than a full fit


NO_SENSITIVITY = Sensitivity((0.0,) * len(METRICS), (0.0,) * len(METRICS))


class SensitivityFit:
    """Least squares for two unknowns from running sums. Plain floats: arrays this small cost more."""

    def __init__(self) -> None:
        self.steps = 0
        self._level2 = self._cross = self._change2 = 0.0
        self._level_move = [0.0] * len(METRICS)
        self._change_move = [0.0] * len(METRICS)

    def add(self, given: SystemInput, before: list[float], now: list[float]) -> None:
        """One step: the input, and the mean loads around it. What cannot be learnt from is left out."""
        if not all(0.0 <= load < SATURATED_RATIO for load in (*before, *now)):  # False for NaN
            return
        level, change = float(given[0]), float(given[1])
        self.steps += 1
        self._level2 += level * level
        self._cross += level * change
        self._change2 += change * change
        for i, (old, new) in enumerate(zip(before, now, strict=True)):
            self._level_move[i] += level * (new - old)
            self._change_move[i] += change * (new - old)

    def fitted(self) -> Sensitivity:
        """As much as the steps can tell: both, b alone, or neither."""
        if self.steps < LEAST_STEPS:
            return NO_SENSITIVITY._replace(problem=f"{self.steps} of {LEAST_STEPS} steps to fit a and b")
        if self._change2 <= 0.0:
            return NO_SENSITIVITY._replace(problem="the rate never changed: nothing to fit a and b to")
        determinant = self._level2 * self._change2 - self._cross**2
        if determinant <= _SINGULAR * self._level2 * self._change2:
            change = tuple(move / self._change2 for move in self._change_move)
            return Sensitivity(NO_SENSITIVITY.level, change, "D and ΔD moved as one: only b could be fitted")
        return Sensitivity(
            level=tuple(
                (of_level * self._change2 - of_change * self._cross) / determinant
                for of_level, of_change in zip(self._level_move, self._change_move, strict=True)
            ),
            change=tuple(
                (of_change * self._level2 - of_level * self._cross) / determinant
                for of_level, of_change in zip(self._level_move, self._change_move, strict=True)
            ),
        )


def input_of(rate: RateInput, sample: LoadSample, of: RateOf) -> SystemInput:
    """u_t of the whole operator, or of each instance (§3.1: records are dealt out round-robin)."""
    among = max(1, len(sample.ids)) if of == "per_instance" else 1
    return rate.step(sample.time_s, sample.rate_per_s, among)


def fitted_sensitivity(
    samples: Iterable[LoadSample], rate: RateInput | None = None, of: RateOf = "operator"
) -> Sensitivity:
    """a and b of recorded samples, in the order of time."""
    rate = rate or RateInput()
    inputs = ((sample, input_of(rate, sample, of)) for sample in samples)
    fit = SensitivityFit()
    for (before, _), (now, given) in pairwise(inputs):
        if before.ids == now.ids and now.rate_per_s is not None:
            fit.add(given, mean_over_instances(before.loads), mean_over_instances(now.loads))
    return fit.fitted()


def measurement_variance(samples: Iterable[LoadSample]) -> tuple[float, ...]:
    """R: what instances read around their own means while the load is constant, pooled over instances."""
    readings: dict[str, list[Loads]] = {}
    for sample in samples:
        for name, loads in zip(sample.ids, sample.loads, strict=True):
            readings.setdefault(name, []).append(loads)
    squares, freedom = np.zeros(len(METRICS)), np.zeros(len(METRICS))
    for seen in readings.values():
        table = np.array(seen)
        known = np.isfinite(table)
        counts = known.sum(axis=0)
        means = np.where(known, table, 0.0).sum(axis=0) / np.maximum(counts, 1)
        squares += (np.where(known, table - means, 0.0) ** 2).sum(axis=0)
        freedom += np.maximum(counts - 1, 0)
    if (freedom < LEAST_STEPS - 1).any():
        raise FogscaleError(f"too few readings for R: record {LEAST_STEPS} of each metric at constant load")
    return tuple((squares / freedom).tolist())


def calibrated_parameters(
    varied: Iterable[Observation], constant: Iterable[Observation], operator: str, of: RateOf = "operator"
) -> dict[str, Any]:
    """Parameters of the policy `ekf`, ready for an experiment's YAML: a and b from observations in which the
    rate changes, R from observations at constant load."""
    sensitivity = fitted_sensitivity((load_sample(seen, operator) for seen in varied), of=of)
    if sensitivity.problem:
        raise FogscaleError(
            f"a and b of '{operator}': {sensitivity.problem}; record a load that rises and falls"
        )
    variance = measurement_variance(load_sample(seen, operator) for seen in constant)
    return {
        "level_sensitivity": dict(zip(METRICS, sensitivity.level, strict=True)),
        "change_sensitivity": dict(zip(METRICS, sensitivity.change, strict=True)),
        "measurement_variance": dict(zip(METRICS, variance, strict=True)),
        "rate": of,
    }
