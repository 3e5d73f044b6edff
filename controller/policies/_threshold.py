"""What the two threshold autoscalers of the Gesscale paper share: one replica up or down by CPU."""

from dataclasses import dataclass, field

from numpy.random import Generator

from controller.model import Capabilities, Capability, Observation, Operator, Plan, Topology
from controller.placement import NodeChoice, nearest, resize_plan
from controller.policies import parameter


@dataclass
class CpuThreshold:
    high_cpu_ratio: float = parameter(0.90, "add a replica above this mean CPU")
    low_cpu_ratio: float = parameter(0.50, "remove a replica below this mean CPU")
    period_s: float = parameter(60.0, "seconds between decisions", at_least=0.1)
    anew: bool = parameter(False, "a scale-down places all remaining replicas anew")
    choose: NodeChoice = field(default=nearest, init=False, repr=False, compare=False)

    @property
    def needs(self) -> Capabilities:
        return frozenset({Capability.CPU, Capability.OPERATOR_PARALLELISM, Capability.NODE_CHOICE})

    def start(self, topology: Topology, rng: Generator) -> None:
        """Latency-aware by default: the nearest node joins, the farthest leaves."""

    def decide(self, observation: Observation) -> Plan | None:
        target: dict[str, int] = {}
        reasons: list[str] = []
        for operator in observation.topology.operators:
            cpu_ratio = observation.operators[operator.name].cpu_ratio
            if not operator.scalable or cpu_ratio is None:
                continue
            change = self._change(operator, len(observation.requested[operator.name]), cpu_ratio)
            if change:
                target[operator.name] = len(observation.requested[operator.name]) + change
                reasons.append(f"{operator.name} {change:+d}: CPU at {cpu_ratio:.0%}")
        return resize_plan(observation, target, reasons, self.choose, self.anew)

    def _change(self, operator: Operator, replicas: int, cpu_ratio: float) -> int:
        if cpu_ratio > self.high_cpu_ratio and (operator.n_max is None or replicas < operator.n_max):
            return 1
        if cpu_ratio < self.low_cpu_ratio and replicas > operator.n_min:
            return -1
        return 0
