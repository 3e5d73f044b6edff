"""The Pyramid scenario of the EKF paper (PVLDB 2019, §3.2): stairs up, stairs down, again and again."""

from __future__ import annotations

from itertools import chain, cycle, islice

import numpy as np

from fogscale.errors import FogscaleError
from workloads.traces.formula import PositiveRate, PositiveSeconds, Rate, levels_profile, levels_within
from workloads.workload import Workload, register

SOURCE = "generated: EKF paper §3.2, 0 to 60 images/s by 15, 130 s a level, in runs of 2700 s (§3.3)"
MOST_RISES = 100_000


@register("pyramid")
def pyramid(
    low_per_s: Rate = 0.0,
    high_per_s: PositiveRate = 60.0,
    rise_per_s: PositiveRate = 15.0,  # from one level to the next
    level_s: PositiveSeconds = 130.0,
    span_s: PositiveSeconds = 2700.0,
) -> Workload:
    """Stairs from 0 to 60 images/s and back, repeated for 45 minutes, as in the EKF paper (§3.2)."""
    levels = levels_within(span_s, level_s, "pyramid")
    rises = round(min((high_per_s - low_per_s) / rise_per_s, MOST_RISES + 1))
    if not 1 <= rises <= MOST_RISES or abs(low_per_s + rises * rise_per_s - high_per_s) > 1e-9 * high_per_s:
        raise FogscaleError(
            f"workload 'pyramid': no whole number of rises of {rise_per_s:g}, {MOST_RISES} at most, leads"
            f" from {low_per_s:g} to {high_per_s:g}: change rise_per_s"
        )
    # Top and bottom are one level each: Figures 8 and 9 show the first fall at 650 s and the next near 800 s.
    heights = chain(range(rises), range(rises, 0, -1))
    rates_per_s = [low_per_s + height * rise_per_s for height in islice(cycle(heights), levels)]
    durations_s = np.full(levels, level_s)
    durations_s[-1] = span_s - (levels - 1) * level_s
    return Workload(levels_profile("pyramid", SOURCE, durations_s.tolist(), rates_per_s))
