"""Guards: wrappers around any policy, written once and listed per policy in the experiment.

Papers differ in what they guard: Gesscale waits after a restart, PURE rescales while instances boot.
A guard that holds a plan back or alters one says so in the plan's reason where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from numpy.random import Generator

from controller.containment import Contained
from controller.contract import Policy
from controller.model import Capabilities, Instance, Note, Observation, OperatorMetrics, Plan, Topology
from fogscale.errors import FogscaleError, unknown


@dataclass
class Guard:
    """Passes everything through; a guard overrides what it guards."""

    policy: Policy
    asked_s: float | None = field(default=None, init=False)  # when the policy was last shown something

    @property
    def needs(self) -> Capabilities:
        return self.policy.needs

    @property
    def period_s(self) -> float:
        return self.policy.period_s

    def start(self, topology: Topology, rng: Generator) -> None:
        self.policy.start(topology, rng)

    def decide(self, observation: Observation) -> Plan | None:
        self.asked_s = observation.time_s
        return self.policy.decide(observation)


@dataclass
class Warmup(Guard):
    """Does not even show the policy what is seen during a reconfiguration or within `seconds` after one
    (or after the start): those metrics mislead. Where operators are reconfigured one by one, it hides those
    and shows the others."""

    seconds: float
    from_request: bool = False  # counted from when a change was asked for, not from when it was made
    _warm_from_s: float = 0.0  # the whole job
    _operators_warm_from_s: dict[str, float] = field(default_factory=dict)  # reconfigured on their own

    def start(self, topology: Topology, rng: Generator) -> None:
        self._warm_from_s = self.seconds
        self._operators_warm_from_s = {}
        super().start(topology, rng)

    def decide(self, observation: Observation) -> Plan | None:
        for receipt in observation.receipts:
            if receipt.outcome in ("done", "failed"):
                begun_s = receipt.requested_s if self.from_request else receipt.finished_s
                self._warm_up(receipt.operators, begun_s + self.seconds)
        if observation.changing:
            self._warm_up(observation.changing, observation.time_s + self.seconds)
        if (
            observation.changing is None and observation.reconfiguring
        ):  # also the recovery from a fault, which nobody gets a receipt for
            self._warm_up((), observation.time_s + self.seconds)
            return None
        if observation.time_s < self._warm_from_s:
            return None
        hidden = {name for name, warm_s in self._operators_warm_from_s.items() if observation.time_s < warm_s}
        hidden.update(observation.changing or ())
        if not hidden:
            return super().decide(observation)
        return None if hidden.issuperset(observation.operators) else self._decide_without(hidden, observation)

    def _warm_up(self, operators: tuple[str, ...], until_s: float) -> None:
        """Until then the metrics of these mislead, or of all where none is named."""
        if operators:
            self._operators_warm_from_s |= dict.fromkeys(operators, until_s)
        else:
            self._warm_from_s = until_s

    def _decide_without(self, hidden: set[str], observation: Observation) -> Plan | None:
        """What the policy decides on the other operators; the hidden ones stay as they are requested."""
        shown = {
            name: OperatorMetrics() if name in hidden else metrics
            for name, metrics in observation.operators.items()
        }
        plan = super().decide(replace(observation, operators=shown))
        if plan is None or all(plan.placement[name] == observation.requested[name] for name in hidden):
            return plan
        kept = {name: observation.requested[name] for name in hidden}
        placement = {**plan.placement, **kept}
        if placement == dict(observation.requested):
            return None
        reason = f"{plan.reason}; {', '.join(sorted(hidden))} warming up"
        return replace(plan, placement=placement, reason=reason)


@dataclass
class Cooldown(Guard):
    """Lets the policy watch all the time, but holds its plans back for `seconds` after one."""

    seconds: float
    _free_from_s: float = 0.0

    def start(self, topology: Topology, rng: Generator) -> None:
        self._free_from_s = 0.0
        super().start(topology, rng)

    def decide(self, observation: Observation) -> Plan | None:
        plan = super().decide(observation)
        if plan is None or observation.time_s < self._free_from_s:
            return None
        if not plan.changes(observation):  # it only says something, or wants standby
            return plan
        self._free_from_s = observation.time_s + self.seconds
        return plan


@dataclass
class Bounds(Guard):
    """Cuts a plan to at most `replicas` per operator, whatever the operator itself would allow."""

    replicas: int

    def decide(self, observation: Observation) -> Plan | None:
        plan = super().decide(observation)
        if plan is None:
            return None
        fewest = {operator.name: operator.n_min for operator in observation.topology.operators}
        cut = {name: nodes[: max(self.replicas, fewest[name])] for name, nodes in plan.placement.items()}
        if all(len(cut[name]) == len(nodes) for name, nodes in plan.placement.items()):
            return plan
        instances = plan.instances
        if instances is not None:
            instances = {name: _first_active(some, len(cut[name])) for name, some in instances.items()}
        reason = f"{plan.reason}; cut to {self.replicas} replicas"
        cut_plan = replace(plan, placement=cut, reason=reason, instances=instances)
        return cut_plan if cut_plan.changes(observation) else None


def _first_active(instances: tuple[Instance, ...], most: int) -> tuple[Instance, ...]:
    """At most so many active ones; those that are not active serve nothing and may stay."""
    active = [each for each in instances if each.active][:most]
    return tuple(each for each in instances if not each.active or each in active)


@dataclass
class FreshMetrics(Guard):
    """Skips an observation whose metrics are older than `max_age_s` or missing for some operator."""

    max_age_s: float

    def decide(self, observation: Observation) -> Plan | None:
        measured_s = observation.measured_s
        if measured_s is None or observation.time_s - measured_s > self.max_age_s:
            return None
        if any(seen.throughput_per_s is None for seen in observation.operators.values()):
            return None
        return super().decide(observation)


GUARDS: dict[str, Callable[[Policy, float], Guard]] = {
    "warmup_s": Warmup,
    "warmup_from_request_s": lambda policy, seconds: Warmup(policy, seconds, from_request=True),
    "cooldown_s": Cooldown,
    "max_replicas": lambda policy, replicas: Bounds(policy, int(replicas)),
    "max_metrics_age_s": FreshMetrics,
}
"""How an experiment names each guard; the value is its one parameter."""


def unguarded(policy: Policy) -> Policy:
    """The policy itself, behind all its guards."""
    while isinstance(policy, (Guard, Contained)):
        policy = policy.policy
    return policy


def told_by(policy: Policy, time_s: float) -> tuple[Mapping[str, float], tuple[Note, ...]]:
    """What a policy's decision at a time rests on (estimates), and what it exchanged inside (notes); nothing
    where a guard did not even ask it."""
    while isinstance(policy, Guard):
        if policy.asked_s != time_s:
            return {}, ()
        policy = policy.policy
    return getattr(policy, "estimates", {}), getattr(policy, "notes", ())


def guarded(policy: Policy, guards: dict[str, float]) -> Policy:
    """The policy behind its guards; the first named is the outermost."""
    for name, value in reversed(guards.items()):
        if name not in GUARDS:
            raise FogscaleError(unknown("guard", name, GUARDS))
        if value < 0:
            raise FogscaleError(f"guard {name}: {value:g} is below 0; give a duration in seconds")
        if name == "max_replicas" and (value < 1 or value != int(value)):
            raise FogscaleError(f"guard {name}: {value:g} is not a number of replicas; give 1 or more")
        policy = GUARDS[name](policy, value)
    return policy
