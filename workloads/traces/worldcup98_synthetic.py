"""The three hours that the thesis (§5.4) made from the World Cup 98 logs, as far as they are told.

Published: 3 hours, "only a part of the original workload distribution", sampled every 5 s; one and two
TaskManagers are explored until sample 800; parallelism falls near samples 900 to 1000; the load near sample
1700 is "relatively steady". Not published: the day, the hours and the rates. Assumed here: the hours from
17:00 to 23:00 of the opening day (Paris time) in half the time, with the requests per second of the logs.
They are highest near sample 550, fall after 900 and change little near 1700.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from fogscale.errors import FogscaleError
from workloads.profile import RateProfile
from workloads.replay import ReplaySettings
from workloads.traces.formula import PositiveSeconds
from workloads.traces.hourly import HOUR_S, hourly_profile
from workloads.traces.worldcup98 import DAY_46
from workloads.workload import Workload, register

SOURCE = "stand-in for the thesis' load (§5.4): World Cup 98 requests, 10 June 1998, hours and rates assumed"
HOURS = len(DAY_46)
MINUTE_S = 60.0


@register("worldcup98_synthetic")
def worldcup98_synthetic(
    first_hour: Annotated[int, Field(ge=0, lt=HOURS)] = 17,  # of the opening day, from midnight in Paris
    last_hour: Annotated[int, Field(ge=1, le=HOURS)] = 23,  # that does not belong to it any more
    span_s: PositiveSeconds = 3 * HOUR_S,
) -> Workload:
    """Three hours made from the World Cup's opening day, as the thesis did (§5.4); a stand-in."""
    if last_hour <= first_hour:
        raise FogscaleError("workload 'worldcup98_synthetic': last_hour must come after first_hour")
    hours = last_hour - first_hour
    day = hourly_profile("worldcup98", SOURCE, None, DAY_46)
    # Cut out by the minute: the curve at the edges is that of the whole day.
    counts = day.between(np.arange(first_hour * 60, last_hour * 60 + 1) * MINUTE_S)
    start = f"1998-06-10T{first_hour:02d}:00:00+02:00"
    profile = RateProfile("worldcup98_synthetic", SOURCE, counts, MINUTE_S, start)
    # Faban's files hold the rates that were counted (§2.8): time is compressed, the rate is not.
    speed = hours * HOUR_S / span_s
    return Workload(profile, ReplaySettings(speed=speed, scale=1 / speed), records="worldcup_request")
