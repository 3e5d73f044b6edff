"""A wave: load that comes and goes at one pace, the plainest day and night."""

from __future__ import annotations

import numpy as np

from fogscale.errors import FogscaleError
from workloads.profile import FloatArray
from workloads.traces.formula import PositiveRate, PositiveSeconds, Rate, formula_profile
from workloads.workload import Workload, register


@register("sine")
def sine(
    mean_per_s: PositiveRate = 150.0,
    amplitude_per_s: Rate = 120.0,
    period_s: PositiveSeconds = 3600.0,
    span_s: PositiveSeconds = 4 * 3600.0,
) -> Workload:
    """Four waves of an hour each, between 30 and 270 records/s, that begin at their lowest."""
    if amplitude_per_s > mean_per_s:
        raise FogscaleError(
            f"workload 'sine': an amplitude of {amplitude_per_s:g} around {mean_per_s:g} falls below 0:"
            " lower amplitude_per_s"
        )
    turns_per_s = 2 * np.pi / period_s

    def cumulative(t_s: FloatArray) -> FloatArray:
        return np.asarray(mean_per_s * t_s - amplitude_per_s / turns_per_s * np.sin(turns_per_s * t_s))

    return Workload(formula_profile("sine", "generated: a sine wave around a mean rate", cumulative, span_s))
