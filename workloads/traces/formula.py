"""Loads given by a formula: records counted exactly in each step, from the integral of the rate.

Rates sampled at some instants and multiplied by the step would miss or repeat what happens in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Annotated

import numpy as np
from pydantic import Field

from fogscale.errors import FogscaleError
from fogscale.settings import PositiveSeconds, Seconds
from workloads.profile import FloatArray, RateProfile

__all__ = [
    "PositiveRate",
    "PositiveSeconds",
    "Rate",
    "Seconds",
    "formula_profile",
    "levels_profile",
    "levels_within",
]

Rate = Annotated[float, Field(ge=0)]  # records/s
PositiveRate = Annotated[float, Field(gt=0)]

LEAST_STEPS = 1000  # of short loads, so that a second is not too coarse for them
MOST_STEPS = 200_000  # of loads of several days
MOST_LEVELS = 100_000


def formula_profile(
    name: str, source: str, cumulative: Callable[[FloatArray], FloatArray], span_s: float
) -> RateProfile:
    """A profile of one-second steps (finer or coarser at the extremes), from the records until each time."""
    steps = _steps(span_s)
    counts = np.diff(cumulative(np.linspace(0.0, span_s, steps + 1)))
    return RateProfile(name, source, np.maximum(counts, 0.0), span_s / steps)


def levels_profile(
    name: str, source: str, durations_s: Sequence[float], rates_per_s: Sequence[float]
) -> RateProfile:
    """Rates that are held, one after the other, with jumps between them."""
    times_s = np.concatenate(([0.0], np.cumsum(durations_s)))
    records = np.concatenate(([0.0], np.cumsum(np.multiply(durations_s, rates_per_s))))
    return formula_profile(name, source, lambda t_s: np.interp(t_s, times_s, records), float(times_s[-1]))


def levels_within(span_s: float, level_s: float, name: str) -> int:
    """How many levels are begun within a span."""
    if span_s / level_s > MOST_LEVELS:
        raise FogscaleError(f"workload '{name}': more than {MOST_LEVELS} levels: raise level_s")
    return ceil(span_s / level_s - 1e-9)


def _steps(span_s: float) -> int:
    seconds = ceil(span_s)
    if seconds > MOST_STEPS:
        return MOST_STEPS
    return seconds * ceil(LEAST_STEPS / seconds)  # whole parts of a second: jumps at whole seconds stay sharp
