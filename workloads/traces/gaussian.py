"""The bell-shaped loads of the thesis (§5.2 and §5.3): from nothing to a peak and back.

Published are the shape ("begins from zero workload, smoothly increasing to its peak and then gradually
returns to zero"), both spans, and that the model learnt from the long one covers 0 to 4500 records/s (§5.2).
Assumed are the peak of the short one (the same) and the width: three standard deviations on each side.
"""

from __future__ import annotations

from math import erf, exp, pi, sqrt
from typing import Annotated

import numpy as np
from pydantic import Field

from workloads.profile import FloatArray
from workloads.traces.formula import PositiveRate, PositiveSeconds, formula_profile
from workloads.workload import Workload, register

HOUR_S = 3600.0

WidthRatio = Annotated[float, Field(ge=1e-3, le=1)]


@register("gaussian")
def gaussian(
    peak_per_s: PositiveRate = 4500.0,
    span_s: PositiveSeconds = 5 * HOUR_S,
    deviation_ratio: WidthRatio = 1 / 6,  # standard deviation, as a share of the span
) -> Workload:
    """Five hours from nothing to a peak and back to nothing, as in the thesis (§5.2)."""
    source = "generated: thesis §5.2, shape, span and peak published, width assumed"
    return _bell("gaussian", source, peak_per_s, span_s, deviation_ratio)


@register("gaussian_low_variance")
def gaussian_low_variance(
    peak_per_s: PositiveRate = 4500.0,
    span_s: PositiveSeconds = 1.5 * HOUR_S,
    deviation_ratio: WidthRatio = 1 / 6,
) -> Workload:
    """The same bell within an hour and a half: the rapidly changing load of the thesis (§5.3)."""
    source = "generated: thesis §5.3, shape and span published, peak and width assumed"
    return _bell("gaussian_low_variance", source, peak_per_s, span_s, deviation_ratio)


def _bell(name: str, source: str, peak_per_s: float, span_s: float, deviation_ratio: float) -> Workload:
    """A Gaussian curve, lowered and stretched so that it touches zero at both ends."""
    deviation_s = deviation_ratio * span_s
    foot = exp(-(0.5**2) / (2 * deviation_ratio**2))  # of a curve whose peak is 1

    def cumulative(t_s: FloatArray) -> FloatArray:
        z = (t_s - span_s / 2) / (sqrt(2) * deviation_s)
        area = sqrt(pi / 2) * deviation_s * np.array([erf(x) for x in z.tolist()])
        return np.asarray(peak_per_s / (1 - foot) * (area - foot * t_s))

    return Workload(formula_profile(name, source, cumulative, span_s), records="click")
