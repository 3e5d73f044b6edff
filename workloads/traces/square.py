"""The Square scenario of the EKF paper (PVLDB 2019, §3.2): sudden changes between little and much."""

from __future__ import annotations

import numpy as np

from workloads.traces.formula import PositiveRate, PositiveSeconds, Rate, levels_profile, levels_within
from workloads.workload import Workload, register

SOURCE = "generated: EKF paper §3.2, 1 and 65 images/s in turn, 370 s each, in runs of 2700 s (§3.3)"


@register("square")
def square(
    low_per_s: Rate = 1.0,
    high_per_s: PositiveRate = 65.0,
    level_s: PositiveSeconds = 370.0,
    span_s: PositiveSeconds = 2700.0,
) -> Workload:
    """Jumps between 1 and 65 images/s every 370 s for 45 minutes, as in the EKF paper (§3.2)."""
    levels = levels_within(span_s, level_s, "square")
    rates_per_s = np.where(np.arange(levels) % 2 == 0, low_per_s, high_per_s)
    durations_s = np.full(levels, level_s)
    durations_s[-1] = span_s - (levels - 1) * level_s
    return Workload(levels_profile("square", SOURCE, durations_s.tolist(), rates_per_s.tolist()))
