"""What a simulated testbed can be told."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from controller.testbeds import TestbedSettings
from controller.testbeds.simulated.capacity import CapacityLaw
from controller.testbeds.simulated.faults import Fault
from fogscale.errors import FogscaleError
from fogscale.settings import PositiveSeconds, Ratio, Seconds, Settings, seconds_of

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


_Range = Annotated[tuple[Seconds, Seconds], BeforeValidator(_range_of)]


class Reconfiguration(Settings):
    """Mechanism 5: what changes cost. `restart` and `in_place` stop the whole job, `pause` only the touched
    operators, `boot` nothing (new instances serve later), `instant` costs nothing at all."""

    style: Style  # what stops meanwhile
    duration_s: _Range | None = None  # how long it takes, or a range; None: as usual for the style
    settling_s: Seconds = 0.0  # after a change, measurements are off by more than usual
    # How long a new instance takes until it can be used; meanwhile the job runs on as it was. An instance on
    # hot standby needs none of it. (With the style boot, that is what duration_s is.)
    provision_s: _Range = (0.0, 0.0)
    # With the style boot: how long an operator stands still when an instance joins or leaves, as state moves.
    handover_s: Seconds = 0.0
    # A job that stopped is not warm at once: for so long after a stop it does this share of its rate.
    catch_up_s: Seconds = 0.0
    catch_up_ratio: Annotated[float, Field(gt=0, le=1)] = 1.0  # the share of its rate for catch_up_s
    # Starting takes the processor, too: what the nodes show while the job is stopped.
    cpu_while_down_ratio: Ratio = 0.0
    metrics_missing_s: Seconds = 0.0  # while the job is stopped and for so long after it, nothing is measured

    @property
    def range_s(self) -> tuple[float, float]:
        return self.duration_s or _USUAL_DURATION_S[self.style]

    @property
    def new_instance_s(self) -> tuple[float, float]:
        """How long an instance takes that is not on standby."""
        return self.range_s if self.style == "boot" else self.provision_s

    @model_validator(mode="after")
    def _in_order(self) -> Reconfiguration:
        for name, (start, end) in (("duration_s", self.range_s), ("provision_s", self.provision_s)):
            if start > end:
                raise ValueError(f"{name}: the range [{start:g}, {end:g}] runs backwards; swap its ends")
        if self.handover_s > 0 and self.style != "boot":
            raise ValueError("handover_s: only the style boot hands state over; use duration_s instead")
        if self.provision_s[1] > 0 and self.style == "boot":
            raise ValueError("provision_s: with the style boot, duration_s is what a new instance takes")
        longest_s = self.range_s[1]
        if self.style == "instant" and longest_s > 0:
            raise ValueError(
                f"duration_s: the style instant takes no time, not {longest_s:g} s; leave it out"
            )
        return self


class Noise(Settings):
    """Mechanism 7: what measuring adds. Relative standard deviations."""

    relative: Annotated[float, Field(ge=0)] = 0.0  # of rates and times, which meters average
    cpu_relative: Annotated[float, Field(ge=0)] = 0.0  # of CPU, which a gauge reads at one instant
    cpu_absolute: Annotated[float, Field(ge=0)] = 0.0  # of CPU, whatever the load; a ratio
    # Of CPU, by its load: a kernel that counts so many ticks, each busy or idle by chance, reads a load x
    # with a standard deviation of √(x(1 − x) / ticks): none at full load.
    cpu_ticks: Annotated[float, Field(gt=0)] | None = None
    # Readings of the CPU whose windows (metric_window_s) overlap share their errors by as much.
    cpu_by_window: bool = False
    # Of CPU, whatever the load, but slow: the error of an instance lasts for about `cpu_wander_s`.
    cpu_wander: Annotated[float, Field(ge=0)] = 0.0
    cpu_wander_s: PositiveSeconds = 5.0  # how long such an error lasts
    memory_relative: Annotated[float, Field(ge=0)] = 0.0  # of memory, which a gauge reads
    queue_relative: Annotated[float, Field(ge=0)] = 0.0  # of what waits, at one instant
    settling_factor: Annotated[float, Field(ge=1)] = 1.0  # how much noisier while settling
    stale_ratio: Ratio = 0.0  # share of observations that repeat the last metrics
    lag_seen_ratio: Ratio = 1.0  # share of the lag that is read
    lag_hidden_s: Seconds = 0.0  # so many seconds of the job's work wait in buffers, where no lag shows

    def while_settling(self) -> Noise:
        worse = self.settling_factor
        return Noise(
            relative=self.relative * worse,
            cpu_relative=self.cpu_relative * worse,
            cpu_absolute=self.cpu_absolute * worse,
            cpu_ticks=None if self.cpu_ticks is None else self.cpu_ticks / worse**2,
            cpu_by_window=self.cpu_by_window,
            memory_relative=self.memory_relative * worse,
            queue_relative=self.queue_relative * worse,
            lag_seen_ratio=self.lag_seen_ratio,
            lag_hidden_s=self.lag_hidden_s,
        )


class CpuGauge(Settings):
    """CPU read from a gauge of every instance on its own; an operator's is the mean of its instances', each
    with an error of its own."""

    window_s: PositiveSeconds  # what the gauge shows is the mean over so long
    max_age_s: Seconds = 0.0  # and up to so old, evenly, since gauges are updated at moments of their own


class BackPressureReadings(Settings):
    """How late back pressure is seen, as with Flink before 1.13, whose REST interface answers with the sample
    that the request before has caused."""

    late_s: Seconds = 0.0  # what is seen was sampled so long ago
    # For so long after a change was asked for, or after the start, there is nothing to see: the time until
    # a controller that waits for the job to warm up asks for the second time.
    missing_s: Seconds = 0.0


class Memory(Settings):
    """The memory that an instance uses, as a share of its node's."""

    idle_ratio: Ratio  # when it has nothing to do
    per_busy_ratio: Ratio = 0.0  # on top when it is fully busy
    per_waiting_record_ratio: Annotated[float, Field(ge=0)] = 0.0  # on top for each record that waits for it


class Kind(Settings):
    """A kind of records in the stream, and how long they may take."""

    share: Annotated[float, Field(gt=0, le=1)]  # of all records
    deadline_s: PositiveSeconds  # later than this they are late
    # Each takes so long whatever the load, on top of the rest and without a processor: it is sent, or travels
    # through a line of stages.
    least_s: Seconds = 0.0
    time_ratio: Annotated[float, Field(gt=0)] = 1.0  # how long they take, compared to the average record
    wait_ratio: Ratio = 1.0  # how much of a backlog they wait for: 1, in line with all others; 0, past them
    # They need the state of one instance: while some boot, those that will belong to them wait for them.
    stateful: bool = False


class Checkpoints(Settings):
    """Each of them keeps the job waiting for some round trips: 1 − round_trips · RTT / interval_s of its rate
    is left."""

    interval_s: PositiveSeconds  # between two of them
    round_trips: Annotated[float, Field(ge=0)]  # lost to each, of the largest round trip


Scv = Annotated[float, Field(ge=0)]
Variability = Scv | dict[str, Scv]


def scv_of(variability: Variability, operator: str) -> float:
    return variability.get(operator, 1.0) if isinstance(variability, dict) else variability


class Simulation(TestbedSettings):
    many_at_once: ClassVar[bool] = True

    kind: Literal["simulated"] = "simulated"  # chooses this testbed
    capacity: dict[str, CapacityLaw]  # per operator
    reconfiguration: Reconfiguration  # what changes cost
    # Where records wait that an operator cannot take: in Kafka, since sources are slowed, or before it.
    buffering: Literal["back_pressure", "queues"] = "back_pressure"
    # Mechanism 2: the share of the capacity lost to the network that shows as idle CPU. 1: on far-apart nodes
    # a saturated operator looks calm; 0: a saturated operator always looks fully busy.
    cpu_idle_in_latency_ratio: Ratio = 1.0
    # Mechanism 3: a job that works off its backlog is back-pressured until it is done. False: only while more
    # is offered than the slowest operator can do.
    back_pressure_in_catch_up: bool = True
    # So many records fit into the buffers between operators before those upstream are held back: a backlog of
    # no more shows as no back pressure.
    buffered_records: Annotated[float, Field(ge=0)] = 0.0
    # An operator that waits for the network, not for its processor: the share of that time in which it counts
    # as busy, and as back-pressured itself. The rest shows as idle.
    busy_in_latency_ratio: Ratio = 1.0
    back_pressure_in_latency_ratio: Ratio = 0.0  # see busy_in_latency_ratio
    checkpoints: Checkpoints | None = None  # what they cost; none: nothing
    noise: Noise = Noise()  # what measuring adds
    cpu_gauge: CpuGauge | None = None  # how CPU is read; none: as a mean over metric_window_s, like rates
    back_pressure_readings: BackPressureReadings | None = None  # how late it is seen; none: at once
    memory: dict[str, Memory] = Field(default_factory=dict)  # per operator; none: memory is not measured
    kinds: dict[str, Kind] = Field(default_factory=dict)  # kinds of records with deadlines
    # Squared coefficients of variation, of all operators or per operator (those not named: 1). 1: Poisson
    # arrivals, exponential service times; more: bursts; 0: all alike.
    arrival_scv: Variability = 1.0
    service_scv: Variability = 1.0  # as arrival_scv, of the time that a record takes
    # Whether any replica takes the next record (one), or each has its own, by key (each).
    waiting_lines: Literal["one", "each"] = "one"
    # Replicas beyond the cores of their node share them: all on it are slower by as much.
    shared_cores: bool = False
    metric_window_s: PositiveSeconds = 60.0  # over how long measured rates are means
    sample_interval_s: PositiveSeconds = 10.0  # how often the truth is recorded
    step_s: PositiveSeconds = 1.0  # of the simulated clock
    span_s: PositiveSeconds | None = None  # how much of the load, in its own time; None: all of it
    start_at_s: Seconds = 0.0  # where in the load it begins
    drain_limit_s: Seconds | None = None  # give up this long after the workload; None: once its own span
    faults: tuple[Fault, ...] = ()  # what goes wrong, and when

    @model_validator(mode="after")
    def _shares_fit(self) -> Simulation:
        if self.busy_in_latency_ratio + self.back_pressure_in_latency_ratio > 1 + 1e-9:
            raise ValueError(
                "busy_in_latency_ratio and back_pressure_in_latency_ratio are parts of one time:"
                " together at most 1"
            )
        return self

    @model_validator(mode="after")
    def _gauge_fits(self) -> Simulation:
        gauge = self.cpu_gauge
        if gauge is not None and gauge.window_s + gauge.max_age_s > self.metric_window_s:
            raise ValueError(
                f"cpu_gauge: window_s and max_age_s reach back further than metric_window_s"
                f" ({self.metric_window_s:g} s); lower them"
            )
        return self

    @model_validator(mode="after")
    def _kinds_fit(self) -> Simulation:
        total = sum(kind.share for kind in self.kinds.values())
        if total > 1 + 1e-9:
            raise ValueError(f"kinds: the shares add up to {total:g}; they are parts of 1")
        return self

    @model_validator(mode="after")
    def _steps_fit(self) -> Simulation:
        lengths_s = {"metric_window_s": self.metric_window_s, "sample_interval_s": self.sample_interval_s}
        if self.cpu_gauge is not None:
            lengths_s["cpu_gauge.window_s"] = self.cpu_gauge.window_s
        for name, length_s in lengths_s.items():
            steps = length_s / self.step_s
            if abs(steps - round(steps)) > 1e-9 or steps < 1:
                raise ValueError(f"{name} must be a multiple of step_s ({self.step_s:g} s)")
        return self


def simulation_of(testbed: TestbedSettings) -> Simulation:
    """For what makes sense of a simulated testbed only."""
    if not isinstance(testbed, Simulation):
        raise FogscaleError(
            f"this needs an experiment on the simulated testbed, not '{testbed.kind}': set testbed.kind"
        )
    return testbed
