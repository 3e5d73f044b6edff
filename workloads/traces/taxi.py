"""New York taxis on 1 and 2 May 2013, replayed as the Gesscale paper does (ICCCN 2021)."""

from __future__ import annotations

from workloads.replay import ReplaySettings
from workloads.traces.hourly import hourly_profile
from workloads.workload import Workload, register

SOURCE = "New York taxi drop-offs per hour, 1 and 2 May 2013, counted from the public trip records"
START = "2013-05-01T00:00:00"  # New York time

# Drop-offs in each hour from midnight; twelve to a line.
MAY_1 = (
    15906, 9316, 5614, 3672, 3192, 3943, 11020, 20739, 26718, 26834, 23971, 22538,
    23939, 23011, 24065, 24339, 20191, 21146, 29209, 34213, 32825, 32242, 31434, 26173,
)  # fmt: skip
MAY_2 = (
    18133, 10798, 6704, 4188, 3555, 4349, 11338, 21469, 27483, 27426, 24336, 23182,
    25039, 23889, 24708, 24822, 20245, 22163, 31233, 35453, 33981, 34062, 33052, 30419,
)  # fmt: skip

# "10 s of real-world events are replayed in 1 s"; "three identical records for each record in the dataset".
PAPER_REPLAY = ReplaySettings(speed=10.0, copies=3)


@register("taxi")
def taxi() -> Workload:
    """Two days of New York taxi rides, ten times as fast and in three copies, as in the Gesscale paper."""
    return Workload(hourly_profile("taxi", SOURCE, START, MAY_1 + MAY_2), PAPER_REPLAY)
