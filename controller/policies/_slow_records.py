"""What the thesis' reactive and proactive scalers share: the share of slow records, Algorithms 1 and 2, the
samples discarded after a rescale, TaskManagers on hot standby."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import ceil, isfinite
from typing import Generic, Literal, NamedTuple, TypeVar

from numpy.random import Generator

from controller.model import Capabilities, Capability, Observation, Plan, Topology
from controller.placement import resize_plan, standby_first
from controller.policies import parameter
from controller.policies._scaled_as_one import Bounds, Scope, bounds_of, replicas_of, scopes_of, workload_of


class Sample(NamedTuple):
    """One reading that can be judged."""

    time_s: float
    workload_per_s: float
    replicas: int
    slow_ratio: float  # queue / workload


class Capacity(NamedTuple):
    """w_max: what one TaskManager can take in."""

    per_s: float
    measurements: int


class Verdict(NamedTuple):
    replicas: int
    reason: str = ""  # of a change
    news: str = ""  # worth saying even where nothing changes
    problem: str = ""  # why nothing could be decided; said once, as long as it lasts


@dataclass
class Memory:
    """What Algorithms 1 and 2 remember of one scope."""

    capacity: Capacity | None = None
    spare_in_a_row: int = 0
    said: str = ""  # the problem last reported, so that it is reported once


_Memory = TypeVar("_Memory", bound=Memory)


def measured_again(old: Capacity | None, workload_per_s: float, replicas: int) -> Capacity:
    """Algorithm 1: the mean workload per TaskManager at which the SLA was violated."""
    now_per_s = workload_per_s / replicas
    if old is None:
        return Capacity(now_per_s, 1)
    total_per_s = old.measurements * old.per_s + now_per_s
    return Capacity(total_per_s / (old.measurements + 1), old.measurements + 1)


@dataclass
class SlowRecords(Generic[_Memory]):
    sla_ratio: float = parameter(0.10, "slow records (queue/workload) from which the SLA is violated (§5.2)")
    scale_up: Literal["one", "capacity"] = parameter(
        "one", "add one TaskManager (option 1) or as many as the workload needs by the capacity (option 2)"
    )
    full_ratio: float = parameter(
        0.9, "share of the capacity that may be in use after a scale-down", at_least=0.01
    )
    scale_down_samples: int = parameter(10, "S: samples in a row that allow a scale-down", at_least=1)
    algorithm_2: Literal["corrected", "printed"] = parameter(
        "corrected", "'printed' follows the thesis to the letter, which never scales down"
    )
    discard_s: float = parameter(240.0, "seconds after a rescale whose samples are discarded", at_least=0)
    standby: int = parameter(2, "n_backup: TaskManagers kept on hot standby", at_least=0)
    min_workload_per_s: float = parameter(
        1.0, "below this workload, waiting records are no sign of overload", at_least=0
    )
    per_operator: bool = parameter(
        False, "scale each operator on its own (the lag is the busiest one's) instead of all alike"
    )
    period_s: float = parameter(15.0, "seconds between samples, each of which is decided on", at_least=0.1)
    why_kept: str = field(default="", init=False, repr=False, compare=False)
    estimates: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _scopes: tuple[Scope, ...] = field(default=(), init=False, repr=False, compare=False)
    _memories: dict[str, _Memory] = field(default_factory=dict, init=False, repr=False, compare=False)
    _kept_plan: Plan | None = field(default=None, init=False, repr=False, compare=False)
    _asked_s: float | None = field(default=None, init=False, repr=False, compare=False)
    _changing_since_s: float | None = field(default=None, init=False, repr=False, compare=False)
    _recovered_s: float = field(default=0.0, init=False, repr=False, compare=False)
    _measured_s: float | None = field(default=None, init=False, repr=False, compare=False)
    _standby_asked: bool = field(default=False, init=False, repr=False, compare=False)

    @property
    def needs(self) -> Capabilities:
        always = {
            Capability.LAG,
            Capability.OFFERED_RATE,
            Capability.OPERATOR_PARALLELISM,
            Capability.NODE_CHOICE,
        }
        standby = {Capability.STANDBY} if self.standby else set()
        return frozenset(always | standby | ({Capability.BUSY} if self.per_operator else set()))

    def start(self, topology: Topology, rng: Generator) -> None:
        self._scopes = scopes_of(topology, self.per_operator)
        self._memories = {scope.name: self._new_memory(scope) for scope in self._scopes}
        self._kept_plan, self._asked_s, self._changing_since_s = None, None, None
        self._recovered_s, self._measured_s = 0.0, None
        self._standby_asked = self.standby == 0

    def decide(self, observation: Observation) -> Plan | None:
        self.estimates, self.why_kept = {}, ""
        self._watch_reconfigurations(observation)
        if not self._is_fresh(observation):
            return None
        for scope in self._scopes:
            workload_per_s = workload_of(observation, scope)
            if workload_per_s is not None:
                self._watch_workload(self._memories[scope.name], observation.time_s, workload_per_s)
        # Discarded here and not by the guard `warmup_s`: the workload predictor goes on reading (Fig. 21:
        # from the monitor), since a rescale disturbs the queue, not what comes in.
        if self._changing_since_s is not None or observation.time_s < self._recovered_s:
            return None
        judged = [self._judged(observation, scope) for scope in self._scopes]
        return self._plan(observation, list(filter(None, judged)))

    # For the policies to fill in

    def _new_memory(self, scope: Scope) -> _Memory:
        raise NotImplementedError

    def _watch_workload(self, memory: _Memory, time_s: float, workload_per_s: float) -> None:
        """Also called while samples are discarded."""

    def _numbers(self, memory: _Memory, sample: Sample) -> dict[str, float | None]:
        """More numbers that a decision rests on."""
        return {}

    def _verdict(self, memory: _Memory, sample: Sample, bounds: Bounds) -> Verdict:
        raise NotImplementedError

    # Algorithm 2

    def _reaction(self, memory: _Memory, sample: Sample, bounds: Bounds) -> Verdict:
        if self.algorithm_2 == "printed":  # line 8 within the loop: never two in a row
            memory.spare_in_a_row = 0
        if sample.slow_ratio >= self.sla_ratio:
            memory.spare_in_a_row = 0
            return self._scaled_up(memory, sample, bounds)
        if memory.capacity is None:
            return Verdict(sample.replicas)
        needed = ceil(sample.workload_per_s / (memory.capacity.per_s * self.full_ratio) - 1e-9)
        if sample.replicas <= max(needed, bounds.fewest):
            memory.spare_in_a_row = 0
            return Verdict(sample.replicas)
        memory.spare_in_a_row += 1
        if memory.spare_in_a_row < (9 if self.algorithm_2 == "printed" else self.scale_down_samples):
            return Verdict(sample.replicas)
        memory.spare_in_a_row = 0
        return Verdict(
            sample.replicas - 1,
            f"{max(needed, bounds.fewest)} are enough for {sample.workload_per_s:.0f} records/s",
        )

    def _scaled_up(self, memory: _Memory, sample: Sample, bounds: Bounds) -> Verdict:
        """Line 10 counts only where a scale-up follows (§3.2.1): at n_max any workload could be measured."""
        if sample.replicas >= bounds.most:
            return Verdict(sample.replicas)
        memory.capacity = measured_again(memory.capacity, sample.workload_per_s, sample.replicas)
        wanted = sample.replicas + 1
        if self.scale_up == "capacity":
            wanted = max(wanted, ceil(sample.workload_per_s / memory.capacity.per_s - 1e-9))
        return Verdict(min(wanted, bounds.most), f"{sample.slow_ratio:.0%} slow records")

    # What is seen

    def _watch_reconfigurations(self, observation: Observation) -> None:
        """Until when samples are discarded: `discard_s` from when the job began to be rescaled, be it by this
        policy or by a fault."""
        for receipt in observation.receipts:
            if receipt.outcome == "refused":
                self._asked_s = None
                self._standby_asked = self.standby == 0
            elif receipt.plan != self._kept_plan:
                began_s = (
                    receipt.requested_s
                    if receipt.downtime_s is None
                    else receipt.finished_s - receipt.downtime_s
                )
                self._recovered_s = max(self._recovered_s, began_s + self.discard_s)
        if observation.reconfiguring:
            if self._changing_since_s is None:
                self._changing_since_s = observation.time_s if self._asked_s is None else self._asked_s
            self._recovered_s = max(self._recovered_s, self._changing_since_s + self.discard_s)
        else:
            self._changing_since_s = None
        self._asked_s = None

    def _is_fresh(self, observation: Observation) -> bool:
        """Metrics shown a second time are not a second sample."""
        before_s, self._measured_s = self._measured_s, observation.measured_s
        return before_s is None or observation.measured_s is None or observation.measured_s > before_s

    def _judged(self, observation: Observation, scope: Scope) -> tuple[Scope, Verdict] | None:
        memory = self._memories[scope.name]
        sample = self._sample(observation, scope)
        if sample is None:
            return None
        if isinstance(sample, str):
            verdict = Verdict(replicas_of(observation, scope), problem=sample)
        else:
            self._estimate(scope, memory, sample)
            verdict = self._verdict(memory, sample, bounds_of(observation, scope))
        self.why_kept = verdict.problem or self.why_kept
        is_known, memory.said = verdict.problem == memory.said, verdict.problem
        return scope, verdict._replace(problem="") if is_known else verdict

    def _estimate(self, scope: Scope, memory: _Memory, sample: Sample) -> None:
        numbers = {
            "workload_per_s": sample.workload_per_s,
            "slow_ratio": sample.slow_ratio,
            "capacity_per_s": None if memory.capacity is None else memory.capacity.per_s,
            **self._numbers(memory, sample),
        }
        prefix = "" if scope.whole_job else f"{scope.name}."
        self.estimates |= {prefix + name: number for name, number in numbers.items() if number is not None}

    def _sample(self, observation: Observation, scope: Scope) -> Sample | str | None:
        """What can be judged, or why it cannot; None where something was not measured."""
        workload_per_s, queue_records = workload_of(observation, scope), self._queue(observation, scope)
        replicas = replicas_of(observation, scope)
        if workload_per_s is None or queue_records is None or replicas == 0:
            return None
        if not (isfinite(workload_per_s) and isfinite(queue_records)):
            return "workload or queue is not a number"
        if workload_per_s < 0 or queue_records < 0:
            return "workload or queue is below 0"
        least_per_s = max(self.min_workload_per_s, 1e-9)
        slow_ratio = queue_records / max(workload_per_s, least_per_s)
        if workload_per_s < least_per_s and slow_ratio >= self.sla_ratio:
            return "records wait while hardly any come in"
        return Sample(observation.time_s, workload_per_s, replicas, slow_ratio)

    def _queue(self, observation: Observation, scope: Scope) -> float | None:
        if not self.per_operator:
            return observation.lag_records
        busy = {
            one.name: observation.operators[one.name].busy_ratio for one in observation.topology.operators
        }
        if busy[scope.name] is None or observation.lag_records is None:
            return None
        others = [busy[other.name] or 0.0 for other in self._scopes if other.name != scope.name]
        return observation.lag_records if (busy[scope.name] or 0.0) >= max(others, default=0.0) else 0.0

    # What is asked for

    def _plan(self, observation: Observation, judged: list[tuple[Scope, Verdict]]) -> Plan | None:
        target: dict[str, int] = {}
        reasons: list[str] = []
        notes: list[str] = []
        for scope, verdict in judged:
            prefix = "" if scope.whole_job else f"{scope.name} "
            change = verdict.replicas - replicas_of(observation, scope)
            kept = f"keeps the plan: {verdict.problem}" if verdict.problem else ""
            notes += [prefix + note for note in (verdict.news, kept) if note]
            if change:
                reasons.append(f"{prefix}{change:+d}: {verdict.reason}")
                target |= {one.name: one.within_bounds(verdict.replicas) for one in scope.operators}
        plan = resize_plan(observation, target, [*reasons, *notes], standby_first(observation))
        if plan is not None:
            self._asked_s, self._standby_asked = observation.time_s, True
            return replace(plan, standby=self.standby)
        return self._kept(observation, notes)

    def _kept(self, observation: Observation, notes: list[str]) -> Plan | None:
        """What is requested already, where the standby is to be asked for or there is something to say."""
        if not notes and self._standby_asked:
            return None
        if any(len(observation.requested[one.name]) < one.n_min for one in observation.topology.operators):
            return None  # the testbed is about to bring replicas back that went down with their node
        reasons = notes if self._standby_asked else [*notes, f"{self.standby} on hot standby"]
        self._standby_asked = True
        self._kept_plan = Plan(dict(observation.requested), self.standby, "; ".join(reasons))
        return self._kept_plan
