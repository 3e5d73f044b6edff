"""Several workloads, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Annotated

from pydantic import Field

from fogscale.errors import FogscaleError
from workloads.composition import Part, in_replay_time, load_part, replay_factor
from workloads.excerpts import one_after_the_other
from workloads.profile import RateProfile
from workloads.replay import ReplaySettings, replay_span_s
from workloads.workload import Workload, register


@register("joined")
def joined(of: Annotated[list[Part], Field(min_length=1)]) -> Workload:
    """Several workloads one after the other, each at its own pace: of=[ramp, taxi]."""
    parts = [load_part(part) for part in of]
    if len({frozenset(part.inputs) for part in parts}) > 1:
        raise FogscaleError(
            "workload 'joined': its parts enter at different operators: join only such as drive the same"
        )
    # Copies that arrive together stay so if all parts have as many; otherwise they count as records.
    copies = gcd(*(part.replay.copies for part in parts))
    name = " + ".join(part.name for part in parts)
    inputs = {
        operator: _chain(
            f"{name} {operator}", [(part.inputs[operator], part.replay) for part in parts], copies
        )
        for operator in parts[0].inputs
    }
    profile = _chain(name, [(part.profile, part.replay) for part in parts], copies)
    # Chance is in the events of traces already; where any part leaves it to a draw, all do.
    are_even = all(part.replay.arrivals == "even" for part in parts)
    replay = ReplaySettings(copies=copies, arrivals="even" if are_even else "poisson")
    if not any(part.excerpts for part in parts):
        return Workload(profile, replay, parts[0].records, inputs)
    if not (are_even and all(part.excerpts for part in parts)):
        return Workload(profile, replay, None, inputs)  # nobody can say which events are when
    offered = [
        (part.excerpts, part.profile.total_records * replay_factor(part.replay, copies)) for part in parts
    ]
    return Workload(profile, replay, parts[0].records, inputs, one_after_the_other(offered))


def _chain(name: str, parts: Sequence[tuple[RateProfile, ReplaySettings]], copies: int) -> RateProfile:
    begins_s, end_s = [], 0.0
    for profile, replay in parts:
        begins_s.append(end_s)
        end_s += replay_span_s(profile, replay)
    source = "one after the other: " + "; ".join(profile.source for profile, _ in parts)
    return in_replay_time(name, source, list(zip(begins_s, parts, strict=True)), end_s, copies)
