"""Proactive (Flink elasticity thesis 2020, §3.3): reacts while it learns how slow records depend on workload
and TaskManagers; once its model is stable, it scales for the workload of the next minute."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, isnan
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.random import Generator

from controller.model import Topology
from controller.models.change import AbruptChange, GradualChange
from controller.models.polynomial import MAX_DEGREE, Floats, Polynomial, Samples, UnfitError, trained
from controller.models.stability import stability
from controller.models.trend import Trend
from controller.policies import learned_as, parameter, register
from controller.policies._scaled_as_one import Bounds, Scope
from controller.policies._slow_records import Capacity, Memory, Sample, SlowRecords, Verdict
from fogscale.errors import FogscaleError, unknown

LEARNED_VERSION = 1


@dataclass(frozen=True)
class Learnt:
    """What is learnt of one part of the job: plain numbers, so that an experiment file can hold it."""

    model: Polynomial
    capacity_per_s: Annotated[float, msgspec.Meta(gt=0)]
    capacity_measurements: Annotated[int, msgspec.Meta(ge=1)] = 1


@dataclass(frozen=True)
class LearntParts:
    """Of the operators, or of the 'job'."""

    parts: Mapping[str, Learnt]


@dataclass
class Learning(Memory):
    """What is remembered of one scope on top of Algorithm 2's memory. Without a model: exploration."""

    rows: list[tuple[float, float, float]] = field(default_factory=list)  # workload, TaskManagers, slow share
    trend: Trend = field(default_factory=lambda: Trend(600.0))
    model: Polynomial | None = None
    gradual: GradualChange = field(default_factory=GradualChange)
    decided_s: float | None = None
    ahead_per_s: Floats | None = None  # workload foreseen for 1, 2, … steps from decided_s
    predicted: Floats | None = None  # slow records foreseen for these
    predicted_replicas: int = 0
    problem: str = ""  # why the last decision could not be taken

    def explore_again(self) -> None:
        self.model, self.decided_s, self.problem = None, None, ""
        self.ahead_per_s, self.predicted = None, None


@register("proactive")
@dataclass
class Proactive(SlowRecords[Learning]):
    check_samples: int = parameter(450, "samples between stability checks (§5.2; 300 in §5.4)", at_least=1)
    max_degree: int = parameter(MAX_DEGREE, "highest degree of the polynomial", at_least=1)
    degree_by: Literal["in_sample", "cross_validated", "printed"] = parameter(
        "in_sample", "choice of the degree: RMSE on the data, on samples left out, or 'printed' (a constant)"
    )
    robust_training: bool = parameter(False, "leave outliers out of the training (§7, future work)")
    resamples: int = parameter(250, "k: bootstrap resamples of the stability check", at_least=2)
    stability_threshold: float = parameter(0.05, "λ: spread of slow records up to which a model is stable")
    algorithm_4: Literal["refit", "printed"] = parameter(
        "refit", "'printed' resamples the inputs of one model, which measures spread, not stability"
    )
    step_s: float = parameter(5.0, "w_step: seconds between samples in optimal control", at_least=0.1)
    decision_s: float = parameter(60.0, "seconds between decisions in optimal control", at_least=0.1)
    history_s: float = parameter(600.0, "past workload that the predictor looks at", at_least=1)
    horizon_s: float = parameter(60.0, "future workload that it predicts", at_least=0.1)
    up_gain: float = parameter(0.9, "α: share of the way up to the target taken at once", at_least=0)
    down_gain: float = parameter(0.4, "β: share of the way down", at_least=0)
    change_residual: float = parameter(0.08, "residual of slow records above which the model is discarded")
    gradual_change: bool = parameter(False, "discard the model also when small residuals add up (§7)")
    gradual_allowance: float = parameter(0.04, "a residual up to this counts as none", at_least=0)
    gradual_limit: float = parameter(0.48, "sum of the residuals' excess that is a change", at_least=0)
    extrapolation: Literal["keep", "printed"] = parameter(
        "keep", "beyond its data, keep the plan; 'printed' trusts the polynomial everywhere"
    )
    _exploration_s: float = field(init=False, repr=False, compare=False)
    _rng: Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._exploration_s = self.period_s  # the period changes with the mode
        for name in ("up_gain", "down_gain"):
            if not 0 <= getattr(self, name) <= 1:
                raise FogscaleError(f"parameter '{name}' of policy 'proactive': give a share between 0 and 1")

    def start(self, topology: Topology, rng: Generator) -> None:
        self._rng = rng
        super().start(topology, rng)
        self._set_period()

    def load(self, learned: Mapping[str, Any]) -> None:
        """With a model it begins in optimal control."""
        for name, known in learned_as(LearntParts, learned, "proactive", LEARNED_VERSION).parts.items():
            if name not in self._memories:
                raise FogscaleError(
                    f"what policy 'proactive' should start from: {unknown('part', name, self._memories)}"
                )
            memory = self._memories[name]
            memory.model = known.model
            memory.capacity = Capacity(known.capacity_per_s, known.capacity_measurements)
            memory.gradual = GradualChange(self.gradual_allowance, self.gradual_limit)
        self._set_period()

    def save(self) -> dict[str, Any]:
        found = {
            name: Learnt(memory.model, memory.capacity.per_s, memory.capacity.measurements)
            for name, memory in self._memories.items()
            if memory.model is not None and memory.capacity is not None
        }
        return {"version": LEARNED_VERSION, "parts": msgspec.to_builtins(found)}

    def _new_memory(self, scope: Scope) -> Learning:
        return Learning(trend=Trend(self.history_s))

    def _watch_workload(self, memory: Learning, time_s: float, workload_per_s: float) -> None:
        memory.trend.add(time_s, workload_per_s)

    def _numbers(self, memory: Learning, sample: Sample) -> dict[str, float | None]:
        """For the figures: the workload and the slow records foreseen for now, before the next decision."""
        exploring, step = memory.model is None, _step(memory, sample, self.step_s)
        return {
            "exploration": float(exploring),
            "foreseen_workload_per_s": None if step is None else _at(memory.ahead_per_s, step),
            "foreseen_slow_ratio": None if step is None else _at(memory.predicted, step),
            "residual": _residual(memory, sample, self.step_s),
        }

    def _verdict(self, memory: Learning, sample: Sample, bounds: Bounds) -> Verdict:
        news = [self._left_control(memory, sample), self._entered_control(memory, sample)]
        if memory.model is None:
            verdict = self._reaction(memory, sample, bounds)
        else:
            verdict = self._control(memory, memory.model, sample, bounds)
        self._set_period()
        return verdict._replace(news="; ".join(filter(None, [*news, verdict.news])))

    def _set_period(self) -> None:
        controlled = any(memory.model is not None for memory in self._memories.values())
        self.period_s = self.step_s if controlled else self._exploration_s

    # Exploration

    def _entered_control(self, memory: Learning, sample: Sample) -> str:
        """Collects samples and, every `check_samples`, trains a model and checks it."""
        if memory.model is not None:
            return ""
        memory.rows.append((sample.workload_per_s, sample.replicas, sample.slow_ratio))
        if len(memory.rows) % self.check_samples:
            return ""
        try:
            model, samples = trained(
                Samples.of(memory.rows), self.degree_by, self.max_degree, self.robust_training
            )
            capacity_per_s = None if memory.capacity is None else memory.capacity.per_s
            found = stability(
                model,
                samples,
                capacity_per_s,
                sample.workload_per_s,
                sample.replicas,
                self._rng,
                self.resamples,
                self.stability_threshold,
                self.algorithm_4,
            )
        except (UnfitError, np.linalg.LinAlgError) as problem:
            return f"stays in exploration: {problem}"
        if not found.stable or capacity_per_s is None:
            return f"stays in exploration: {found.reason}"
        memory.model = model
        memory.gradual = GradualChange(self.gradual_allowance, self.gradual_limit)
        memory.spare_in_a_row = 0
        return f"optimal control: degree {model.degree} from {model.samples} samples, {found.reason}"

    # Optimal control

    def _left_control(self, memory: Learning, sample: Sample) -> str:
        """Change-point detection: a model that is wrong is discarded with its data."""
        residual = _residual(memory, sample, self.step_s)
        if residual is None:
            return ""
        if AbruptChange(self.change_residual).found(residual):
            why = f"{residual:.3f} off"
        elif self.gradual_change and memory.gradual.found(residual):
            why = f"off by {memory.gradual.total:.2f} in sum"
        else:
            return ""
        memory.explore_again()
        memory.rows.clear()
        return f"exploration: the model is {why}"

    def _control(self, memory: Learning, model: Polynomial, sample: Sample, bounds: Bounds) -> Verdict:
        """Algorithm 6, every `decision_s`."""
        waited_s = self.decision_s if memory.decided_s is None else sample.time_s - memory.decided_s
        if waited_s < self.decision_s - 1e-9:
            return Verdict(sample.replicas, problem=memory.problem)
        ahead_per_s = memory.trend.ahead(sample.time_s, self.horizon_s, self.step_s)
        memory.decided_s, memory.ahead_per_s, memory.predicted = sample.time_s, ahead_per_s, None
        if ahead_per_s is None:
            memory.problem = "too few samples to predict the workload"
            return Verdict(sample.replicas, problem=memory.problem)
        target = self._target(model, ahead_per_s, sample.replicas, bounds)
        if target is None:
            return self._unknown_ground(memory, sample, bounds)
        memory.problem = ""
        wanted = hysteresis(sample.replicas, target, self.up_gain, self.down_gain)
        if wanted == sample.replicas:
            memory.predicted = self._slow_ratio(model, ahead_per_s, wanted)
            memory.predicted_replicas = wanted
        low, high = float(ahead_per_s.min()), float(ahead_per_s.max())
        return Verdict(
            wanted, f"{target} for {low:.0f}–{high:.0f} records/s in the next {self.horizon_s:g} s"
        )

    def _target(self, model: Polynomial, ahead_per_s: Floats, replicas: int, bounds: Bounds) -> int | None:
        """Lines 3–10: the fewest TaskManagers with which no violation is foreseen; None: nobody knows."""
        known = [seen.replicas for seen in model.seen if bounds.fewest <= seen.replicas <= bounds.most]
        if self.extrapolation == "printed":
            most = min(bounds.most, 2 * max(replicas, *known, bounds.fewest))
            known = list(range(bounds.fewest, most + 1))
        for candidate in known:
            if (self._slow_ratio(model, ahead_per_s, candidate) < self.sla_ratio).all():
                return candidate
        if self.extrapolation == "printed":
            return known[-1]
        # Where even the most that the data know are foreseen to violate the SLA, one more is the next safe
        # step; where they cannot be judged, there is none.
        enough_known = known and (self._slow_ratio(model, ahead_per_s, known[-1]) >= self.sla_ratio).any()
        return min(max(replicas, known[-1] + 1), bounds.most) if enough_known else None

    def _slow_ratio(self, model: Polynomial, workload_per_s: Floats, replicas: int) -> Floats:
        if self.extrapolation == "printed":
            return model.value(workload_per_s, float(replicas))
        return model.slow_ratio(workload_per_s, replicas)

    def _unknown_ground(self, memory: Learning, sample: Sample, bounds: Bounds) -> Verdict:
        """Beyond the model's data the plan is kept; should the SLA be violated there, it is explored. The
        data stay, since they are not wrong but incomplete."""
        problem = "the workload ahead is beyond the model's data"
        if sample.slow_ratio < self.sla_ratio:
            memory.problem = problem
            return Verdict(sample.replicas, problem=problem)
        memory.explore_again()
        return self._reaction(memory, sample, bounds)._replace(news=f"exploration: {problem}")


def _residual(memory: Learning, sample: Sample, step_s: float) -> float | None:
    """Algorithm 7: how far the share of slow records is from what was foreseen for now."""
    step = _step(memory, sample, step_s)
    if step is None or sample.replicas != memory.predicted_replicas:
        return None
    foreseen = _at(memory.predicted, step)
    return None if foreseen is None else abs(sample.slow_ratio - foreseen)


def _step(memory: Learning, sample: Sample, step_s: float) -> int | None:
    """Which of the foreseen steps is now."""
    if memory.decided_s is None or sample.time_s <= memory.decided_s:
        return None
    return max(0, round((sample.time_s - memory.decided_s) / step_s) - 1)


def _at(foreseen: Floats | None, step: int) -> float | None:
    if foreseen is None or step >= len(foreseen) or isnan(foreseen[step]):
        return None
    return float(foreseen[step])


def hysteresis(old: int, target: int, up_gain: float, down_gain: float) -> int:
    """Algorithm 6, lines 20–28. The thesis does not say how it rounds; here a fraction becomes one more
    TaskManager, which is the safe side, but a step is never 0: at α = .9 and β = .4 a target one away would
    otherwise never be reached (or, cut to integers, not upwards)."""
    gain = up_gain if target > old else down_gain
    if target == old or gain == 0:
        return old
    new = ceil(old + gain * (target - old) - 1e-9)
    return max(old + 1, new) if target > old else min(old - 1, new)
