"""Scheduled scaling: replicas by the clock, as cloud providers offer it; it looks at no metric."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from numpy.random import Generator

from controller.model import Capabilities, Capability, Observation, Plan, Topology
from controller.placement import resize_plan
from controller.policies import MemorylessPolicy, parameter, register
from fogscale.errors import FogscaleError, unknown


@register("scheduled")
@dataclass(frozen=True)
class Scheduled(MemorylessPolicy):
    replicas: Mapping[str, tuple[int, ...]] = parameter(
        {}, "replicas per operator, one count after the other, then from the start; others stay as they are"
    )
    step_s: float = parameter(600.0, "how long each count holds", at_least=0.1)
    standby: int = parameter(0, "idle instances kept ready", at_least=0)
    period_s: float = parameter(60.0, "seconds between decisions", at_least=0.1)

    def start(self, topology: Topology, rng: Generator) -> None:
        names = [operator.name for operator in topology.operators]
        for name, counts in self.replicas.items():
            if name not in names:
                raise FogscaleError(
                    f"parameter 'replicas' of policy 'scheduled': {unknown('operator', name, names)}"
                )
            if not counts:
                raise FogscaleError(f"parameter 'replicas' of policy 'scheduled': '{name}' has no count")

    @property
    def needs(self) -> Capabilities:
        return frozenset({Capability.STANDBY} if self.standby else ())

    def decide(self, observation: Observation) -> Plan | None:
        turn = int(observation.time_s // self.step_s)
        target = {
            operator.name: operator.within_bounds(counts[turn % len(counts)])
            for operator in observation.topology.operators
            if (counts := self.replicas.get(operator.name))
        }
        wanted = ", ".join(f"{name} {replicas}" for name, replicas in target.items())
        plan = resize_plan(observation, target, [f"schedule, turn {turn + 1}: {wanted}"])
        if plan is None and len(observation.standby) < self.standby:
            plan = Plan(dict(observation.requested), reason=f"{self.standby} on hot standby")
        return None if plan is None else replace(plan, standby=self.standby)
