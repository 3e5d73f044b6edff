"""How the capacity of the scaled operator follows from published facts, whatever law it obeys.

Nobody published what a replica can do. But Table III tells over which period it was measured, and all of its
rows agree on the mean of the ideal number of replicas (measuring_period.py); the offered load is known: so
whatever shape a law has, its scale is the one at which the ideal autoscaler of Figure 6 has that mean.
The latency loss L is the share of the latency-free capacity of all replicas that the largest delay costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from controller.experiment import Experiment
from controller.testbeds.simulated.capacity import (
    CapacityLaw,
    Linear,
    PowerLatency,
    Table,
    UniversalScalability,
)
from controller.testbeds.simulated.settings import simulation_of
from paper_figures.gesscale.measuring_period import period_of
from paper_figures.published import load as load_published
from workloads import catalog
from workloads.replay import offered_rate_per_s

MEAN_IDEAL = 3.048  # replicas while there is load; measuring_period.py
LATENCY_LOSS = 0.31  # assumed: the middle of its range
KNEE = (1.0, 2.0, 3.0, 4.0, 4.5, 5.0)  # of the law `table`: full gains up to four replicas, then half

IDEAL = "calibration.mean_ideal"
LOSS = "calibration.latency_loss"
POINT = {IDEAL: MEAN_IDEAL, LOSS: LATENCY_LOSS}  # what experiment.yml was worked out from

Ladder = Sequence[float]
"""Something of 1, 2, … replicas."""


def calibrated(experiment: Experiment, drawn: Mapping[str, float], law: str = "power_latency") -> Experiment:
    """The experiment with the measuring period worked out anew, and with the capacity from its beta and the
    drawn parameters."""
    measured = period_of(load_published(Path(__file__).parent).table)
    beta = _beta_of(experiment)
    rates_per_s, delays_ms = offered_by_minute(experiment), delays_by_replica_ms(experiment)
    mean_ideal = drawn.get(IDEAL, POINT[IDEAL])
    loss = drawn.get(LOSS, POINT[LOSS])
    capacity = dict(simulation_of(experiment.testbed).capacity)
    capacity["map"] = capacity_law(law, beta, loss, delays_ms, rates_per_s, mean_ideal)
    simulation = simulation_of(experiment.testbed).model_copy(
        update={"capacity": capacity, "sample_interval_s": measured.interval_s}
    )
    metrics = experiment.metrics.model_copy(update={"period_s": 60.0 * round(measured.minutes)})
    return experiment.model_copy(update={"testbed": simulation, "metrics": metrics})


def capacity_law(
    law: str,
    beta: float,
    loss: float,
    delays_ms: Ladder,
    rates_per_s: NDArray[np.float64],
    mean_ideal: float = MEAN_IDEAL,
) -> CapacityLaw:
    """A law whose scale gives the mean ideal, with this latency loss."""
    shape, farthest_ms = shape_of(law, beta), delays_ms[-1]
    scale = scale_of(with_latency(law, shape, delays_ms, loss), rates_per_s, mean_ideal)
    if law == "power_latency":
        gamma = loss * scale * shape[-1] / farthest_ms
        return PowerLatency(law="power_latency", alpha_per_s=scale, beta=beta, gamma_per_s_per_ms=gamma)
    half_rtt_ms = farthest_ms * (1 - loss) / loss  # 1/(1 + farthest/half) = 1 − loss
    if law == "linear":
        return Linear(law="linear", per_replica_per_s=scale, half_rtt_ms=half_rtt_ms)
    if law == "usl":
        contention, crosstalk = usl_coefficients(beta, len(shape))
        return UniversalScalability(
            law="usl",
            per_replica_per_s=scale,
            contention=contention,
            crosstalk=crosstalk,
            half_rtt_ms=half_rtt_ms,
        )
    return Table(law="table", measured_per_s=tuple(scale * step for step in shape), half_rtt_ms=half_rtt_ms)


def shape_of(law: str, beta: float, replicas: int = len(KNEE)) -> Ladder:
    """The latency-free capacity of 1, 2, … replicas, as multiples of that of one."""
    counts = range(1, replicas + 1)
    if law == "power_latency":
        return [n**beta for n in counts]
    if law == "linear":
        return [float(n) for n in counts]
    if law == "usl":
        contention, crosstalk = usl_coefficients(beta, replicas)
        return [n / (1 + contention * (n - 1) + crosstalk * n * (n - 1)) for n in counts]
    if law == "table":
        return KNEE
    raise ValueError(f"no shape is known of the capacity law {law}")


def usl_coefficients(beta: float, replicas: int) -> tuple[float, float]:
    """Contention and crosstalk that share equally what n^beta loses at the largest count; none where beta
    is 1."""
    lost = replicas ** (1 - beta) - 1
    return lost / 2 / (replicas - 1), lost / 2 / (replicas * (replicas - 1))


def with_latency(law: str, shape: Ladder, delays_ms: Ladder, loss: float) -> Ladder:
    """The shape on real nodes. Gesscale's law subtracts in proportion to the delay; the others divide."""
    shares = [delay / delays_ms[-1] for delay in delays_ms]
    if law == "power_latency":
        return [step - loss * shape[-1] * share for step, share in zip(shape, shares, strict=True)]
    return [step / (1 + loss / (1 - loss) * share) for step, share in zip(shape, shares, strict=True)]


def scale_of(shape: Ladder, rates_per_s: NDArray[np.float64], mean_ideal: float = MEAN_IDEAL) -> float:
    """The scale at which the mean demand is the mean ideal, by bisection: demand falls as the scale grows."""
    low, high = 1e-3 * rates_per_s.max(), 1e3 * rates_per_s.max()
    while high / low > 1 + 1e-7:
        middle = float(np.sqrt(low * high))
        if mean_demand(np.asarray(shape) * middle, rates_per_s) > mean_ideal:
            low = middle
        else:
            high = middle
    return float(high)


def mean_demand(capacity_per_s: NDArray[np.float64], rates_per_s: NDArray[np.float64]) -> float:
    """The mean of the fewest replicas that suffice; all of them where none do. Capacity may fall as far-away
    nodes join, so it is the first count that suffices."""
    suffices = capacity_per_s[None, :] >= rates_per_s[:, None]
    first = np.where(suffices.any(axis=1), suffices.argmax(axis=1) + 1, len(capacity_per_s))
    return float(first.mean())


def offered_by_minute(experiment: Experiment) -> NDArray[np.float64]:
    """The noiseless offered rate in each minute of the replay."""
    settings = experiment.workload
    workload = catalog.load(settings.name, **settings.parameters)
    replay = settings.replay(workload.replay)
    return offered_rate_per_s(workload.profile, replay, 60.0)


def delays_by_replica_ms(experiment: Experiment) -> Ladder:
    """ND_max of 1, 2, … replicas on the nearest nodes: none within one node, then that of the farthest."""
    delays_ms = experiment.topology.rtt_ms.delays_ms
    if delays_ms is None:
        raise ValueError("the calibration of Gesscale needs rtt_ms.delays_ms")
    pinned = {node for nodes in experiment.pins.values() for node in nodes}
    free = sorted(delay for node, delay in delays_ms.items() if node not in pinned)
    return [0.0, *free[1:]]


def _beta_of(experiment: Experiment) -> float:
    law = simulation_of(experiment.testbed).capacity["map"]
    if not isinstance(law, PowerLatency):
        raise ValueError("the calibration of Gesscale starts from the law power_latency")
    return law.beta
