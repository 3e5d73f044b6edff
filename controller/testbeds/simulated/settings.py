"""What a simulated testbed can be told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from controller.settings import PositiveSeconds, Ratio, Seconds, Settings, seconds_of
from controller.testbeds.simulated.capacity import CapacityLaw
from controller.testbeds.simulated.faults import Fault

Style = Literal["restart", "in_place", "boot", "pause", "instant"]

_USUAL_DURATION_S: dict[str, tuple[float, float]] = {
    "restart": (120.0, 120.0),  # Flink 1.12 on Raspberry Pis (Gesscale, Fig. 3)
    "in_place": (0.2, 2.0),  # Flink 2's adaptive scheduler
    "boot": (5.0, 25.0),  # virtual machines (EKF paper)
    "pause": (2.0, 2.0),
    "instant": (0.0, 0.0),
}


def _range_of(value: Any) -> Any:
    """One duration means always that one."""
    low, high = value if isinstance(value, (list, tuple)) and len(value) == 2 else (value, value)
    return seconds_of(low), seconds_of(high)


class Reconfiguration(Settings):
    """Mechanism 5: what changes cost. `restart` and `in_place` stop the whole job, `pause` only the touched
    operators, `boot` nothing (new instances serve later), `instant` costs nothing at all."""

    style: Style
    duration_s: Annotated[tuple[Seconds, Seconds], BeforeValidator(_range_of)] | None = None
    settling_s: Seconds = 0.0  # after a change, measurements are off by more than usual

    @property
    def range_s(self) -> tuple[float, float]:
        return self.duration_s or _USUAL_DURATION_S[self.style]

    @model_validator(mode="after")
    def _in_order(self) -> Reconfiguration:
        low, high = self.range_s
        if low > high:
            raise ValueError(f"duration_s: the range [{low:g}, {high:g}] runs backwards; swap its ends")
        if self.style == "instant" and high > 0:
            raise ValueError(f"duration_s: the style instant takes no time, not {high:g} s; leave it out")
        return self


class Noise(Settings):
    """Mechanism 7: what measuring adds. Relative standard deviations."""

    relative: Annotated[float, Field(ge=0)] = 0.0  # of rates and times, which meters average
    cpu_relative: Annotated[float, Field(ge=0)] = 0.0  # of CPU, which a gauge reads at one instant
    settling_factor: Annotated[float, Field(ge=1)] = 1.0  # how much noisier while settling
    stale_ratio: Ratio = 0.0  # share of observations that repeat the last metrics

    def while_settling(self) -> Noise:
        worse = self.settling_factor
        return Noise(relative=self.relative * worse, cpu_relative=self.cpu_relative * worse)


class Simulation(Settings):
    capacity: dict[str, CapacityLaw]  # per operator
    reconfiguration: Reconfiguration
    buffering: Literal["back_pressure", "queues"] = "back_pressure"
    # Mechanism 2: the share of the capacity lost to the network that shows as idle CPU. 1: on far-apart nodes
    # a saturated operator looks calm; 0: a saturated operator always looks fully busy.
    cpu_idle_in_latency_ratio: Ratio = 1.0
    # Mechanism 3: a job that works off its backlog is back-pressured until it is done. False: only while more
    # is offered than the slowest operator can do.
    back_pressure_in_catch_up: bool = True
    noise: Noise = Noise()
    arrival_scv: Annotated[float, Field(ge=0)] = 1.0  # 1: Poisson; more: bursts
    service_scv: Annotated[float, Field(ge=0)] = 1.0
    metric_window_s: PositiveSeconds = 60.0
    sample_interval_s: PositiveSeconds = 10.0
    step_s: PositiveSeconds = 1.0
    drain_limit_s: Seconds | None = None  # give up this long after the workload; None: once its own span
    faults: tuple[Fault, ...] = ()

    @model_validator(mode="after")
    def _steps_fit(self) -> Simulation:
        for name in ("metric_window_s", "sample_interval_s"):
            steps = getattr(self, name) / self.step_s
            if abs(steps - round(steps)) > 1e-9 or steps < 1:
                raise ValueError(f"{name} must be a multiple of step_s ({self.step_s:g} s)")
        return self
