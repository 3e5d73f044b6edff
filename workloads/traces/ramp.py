"""A rate that changes evenly: what an autoscaler does while load grows or falls at a known pace."""

from __future__ import annotations

import numpy as np

from workloads.profile import FloatArray
from workloads.traces.formula import PositiveSeconds, Rate, formula_profile
from workloads.workload import Workload, register


@register("ramp")
def ramp(
    start_per_s: Rate = 0.0,
    end_per_s: Rate = 300.0,  # about the busiest hour of the replayed taxi days
    span_s: PositiveSeconds = 3600.0,
) -> Workload:
    """Evenly from nothing to 300 records/s within an hour, or between any two rates."""
    slope_per_s2 = (end_per_s - start_per_s) / span_s

    def cumulative(t_s: FloatArray) -> FloatArray:
        return np.asarray(start_per_s * t_s + slope_per_s2 * t_s**2 / 2)

    return Workload(
        formula_profile("ramp", "generated: an even change from one rate to another", cumulative, span_s)
    )
