"""A workload of its own for each of several operators."""

from __future__ import annotations

from math import gcd
from typing import Annotated

from pydantic import Field

from fogscale.errors import FogscaleError
from workloads.composition import Part, in_replay_time, load_part
from workloads.replay import ReplaySettings, replay_span_s
from workloads.workload import Workload, register


@register("per_operator")
def per_operator(of: Annotated[dict[str, Part], Field(min_length=1)]) -> Workload:
    """A load for each operator, each at its own pace, up to the longest: of={source: debs, clock: ramp}."""
    parts = {operator: load_part(part) for operator, part in of.items()}
    for operator, part in parts.items():
        if part.inputs:
            raise FogscaleError(
                f"workload 'per_operator': '{part.name}' for '{operator}' drives {', '.join(part.inputs)} "
                f"itself: give it alone, or another for '{operator}'"
            )
    span_s = max(replay_span_s(part.profile, part.replay) for part in parts.values())
    # Copies that arrive together stay so if all parts have as many; otherwise they count as records.
    copies = gcd(*(part.replay.copies for part in parts.values()))
    begun = {operator: (0.0, (part.profile, part.replay)) for operator, part in parts.items()}
    inputs = {
        operator: in_replay_time(part.name, part.profile.source, [begun[operator]], span_s, copies)
        for operator, part in parts.items()
    }
    name = ", ".join(f"{operator}: {part.name}" for operator, part in parts.items())
    source = "per operator: " + "; ".join(part.profile.source for part in parts.values())
    # Chance is in the events of traces already; where any part leaves it to a draw, all do.
    are_even = all(part.replay.arrivals == "even" for part in parts.values())
    records = {part.records for part in parts.values()}
    return Workload(
        profile=in_replay_time(name, source, list(begun.values()), span_s, copies),
        replay=ReplaySettings(copies=copies, arrivals="even" if are_even else "poisson"),
        records=records.pop() if len(records) == 1 else None,
        inputs=inputs,
    )
