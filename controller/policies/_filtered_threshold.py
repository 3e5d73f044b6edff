"""What PURE, GW and EKF share (EKF paper, §3.3): thresholds on the filtered load, averaged over instances.

Up if any metric is above the upper threshold, down if all are below the lower one. What is not measured now
is not decided on: without a metric nothing goes down, and nothing at all happens on old or absent metrics;
`why_kept` then says why. Where metrics are bad, a plan that keeps what is requested says so too, once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isnan
from typing import Any, Literal, Protocol

import numpy as np
from numpy.random import Generator

from controller.model import Capabilities, Capability, Observation, Operator, Plan, Topology
from controller.models.instance_load import (
    METRICS,
    Loads,
    LoadSample,
    is_complete,
    load_sample,
    mean_over_instances,
)
from controller.placement import NodeChoice, in_order, resize_plan
from controller.policies import learned_as, parameter
from fogscale.errors import FogscaleError, unknown

_ROUNDING = 1e-9  # of a mean that is exactly at a threshold
LEARNED_VERSION = 1


@dataclass(frozen=True)
class LastRun:
    """What the next run begins with."""

    instances: Mapping[str, float]  # per operator, the mean over the run


class LoadFilter(Protocol):
    """λ of §2.2."""

    @property
    def remark(self) -> str:
        """What a reader of the plans that rest on it should know; usually nothing."""

    def step(self, sample: LoadSample) -> Loads:
        """The filtered loads [instance, metric] of the instances in the sample; NaN where there is none."""


@dataclass
class FilteredThreshold:
    low_ratio: float = parameter(0.45, "Θ⁻: scale down when every metric is below this", at_least=0)
    high_ratio: float = parameter(0.80, "Θ⁺: scale up when any metric is above this", at_least=0.01)
    while_booting: Literal["scale", "wait", "as_idle", "kept"] = parameter(
        "scale",
        "while instances boot: 'scale' on those that run, 'wait' for them, or count them 'as_idle'; 'kept'"
        " does so before asking for more, but takes none away because of them",
    )
    period_s: float = parameter(0.5, "seconds between decisions", at_least=0.1)
    why_kept: str = field(default="", init=False, repr=False, compare=False)
    estimates: dict[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    choose: NodeChoice = field(default=in_order, init=False, repr=False, compare=False)
    _filters: dict[str, LoadFilter] = field(init=False, repr=False, compare=False)
    _measured_s: float | None = field(default=None, init=False, repr=False, compare=False)
    _started: bool = field(default=False, init=False, repr=False, compare=False)
    # §2.4: a run begins with the mean instances of the last one, or as the experiment says.
    _last_run: Mapping[str, float] = field(default_factory=dict, init=False, repr=False, compare=False)
    _instance_turns: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)
    _turns: int = field(default=0, init=False, repr=False, compare=False)
    _problems: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def needs(self) -> Capabilities:
        return frozenset(
            {
                Capability.CPU,
                Capability.MEMORY,
                Capability.INSTANCE_METRICS,
                Capability.OPERATOR_PARALLELISM,
                Capability.NODE_CHOICE,
            }
        )

    def start(self, topology: Topology, rng: Generator) -> None:
        if not self.low_ratio < self.high_ratio:
            raise FogscaleError(
                f"low_ratio is {self.low_ratio:g} and high_ratio {self.high_ratio:g}: give a lower low_ratio"
            )
        scalable = [operator.name for operator in topology.operators if operator.scalable]
        self._filters = {name: self.new_filter() for name in scalable}
        self._measured_s, self._started, self._problems = None, False, {}
        self._last_run, self._instance_turns, self._turns = {}, dict.fromkeys(scalable, 0), 0

    def save(self) -> dict[str, Any]:
        means = {name: turns / max(1, self._turns) for name, turns in self._instance_turns.items()}
        return {"version": LEARNED_VERSION, "instances": means if self._turns else {}}

    def load(self, learned: Mapping[str, Any]) -> None:
        used = learned_as(LastRun, learned, "pure, gw or ekf", LEARNED_VERSION).instances
        for name in used:
            if name not in self._filters:
                raise FogscaleError(f"what it should start from: {unknown('operator', name, self._filters)}")
        self._last_run = used

    def new_filter(self) -> LoadFilter:
        raise NotImplementedError

    def decide(self, observation: Observation) -> Plan | None:
        self.estimates, self.why_kept = {}, ""
        if not self._started:
            self._started = True
            warm = self._warm_plan(observation)
            if warm is not None:
                return warm
        if observation.measured_s is None or observation.measured_s == self._measured_s:
            self.why_kept = "nothing new was measured"
            return None
        self._measured_s = observation.measured_s
        self._turns += 1
        target: dict[str, int] = {}
        reasons: list[str] = []
        known_problems, self._problems = self._problems, {}
        for operator in observation.topology.operators:
            if operator.name not in self._filters:
                continue
            requested = len(observation.requested[operator.name])
            self._instance_turns[operator.name] += requested
            wanted, reason = self._wanted(operator, observation, requested)
            if wanted != requested:
                target[operator.name] = wanted
                reasons.append(f"{operator.name} {wanted - requested:+d}: {reason}")
        news = [what for name, what in self._problems.items() if known_problems.get(name) != what]
        plan = resize_plan(observation, target, [*reasons, *news], self.choose) if target else None
        return plan or self._plan_to_keep(observation, news)

    def _plan_to_keep(self, observation: Observation, news: list[str]) -> Plan | None:
        if not news or any(
            len(observation.requested[one.name]) < one.n_min for one in observation.topology.operators
        ):  # in the latter case the testbed is about to bring back what went down with its node
            return None
        return Plan(dict(observation.requested), reason="; ".join(f"keeps the plan: {what}" for what in news))

    def _wanted(self, operator: Operator, observation: Observation, requested: int) -> tuple[int, str]:
        sample = load_sample(observation, operator.name)
        running = len(sample.ids)
        if running == 0 and observation.placement[operator.name]:
            self._problems[operator.name] = f"{operator.name}: no instance was measured"  # its filters wait
            return self._kept(requested, self._problems[operator.name])
        filtered = self._filters[operator.name].step(sample)
        if not is_complete(sample.loads):
            filtered = np.where(np.isnan(sample.loads), np.nan, filtered)
        measured, loads = mean_over_instances(sample.loads), mean_over_instances(filtered)
        if running and (unusable := _missing(measured)):
            self._problems[operator.name] = f"{operator.name}: no usable {unusable} load"
        self._estimate(operator.name, "measured", measured)
        self._estimate(operator.name, "filtered", loads)
        booting = max(0, requested - running)
        if booting and self.while_booting == "wait":
            return self._kept(requested, f"{operator.name}: {booting} instances are booting")
        counted = running + booting if self.while_booting in ("as_idle", "kept") else running
        diluted = [load * running / counted for load in loads] if counted else []
        direction = self._direction(diluted, counted, operator.name)
        if direction < 0 and booting and self.while_booting == "kept":
            direction = min(0, self._direction(loads if running else [], running, operator.name))
        loads = diluted
        if direction == 0:
            return requested, ""
        wanted, reason = self.sized(direction, loads, counted, requested)
        remark = self._filters[operator.name].remark
        return operator.within_bounds(wanted), f"{reason} ({remark})" if remark else reason

    def _direction(self, loads: list[float], instances: int, name: str) -> int:
        loads = self.compared(loads, instances)
        if not loads:
            self.why_kept = f"{name}: no instance runs"
            return 0
        if missing := _missing(loads):
            self.why_kept = f"{name}: no usable {missing} load"
        # A NaN is neither above nor below: a known metric is enough to go up, all are needed to go down.
        if any(load > self.high_ratio + _ROUNDING for load in loads):
            return 1
        return -1 if all(load < self.low_ratio - _ROUNDING for load in loads) else 0

    def compared(self, loads: list[float], instances: int) -> list[float]:
        """What is held against the thresholds: the average over instances (§3.3)."""
        return loads

    def sized(self, direction: int, loads: list[float], instances: int, requested: int) -> tuple[int, str]:
        """One instance at a time, as a filter that knows of nothing but loads can say no more."""
        return requested + direction, said(loads)

    def _estimate(self, operator: str, kind: str, loads: list[float]) -> None:
        for name, load in zip(_estimate_names(operator, kind), loads, strict=True):
            if not isnan(load):
                self.estimates[name] = load

    def _kept(self, requested: int, why: str) -> tuple[int, str]:
        self.why_kept = why
        return requested, ""

    def _warm_plan(self, observation: Observation) -> Plan | None:
        target = {
            operator.name: operator.within_bounds(round(self._last_run[operator.name]))
            for operator in observation.topology.operators
            if operator.name in self._last_run
        }
        reasons = [f"{name} {instances}, as in the last run" for name, instances in target.items()]
        return resize_plan(observation, target, reasons, self.choose) if target else None


def _missing(loads: list[float]) -> str:
    return " or ".join(metric for metric, load in zip(METRICS, loads, strict=True) if isnan(load))


@cache
def _estimate_names(operator: str, kind: str) -> tuple[str, ...]:
    return tuple(f"{operator}.{metric}_{kind}_ratio" for metric in METRICS)


def said(loads: list[float]) -> str:
    known = [(metric, load) for metric, load in zip(METRICS, loads, strict=True) if not isnan(load)]
    return ", ".join(f"{metric} at {load:.0%}" for metric, load in known)
