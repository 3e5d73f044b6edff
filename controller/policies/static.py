"""Static provisioning: the same replicas all the time, the yardstick of every autoscaler."""

from collections.abc import Mapping
from dataclasses import dataclass

from numpy.random import Generator

from controller.model import Capabilities, Observation, Plan, Topology
from controller.placement import resize_plan
from controller.policies import MemorylessPolicy, parameter, register
from fogscale.errors import FogscaleError, unknown


@register("static")
@dataclass(frozen=True)
class Static(MemorylessPolicy):
    replicas: Mapping[str, int] = parameter({}, "replicas per operator; those not named stay as they start")
    period_s: float = parameter(60.0, "seconds between decisions", at_least=0.1)

    def start(self, topology: Topology, rng: Generator) -> None:
        names = [operator.name for operator in topology.operators]
        for name in self.replicas:
            if name not in names:
                raise FogscaleError(
                    f"parameter 'replicas' of policy 'static': {unknown('operator', name, names)}"
                )

    @property
    def needs(self) -> Capabilities:
        return frozenset()

    def decide(self, observation: Observation) -> Plan | None:
        target = {
            operator.name: operator.within_bounds(self.replicas[operator.name])
            for operator in observation.topology.operators
            if operator.name in self.replicas
        }
        fixed = ", ".join(f"{name} {replicas}" for name, replicas in target.items())
        return resize_plan(observation, target, [f"fixed: {fixed}"])
