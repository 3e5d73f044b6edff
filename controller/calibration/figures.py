"""The figures by which a simulated run is held against a real one, from the truth of each: its samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from controller.model import Sample


@dataclass(frozen=True)
class Figures:
    mean_replicas: float  # over the workload's span, stops counted as none
    reconfigurations: float
    cost: float  # replica-minutes, the time after the workload included
    lag_max: float  # records


@dataclass(frozen=True)
class Bound:
    """How far the simulation may be off to be believed."""

    name: str
    title: str
    ratio: float | None = None  # of the real figure
    absolute: float | None = None

    def off(self, real: float, simulated: float) -> str:
        if self.absolute is not None:
            return f"{simulated - real:+g}"
        return f"{simulated / real - 1:+.1%}" if real else ("0" if simulated == real else "∞")

    def holds(self, real: float, simulated: float) -> bool:
        if self.absolute is not None:
            return abs(simulated - real) <= self.absolute
        return abs(simulated - real) <= (self.ratio or 0.0) * abs(real)


BOUNDS = (
    Bound("mean_replicas", "mean replicas", ratio=0.10),
    Bound("reconfigurations", "reconfigurations", absolute=2),
    Bound("cost", "cost (replica-minutes)", ratio=0.10),
    Bound("lag_max", "largest lag (records)", ratio=0.25),
)


def figures_of(samples: Sequence[Sample], operator: str, duration_s: float) -> Figures:
    """Each sample holds until the next one."""
    within_s = paid_s = 0.0
    for one, later in pairwise(samples):
        replicas = one.replicas.get(operator, 0)
        paid_s += replicas * (later.time_s - one.time_s)
        within_s += replicas * max(0.0, min(later.time_s, duration_s) - min(one.time_s, duration_s))
    return Figures(
        mean_replicas=within_s / duration_s,
        reconfigurations=float(samples[-1].reconfigurations),
        cost=paid_s / 60,
        lag_max=float(max(each.lag_records for each in samples)),
    )
