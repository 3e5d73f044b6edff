"""One burst upon a steady load: how fast is the reaction, and how long is kept what is no longer needed."""

from __future__ import annotations

from fogscale.errors import FogscaleError
from workloads.traces.formula import PositiveRate, PositiveSeconds, Rate, Seconds, levels_profile
from workloads.workload import Workload, register


@register("spike")
def spike(
    base_per_s: Rate = 100.0,
    spike_per_s: PositiveRate = 300.0,  # while it lasts, base included
    start_s: Seconds = 1200.0,
    spike_s: PositiveSeconds = 300.0,
    span_s: PositiveSeconds = 3600.0,
) -> Workload:
    """A steady 100 records/s, but 300 for five minutes from the twentieth."""
    after_s = span_s - start_s - spike_s
    if after_s < 0:
        raise FogscaleError(
            f"workload 'spike': it ends at {start_s + spike_s:g} s, the load at {span_s:g} s: raise span_s"
        )
    profile = levels_profile(
        "spike",
        "generated: one burst upon a steady rate",
        [start_s, spike_s, after_s],
        [base_per_s, spike_per_s, base_per_s],
    )
    return Workload(profile)
