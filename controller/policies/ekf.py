"""EKF (Borkowski et al., PVLDB 2019): CPU and memory thresholds 45/80 on loads that extended Kalman filters
estimate from measurements and from the input rate, which also tells how many instances are needed.

How many. The paper says only that a filtered load above 1.0 indicates how many more instances are required,
and gives no formula. Eq. 15 sums the estimates over instances: Σx̂ is the operator's load in units of one
instance. If it divides evenly among n' instances (round-robin dealing, §3.1; true of CPU, too cautious for
memory, of which an idle instance holds some too), each carries Σx̂/n'. So

    up:    n' = ⌈Σx̂ / Θ⁺⌉, the fewest that stay at or below the upper threshold; at least one more, since
           the average x̂ is above Θ⁺; and instances that boot already count: none is asked for twice;
    down:  n' = max(⌈Σx̂ / Θ⁺⌉, ⌊Σx̂ / Θ⁻⌋), the smallest step back into the band [Θ⁻, Θ⁺]; where no count lies
           in the band (two instances at 42 %, one would be at 84 %), nothing.

The instances that no estimate exists for yet are taken to carry what the others do.

Beyond the paper, off by default: with h(x) = x, readings of 100 % pull a forecast of 460 % back to 100 %
while instances boot. `measurement: censored` lets a full load say no more than that it is full, and
`rate: per_instance` gives each filter its instance's share of D and divides x̂ among those that join.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, isnan
from typing import Any, ClassVar, Literal

from numpy.random import Generator

from controller.model import Capabilities, Capability, Topology
from controller.models.instance_load import METRICS, Loads, LoadSample, mean_over_instances
from controller.models.kalman import KalmanFilters, KalmanSettings, RateInput
from controller.models.kalman_fit import RateOf, Sensitivity, SensitivityFit, input_of
from controller.policies import parameter, register
from controller.policies._filtered_threshold import FilteredThreshold, LoadFilter, said
from fogscale.errors import FogscaleError, unknown


class Kalman:
    """The filters of one operator, with a and b as given, or fitted to what has been seen so far."""

    def __init__(
        self, filters: KalmanFilters, rate: RateInput, of: RateOf, sensitivity: Sensitivity | None
    ) -> None:
        self._filters, self._rate, self._of, self._given = filters, rate, of, sensitivity
        self._fit = SensitivityFit()
        self._ids: tuple[str, ...] = ()
        self._last_loads: list[float] = []
        self.remark = ""

    def step(self, sample: LoadSample) -> Loads:
        level_per_s, change_per_s = given = input_of(self._rate, sample, self._of)
        sensitivity = (
            self._given or self._fit.fitted()
        )  # fitted before this step: a forecast, not a hindsight
        self.remark = sensitivity.problem
        shift = [
            a * level_per_s + b * change_per_s
            for a, b in zip(sensitivity.level, sensitivity.change, strict=True)
        ]
        if self._of == "per_instance" and self._ids and len(sample.ids) != len(self._ids):
            self._filters.divide(len(self._ids) / max(1, len(sample.ids)))
        if self._given is None:
            loads = mean_over_instances(sample.loads)
            if sample.ids == self._ids and sample.rate_per_s is not None:
                self._fit.add(given, self._last_loads, loads)
            self._last_loads = loads
        self._ids = sample.ids
        return self._filters.step(sample.time_s, sample.ids, sample.loads, shift)


@register("ekf")
@dataclass
class ExtendedKalman(FilteredThreshold):
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "censored": {"measurement": "censored", "rate": "per_instance"},
        "printed": {"covariance": "printed", "transition": "printed", "timing": "printed"},
    }
    level_sensitivity: Mapping[str, float] | None = parameter(
        None, "a, per metric: what one record/s adds to a load in a step; none: fitted while it runs"
    )
    change_sensitivity: Mapping[str, float] | None = parameter(
        None, "b, per metric: what a rate higher by one record/s adds to a load; none: fitted while it runs"
    )
    measurement_variance: Mapping[str, float] = parameter(
        {"cpu": 0.0025, "memory": 1e-6}, "R, per metric: variance of what is read at constant load"
    )
    system_noise_floor: float = parameter(1e-5, "least Q = P₀ − R", at_least=0)
    dead_time_s: float = parameter(
        10.0, "an instance's measurements are only collected this long", at_least=0
    )
    ease_in_s: float = parameter(10.0, "then its filter runs unused this long", at_least=0)
    rate: Literal["operator", "per_instance"] = parameter(
        "operator", "D: the rate of the operator, or each instance's share (best with 'censored')"
    )
    measurement: Literal["identity", "censored"] = parameter(
        "identity", "h(x): x as in the paper, or min(x, 1): a full load then says only that it is full"
    )
    rate_memory_s: float = parameter(10.0, "D counts as its deviation from a mean this long", at_least=0.1)
    sizing: Literal["required", "one"] = parameter(
        "required", "instances per plan: as many as needed, or one"
    )
    max_step: int = parameter(
        10, "most instances a plan adds or takes: no forecast is believed beyond", at_least=1
    )
    covariance: Literal["updated", "printed"] = parameter(
        "updated", "'printed' never updates P a posteriori (Eq. 12–14)"
    )
    transition: Literal["deviations", "printed"] = parameter(
        "deviations", "'printed' adds a·D itself, which drifts at constant load"
    )
    timing: Literal["current", "printed"] = parameter(
        "current", "'printed' predicts from the input one step earlier (Eq. 10)"
    )
    combine: Literal["average", "sum"] = parameter("average", "'sum' holds the sum of Eq. 15 against Θ")

    @property
    def needs(self) -> Capabilities:
        return super().needs | {Capability.ARRIVAL_RATE}

    def start(self, topology: Topology, rng: Generator) -> None:
        if (self.level_sensitivity is None) != (self.change_sensitivity is None):
            raise FogscaleError(
                "level_sensitivity and change_sensitivity belong together: give both or neither"
            )
        super().start(topology, rng)

    def new_filter(self) -> LoadFilter:
        settings = KalmanSettings(
            measurement_variance=_by_metric("measurement_variance", self.measurement_variance),
            dead_time_s=self.dead_time_s,
            ease_in_s=self.ease_in_s,
            system_noise_floor=self.system_noise_floor,
            covariance=self.covariance,
            censored=self.measurement == "censored",
        )
        rate = RateInput(self.rate_memory_s, self.transition, self.timing)
        return Kalman(KalmanFilters(settings), rate, self.rate, self._sensitivity())

    def _sensitivity(self) -> Sensitivity | None:
        if self.level_sensitivity is None or self.change_sensitivity is None:
            return None
        return Sensitivity(
            _by_metric("level_sensitivity", self.level_sensitivity),
            _by_metric("change_sensitivity", self.change_sensitivity),
        )

    def compared(self, loads: list[float], instances: int) -> list[float]:
        return loads if self.combine == "average" else [load * instances for load in loads]

    def sized(self, direction: int, loads: list[float], instances: int, requested: int) -> tuple[int, str]:
        if self.sizing == "one":
            return super().sized(direction, loads, instances, requested)
        total = max(load for load in loads if not isnan(load)) * instances  # Σx̂ of the metric that binds
        fewest = ceil(total / self.high_ratio - 1e-9)
        if direction > 0:
            wanted = max(requested, fewest)
        else:
            wanted = min(requested, max(fewest, floor(total / self.low_ratio + 1e-9)))
        reason = f"{said(loads)} filtered, {wanted} needed"
        if abs(wanted - requested) > self.max_step:
            wanted = requested + self.max_step * direction
            reason += f" but at most {self.max_step} at once"
        return wanted, reason


def _by_metric(parameter_name: str, values: Mapping[str, float]) -> tuple[float, ...]:
    for metric in values:
        if metric not in METRICS:
            raise FogscaleError(
                f"parameter '{parameter_name}' of policy 'ekf': {unknown('metric', metric, METRICS)}"
            )
    if missing := [metric for metric in METRICS if metric not in values]:
        raise FogscaleError(
            f"parameter '{parameter_name}' of policy 'ekf': give a value for {missing[0]} too"
        )
    return tuple(float(values[metric]) for metric in METRICS)
