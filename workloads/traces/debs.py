"""The DEBS 2015 load of the EDF paper (FGCS 2018, §9.1): five days of New York taxis within twelve hours.

Published: inter-arrival times cut by 10, the data made 5 times larger with surrogate events, about 150 to
500 tuples/s. Which five days is not told. Here: 7 to 11 January 2013 by their hourly drop-offs, whose own
range at that pace would be 32 to 488 tuples/s in the mean of an hour. Their smooth curve is laid evenly over
the published range, so that every single second is within it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fogscale.errors import FogscaleError
from workloads.replay import ReplaySettings
from workloads.traces.formula import PositiveRate, Rate
from workloads.traces.hourly import hourly_profile
from workloads.workload import Workload, register

SOURCE = (
    "stand-in for the EDF paper's five days (§9.1): taxi drop-offs per hour, 7 to 11 January 2013, rescaled"
)
START = "2013-01-07T00:00:00"  # New York time

# Drop-offs in each hour from midnight; twelve to a line.
JANUARY_7 = (
    8351, 5254, 3501, 2314, 2352, 3845, 10371, 19453, 25665, 25233, 20244, 18572,
    19332, 18723, 20820, 21842, 19236, 21977, 28228, 29092, 25054, 21510, 20262, 15549,
)  # fmt: skip
JANUARY_8 = (
    10392, 6331, 4102, 2603, 2366, 3484, 9856, 20296, 26921, 26927, 22717, 20457,
    21691, 21001, 22601, 23211, 19730, 22779, 29555, 30813, 27421, 26293, 23717, 16634,
)  # fmt: skip
JANUARY_9 = (
    10945, 7043, 4350, 3062, 2774, 3551, 10004, 20324, 27135, 26885, 22156, 20855,
    22615, 21860, 23298, 24057, 19720, 22388, 30042, 31813, 29097, 28135, 25646, 19237,
)  # fmt: skip
JANUARY_10 = (
    13340, 8169, 5193, 3334, 3031, 3658, 10105, 20624, 27547, 27671, 23585, 21424,
    22853, 21717, 23854, 23945, 20761, 23203, 31609, 34190, 31753, 30839, 29461, 25029,
)  # fmt: skip
JANUARY_11 = (
    18324, 12123, 7996, 5221, 4074, 3966, 10380, 19817, 27129, 27367, 23163, 21885,
    23800, 24697, 24834, 25570, 20525, 22251, 29821, 35159, 35024, 33019, 32043, 31337,
)  # fmt: skip
FIVE_DAYS = JANUARY_7 + JANUARY_8 + JANUARY_9 + JANUARY_10 + JANUARY_11

# Surrogate events are new ones with times of their own, not copies that arrive together: a scale of 5.
PAPER_REPLAY = ReplaySettings(speed=10.0, scale=5.0)


@register("debs")
def debs(low_per_s: Rate = 150.0, high_per_s: PositiveRate = 500.0) -> Workload:
    """Five days of taxis in twelve hours, 150 to 500 tuples/s, as in the EDF paper (§9.1); a stand-in."""
    if high_per_s <= low_per_s:
        raise FogscaleError("workload 'debs': high_per_s must be above low_per_s")
    counted = hourly_profile("debs", SOURCE, START, FIVE_DAYS)
    step_s = PAPER_REPLAY.speed  # one second of the replay
    dropoffs = counted.between(np.linspace(0.0, counted.span_s, round(counted.span_s / step_s) + 1))
    position = (dropoffs - dropoffs.min()) / np.ptp(dropoffs)  # 0 in the quietest second, 1 in the busiest
    tuples = (low_per_s + position * (high_per_s - low_per_s)) / PAPER_REPLAY.scale
    profile = replace(counted, counts=tuples, step_s=step_s, smooth=False)
    return Workload(profile, PAPER_REPLAY, records="debs_route")
