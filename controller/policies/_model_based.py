"""What Gesscale and its latency-unaware sibling share: Algorithms 1–4 on a calibrated MST model."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from numpy.random import Generator

from controller.model import (
    Capabilities,
    Capability,
    Observation,
    Operator,
    OperatorMetrics,
    Placement,
    Plan,
    Topology,
)
from controller.models.mst import Measurement, MstModel, calibrated
from controller.placement import NodeChoice, grown, largest_rtt_ms, nearest, resize_plan
from controller.policies import parameter


@dataclass
class ModelBased:
    high_back_pressure_ratio: float = parameter(0.5, "a back pressure above this is high (§II-B)")
    confirmations: int = parameter(
        2, "observations in a row that must show overload before a scale-up", at_least=1
    )
    spare_ratio: float = parameter(0.30, "Trshld_DT: spare capacity from which a scale-down is considered")
    n_min: int = parameter(1, "Algorithm 4 never goes below this, nor below the operator's own n_min")
    algorithm_4: Literal["corrected", "printed"] = parameter(
        "corrected", "'printed' follows the paper to the letter, which all but never scales down"
    )
    must_cover: Literal["offered", "throughput"] = parameter(
        "offered", "what the replicas that remain must cover: what is offered to the job, or what passes"
    )
    scale_down: Literal["while_spare", "at_once"] = parameter(
        "while_spare", "'at_once' goes to the fewest that cover it; else each step down needs spare_ratio"
    )
    anew: bool = parameter(False, "a scale-down places all remaining replicas anew")
    period_s: float = parameter(60.0, "seconds between decisions", at_least=0.1)
    latency_aware: bool = field(default=True, init=False, repr=False)
    choose: NodeChoice = field(default=nearest, init=False, repr=False, compare=False)
    _measurements: dict[str, list[Measurement]] = field(init=False, repr=False, compare=False)
    _overloaded_in_a_row: dict[str, int] = field(init=False, repr=False, compare=False)
    _models: dict[str, MstModel | None] = field(init=False, repr=False, compare=False)

    @property
    def needs(self) -> Capabilities:
        return frozenset(
            {
                Capability.BACK_PRESSURE,
                Capability.OFFERED_RATE,
                Capability.OPERATOR_PARALLELISM,
                Capability.NODE_CHOICE,
            }
        )

    def start(self, topology: Topology, rng: Generator) -> None:
        self._measurements = defaultdict(list)
        self._overloaded_in_a_row = defaultdict(int)
        self._models = {}

    def decide(self, observation: Observation) -> Plan | None:
        target: dict[str, int] = {}
        reasons: list[str] = []
        for operator in observation.topology.operators:
            if not operator.scalable or not operator.upstream:
                continue
            seen = observation.operators[operator.name]
            if seen.throughput_per_s is None:
                continue
            running = len(observation.requested[operator.name])
            if self.is_root_of_back_pressure(operator, observation):
                wanted, reason = self._scaled_up(operator, observation, seen.throughput_per_s)
            else:
                self._overloaded_in_a_row[operator.name] = 0
                wanted, reason = self._scaled_down(operator, observation, seen)
            if wanted != running:
                target[operator.name] = wanted
                reasons.append(f"{operator.name} {wanted - running:+d}: {reason}")
        return resize_plan(observation, target, reasons, self.choose, self.anew)

    def is_root_of_back_pressure(self, operator: Operator, observation: Observation) -> bool:
        """Algorithm 1: all its upstream operators suffer high back pressure, itself does not."""

        def is_high(name: str) -> bool | None:
            ratio = observation.operators[name].back_pressure_ratio
            return None if ratio is None else ratio > self.high_back_pressure_ratio

        return is_high(operator.name) is False and all(is_high(name) for name in operator.upstream)

    def model_from(self, measurements: list[Measurement]) -> MstModel | None:
        return calibrated(measurements)

    def _scaled_up(
        self, operator: Operator, observation: Observation, throughput_per_s: float
    ) -> tuple[int, str]:
        """Algorithm 1, lines 8–10 (a confirmed overload is a measurement of the MST), and Algorithm 3."""
        nodes = observation.requested[operator.name]
        self._overloaded_in_a_row[operator.name] += 1
        if self._overloaded_in_a_row[operator.name] < self.confirmations:
            return len(nodes), ""
        self._overloaded_in_a_row[operator.name] = 0
        rtt_ms = largest_rtt_ms(observation.topology, nodes) if self.latency_aware else 0.0
        measurements = self._measurements[operator.name]
        measurements.append(Measurement(len(nodes), rtt_ms, throughput_per_s))
        self._models.pop(operator.name, None)  # to be calibrated anew when it is next asked
        if operator.n_max is not None and len(nodes) + 1 > operator.n_max:
            return len(nodes), ""
        return len(nodes) + 1, f"saturated at {throughput_per_s:.0f} records/s"

    def _scaled_down(
        self, operator: Operator, observation: Observation, seen: OperatorMetrics
    ) -> tuple[int, str]:
        """Algorithms 2 and 4: give up replicas while those that remain cover the input.

        IR, the "incoming data rate" that §III-B monitors beside the throughput, may be what is offered, or
        what arrives behind back pressure: that is the throughput again, and hides what waits in Kafka. §IV-C
        and the authors' script compare with the throughput."""
        placement = observation.requested
        model, running = self._model_of(operator.name), len(placement[operator.name])
        needed_per_s = seen.throughput_per_s if self.must_cover == "throughput" else seen.offered_rate_per_s
        if model is None or needed_per_s is None or seen.throughput_per_s is None:
            return running, ""
        topology = observation.topology
        mst_per_s = self._mst_per_s(model, topology, placement[operator.name])
        while self._has_spare(operator, running, placement, mst_per_s, seen.throughput_per_s):
            fewer = self._one_fewer(topology, placement, operator.name)
            remaining_per_s = self._mst_per_s(model, topology, fewer[operator.name])
            if not self._may_remove(mst_per_s, remaining_per_s, needed_per_s):
                break
            placement, mst_per_s = fewer, remaining_per_s
        reason = f"{mst_per_s:.0f} records/s are enough for {needed_per_s:.0f}"
        return len(placement[operator.name]), reason

    def _has_spare(
        self,
        operator: Operator,
        running: int,
        placement: Placement,
        mst_per_s: float,
        throughput_per_s: float,
    ) -> bool:
        """Whether one more may be given up. At once: only the first needs spare capacity and more than n_min
        replicas; the operator's own n_min holds always."""
        replicas = len(placement[operator.name])
        is_next = self.scale_down == "at_once" and replicas < running
        fewest = operator.n_min if is_next else max(operator.n_min, self.n_min)
        if replicas <= fewest:
            return False
        return is_next or _spare_ratio(mst_per_s, throughput_per_s) >= self.spare_ratio

    def _model_of(self, name: str) -> MstModel | None:
        if name not in self._models and self._measurements[name]:
            self._models[name] = self.model_from(self._measurements[name])
        return self._models.get(name)

    def _may_remove(self, mst_per_s: float, remaining_per_s: float, offered_rate_per_s: float) -> bool:
        if self.algorithm_4 == "printed":  # line 5 to the letter: the opposite of what §IV-D says in words
            return mst_per_s <= offered_rate_per_s
        return remaining_per_s >= offered_rate_per_s

    def _one_fewer(self, topology: Topology, placement: Placement, name: str) -> Placement:
        return grown(topology, placement, {name: len(placement[name]) - 1}, nearest)

    def _mst_per_s(self, model: MstModel, topology: Topology, nodes: tuple[str, ...]) -> float:
        return model.mst_per_s(len(nodes), largest_rtt_ms(topology, nodes) if self.latency_aware else 0.0)


def _spare_ratio(mst_per_s: float, throughput_per_s: float) -> float:
    """DT of Table II, as a ratio."""
    return (mst_per_s - throughput_per_s) / mst_per_s if mst_per_s > 0 else 0.0
