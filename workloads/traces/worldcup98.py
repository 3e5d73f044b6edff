"""The web site of the 1998 football World Cup on its opening day, 10 June (day 46 of the public logs)."""

from __future__ import annotations

from workloads.replay import ReplaySettings
from workloads.traces.hourly import hourly_profile
from workloads.workload import Workload, register

SOURCE = "World Cup 98 web requests per hour, day 46 (10 June 1998), counted from the public server logs"
START = "1998-06-09T22:00:00+00:00"  # midnight in Paris

# Requests in each hour from 22:00 GMT of 9 June; eight to a line.
DAY_46 = (
    800714, 773717, 794711, 821524, 796687, 840942, 764816, 770631,
    931034, 1075871, 1174470, 1237873, 1272303, 1523810, 1890231, 2257070,
    2730387, 5143840, 6516935, 5681605, 3005118, 3161861, 3830756, 2598209,
)  # fmt: skip

# The site served 1,810 requests/s in its busiest hour, far beyond a few Raspberry Pis. At speed 10, one of 61
# makes that hour 297 records/s; the taxi replay's busiest is 295: both load the same testbed alike.
FOG_REPLAY = ReplaySettings(speed=10.0, copies=1, scale=1 / 61)


@register("worldcup98")
def worldcup98() -> Workload:
    """The World Cup web site on its opening day, ten times as fast, one request in 61."""
    return Workload(
        hourly_profile("worldcup98", SOURCE, START, DAY_46), FOG_REPLAY, records="worldcup_request"
    )
