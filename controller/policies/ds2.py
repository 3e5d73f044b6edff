"""DS2 (Kalavri et al., OSDI 2018): size every operator in one pass, from what the sources are offered and
from what an instance does in a second of useful time."""

from dataclasses import dataclass
from math import ceil

from controller.model import Capabilities, Capability, Observation, Operator, OperatorMetrics, Plan
from controller.placement import resize_plan
from controller.policies import MemorylessPolicy, parameter, register


@register("ds2")
@dataclass(frozen=True)
class DS2(MemorylessPolicy):
    headroom_ratio: float = parameter(
        0.0, "instances beyond the optimum, as a share of it: what works off a backlog", at_least=0
    )
    min_change: int = parameter(1, "smallest change worth a reconfiguration, in instances", at_least=1)
    period_s: float = parameter(60.0, "seconds between decisions", at_least=0.1)

    @property
    def needs(self) -> Capabilities:
        return frozenset(
            {
                Capability.OFFERED_RATE,  # the paper's source rates: no back pressure slows them down
                Capability.TRUE_RATE,
                Capability.OPERATOR_PARALLELISM,
                Capability.NODE_CHOICE,
            }
        )

    def decide(self, observation: Observation) -> Plan | None:
        input_per_s: dict[str, float] = {}
        target: dict[str, int] = {}
        reasons: list[str] = []
        selectivity = {operator.name: operator.selectivity for operator in observation.topology.operators}
        for operator in observation.topology.operators:  # upstream first
            seen = observation.operators[operator.name]
            if not operator.upstream:
                if seen.offered_rate_per_s is None:
                    return None  # nothing can be said of what comes after it
                input_per_s[operator.name] = seen.offered_rate_per_s
            else:
                input_per_s[operator.name] = sum(
                    input_per_s[name] * selectivity[name] * share for name, share in operator.inputs
                )
            wanted = self._instances(operator, seen, len(observation.placement[operator.name]), input_per_s)
            requested = len(observation.requested[operator.name])
            if wanted is not None and abs(wanted - requested) >= self.min_change:
                target[operator.name] = wanted
                reasons.append(
                    f"{operator.name} {wanted - requested:+d}: {input_per_s[operator.name]:.0f} records/s"
                )
        return resize_plan(observation, target, reasons)

    def _instances(
        self, operator: Operator, seen: OperatorMetrics, running: int, input_per_s: dict[str, float]
    ) -> int | None:
        """None where the operator cannot be scaled, or where nobody knows what an instance can do: an idle
        operator has no true rate, and stays as it is."""
        if not operator.scalable or running == 0 or not seen.true_rate_per_s:
            return None
        optimum = input_per_s[operator.name] / (seen.true_rate_per_s / running)
        wanted = max(operator.n_min, ceil(optimum * (1 + self.headroom_ratio) - 1e-9))
        return min(wanted, operator.n_max or wanted)
