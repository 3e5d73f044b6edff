"""The ideal autoscaler of the Gesscale paper (Fig. 6): it knows the capacity of every count of replicas and
follows the load at once. It cannot exist; on a testbed that rescales in no time it is the reference."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller.model import Capabilities, Capability, Observation, Plan
from controller.placement import resize_plan
from controller.policies import MemorylessPolicy, parameter, register


@register("ideal")
@dataclass(frozen=True)
class Ideal(MemorylessPolicy):
    capacity_per_s: Mapping[str, tuple[float, ...]] = parameter(
        {}, "known capacity of 1, 2, … replicas per operator; filled in by the experiment"
    )
    period_s: float = parameter(10.0, "seconds between decisions", at_least=0.1)

    @property
    def needs(self) -> Capabilities:
        return frozenset({Capability.OFFERED_RATE, Capability.INSTANT_RESCALE, Capability.NODE_CHOICE})

    def decide(self, observation: Observation) -> Plan | None:
        target: dict[str, int] = {}
        reasons: list[str] = []
        for operator in observation.topology.operators:
            # What is offered to this operator, since demand is defined by it (analysis/demand.py).
            rate_per_s = observation.operators[operator.name].offered_rate_per_s
            if not operator.scalable or operator.name not in self.capacity_per_s or rate_per_s is None:
                continue
            capacity_per_s = self.capacity_per_s[operator.name]
            wanted = operator.within_bounds(smallest_sufficient(capacity_per_s, rate_per_s))
            if wanted != len(observation.requested[operator.name]):
                target[operator.name] = wanted
                reasons.append(f"{operator.name} {wanted} for {rate_per_s:.0f} records/s")
        return resize_plan(observation, target, reasons)


def smallest_sufficient(capacity_per_s: tuple[float, ...], rate_per_s: float) -> int:
    """The fewest replicas whose capacity covers the rate; all of them where none does."""
    return next(
        (n for n, capacity in enumerate(capacity_per_s, start=1) if capacity >= rate_per_s),
        len(capacity_per_s),
    )
