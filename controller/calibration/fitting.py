"""Every capacity law of the simulator fitted to measured points, and judged by what it says of points that it
has not seen (leave-one-out)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from controller.models.mst import Measurement, calibrated
from controller.testbeds.simulated.capacity import (
    CapacityLaw,
    InFlight,
    Linear,
    PowerLatency,
    Table,
    UniversalScalability,
)
from fogscale.errors import FogscaleError

MOST_PER_MS = 0.1  # of 1 / half_rtt_ms
A_TIE = 0.001  # errors closer together than this tell no law from another


class Measured(Protocol):
    """What a law is fitted to."""

    @property
    def replicas(self) -> int: ...
    @property
    def largest_rtt_ms(self) -> float: ...
    @property
    def channel_rtt_ms(self) -> float: ...
    @property
    def rate_per_s(self) -> float: ...


@dataclass(frozen=True)
class Fit:
    law: CapacityLaw
    parameters: int  # free ones
    error_ratio: float  # mean of |fitted − measured| / measured, of the points it was fitted to
    left_out_ratio: float | None  # the same of each point when fitted to all others; None: too few points
    worst_ratio: float | None  # the largest of those


def predicted_per_s(law: Any, point: Measured) -> float:
    rtt_ms = point.channel_rtt_ms if law.across == "channels" else point.largest_rtt_ms
    return float(law.capacity_per_s(point.replicas, 1.0, rtt_ms))


def error_ratio(law: Any, points: Sequence[Measured]) -> float:
    return float(np.mean([abs(predicted_per_s(law, each) / each.rate_per_s - 1) for each in points]))


def fitted(points: Sequence[Measured], record_bytes: float | None = None) -> list[Fit]:
    """All laws that these points can tell, the best first."""
    if not points:
        raise FogscaleError("no point was measured: measure at least one")
    fits = []
    counts = len({each.replicas for each in points})
    for parameters, fit in _laws(record_bytes, counts):
        law = fit(points)
        if law is None:
            continue
        errors = _left_out(fit, points)
        fits.append(
            Fit(
                law,
                parameters,
                error_ratio(law, points),
                float(np.mean(errors)) if errors else None,
                max(errors) if errors else None,
            )
        )
    if not fits:
        raise FogscaleError("one point tells no law from another: measure at least two")
    return sorted(fits, key=_rank)


def _rank(fit: Fit) -> tuple[bool, float, int]:
    """Among laws that predict alike, the one with the fewest parameters."""
    judged = fit.error_ratio if fit.left_out_ratio is None else fit.left_out_ratio
    return fit.left_out_ratio is None, round(judged / A_TIE), fit.parameters


_FitLaw = Callable[[Sequence[Measured]], CapacityLaw | None]


def _laws(record_bytes: float | None, counts: int) -> list[tuple[int, _FitLaw]]:
    return [
        (2, _linear),
        (3, _power_latency),
        (3, lambda points: _in_flight(points, record_bytes)),
        (4, _usl),
        (counts + 1, _table),
    ]


def _left_out(fit: _FitLaw, points: Sequence[Measured]) -> list[float]:
    """The error of each point under the law fitted to the others; empty where they are too few for it."""
    errors = []
    for place, point in enumerate(points):
        law = fit([*points[:place], *points[place + 1 :]])
        if law is None:
            return []
        errors.append(abs(predicted_per_s(law, point) / point.rate_per_s - 1))
    return errors


def _best(
    points: Sequence[Measured],
    build: Callable[[NDArray[np.float64]], CapacityLaw],
    starts: Sequence[Sequence[float]],
    low: Sequence[float],
    high: Sequence[float],
) -> CapacityLaw | None:
    """Least squares of relative errors, from several starts; None where points are fewer than parameters."""
    if len(points) < len(low):
        return None

    def residuals(values: NDArray[np.float64]) -> list[float]:
        law = build(values)
        return [predicted_per_s(law, each) / each.rate_per_s - 1 for each in points]

    found = [
        least_squares(residuals, np.clip(start, low, high), bounds=(low, high), x_scale="jac")
        for start in starts
    ]
    return build(min(found, key=lambda each: float(each.cost)).x)


def _usual_per_s(points: Sequence[Measured]) -> float:
    return float(np.median([each.rate_per_s / each.replicas for each in points]))


def _most_per_ms(points: Sequence[Measured]) -> float:
    """What a round trip costs shows only where points differ in it; else it is left out."""
    trips = {each.largest_rtt_ms for each in points if each.replicas > 1}
    return MOST_PER_MS if len(trips) > 1 else 1e-9


def _or_none_at_all(value: float) -> float:
    """What least squares leave near a bound of 0 is 0."""
    return 0.0 if value < 1e-9 else float(value)


def _half_rtt_ms(per_ms: float) -> float | None:
    """Below a thousandth of the rate in a second, there is no effect."""
    return None if per_ms < 1e-6 else 1 / per_ms


def _linear(points: Sequence[Measured]) -> CapacityLaw | None:
    usual = _usual_per_s(points)
    return _best(
        points,
        lambda x: Linear(law="linear", per_replica_per_s=x[0], half_rtt_ms=_half_rtt_ms(x[1])),
        [(usual, 0.0), (usual, 0.005)],
        (usual / 100, 0.0),
        (usual * 100, _most_per_ms(points)),
    )


def _usl(points: Sequence[Measured]) -> CapacityLaw | None:
    usual = _usual_per_s(points)
    return _best(
        points,
        lambda x: UniversalScalability(
            law="usl",
            per_replica_per_s=x[0],
            contention=_or_none_at_all(x[1]),
            crosstalk=_or_none_at_all(x[2]),
            half_rtt_ms=_half_rtt_ms(x[3]),
        ),
        [(usual, contention, 0.001, per_ms) for contention, per_ms in product((0.01, 0.1), (1e-4, 0.005))],
        (usual / 100, 0.0, 0.0, 0.0),
        (usual * 100, 1.0, 1.0, _most_per_ms(points)),
    )


def _power_latency(points: Sequence[Measured]) -> CapacityLaw | None:
    """As Gesscale itself calibrates it, absolute errors and all."""
    if len(points) < 3:
        return None
    model = calibrated(Measurement(each.replicas, each.largest_rtt_ms, each.rate_per_s) for each in points)
    return (
        None
        if model is None
        else PowerLatency(
            law="power_latency",
            alpha_per_s=model.alpha_per_s,
            beta=model.beta,
            gamma_per_s_per_ms=_or_none_at_all(model.gamma_per_s_per_ms),
        )
    )


def _in_flight(points: Sequence[Measured], record_bytes: float | None) -> CapacityLaw | None:
    """How much is in flight shows only where it limits: elsewhere there is no limit."""
    usual, bytes_each = _usual_per_s(points), record_bytes or 1.0

    def unlimited(x: NDArray[np.float64]) -> CapacityLaw:
        return InFlight(law="in_flight", per_replica_per_s=x[0], beta=x[1], record_bytes=bytes_each)

    def limited(x: NDArray[np.float64]) -> CapacityLaw:
        return InFlight(
            law="in_flight",
            per_replica_per_s=x[0],
            beta=x[1],
            in_flight_bytes=float(np.exp(x[2])) * bytes_each,
            record_bytes=bytes_each,
        )

    free = _best(points, unlimited, [(usual, 1.0)], (usual / 100, 0.2), (usual * 100, 1.2))
    held = [each.rate_per_s * each.channel_rtt_ms / 1000 / each.replicas for each in points]
    if max(held) <= 0 or len({each.channel_rtt_ms for each in points}) < 2:
        return free
    # Between the least and the most that was seen in flight: where it limits, that is what there is.
    guesses = np.quantile([records for records in held if records > 0], (0.25, 0.75, 1.0))
    starts = [(usual * up, 1.0, float(np.log(records))) for records in guesses for up in (1, 2)]
    bound = _best(
        points, limited, starts, (usual / 100, 0.2, -7.0), (usual * 100, 1.2, float(np.log(max(held))) + 0.5)
    )
    if free is None or bound is None:
        return free
    return bound if error_ratio(bound, points) < error_ratio(free, points) - A_TIE else free


def _table(points: Sequence[Measured]) -> CapacityLaw | None:
    """A rate for each number of replicas; what lies between measured ones is interpolated."""
    counts = sorted({each.replicas for each in points})

    def build(x: NDArray[np.float64]) -> CapacityLaw:
        rates = np.interp(range(1, counts[-1] + 1), [0, *counts], [0.0, *x[:-1]])
        return Table(law="table", measured_per_s=tuple(rates), half_rtt_ms=_half_rtt_ms(x[-1]))

    means = [float(np.mean([each.rate_per_s for each in points if each.replicas == n])) for n in counts]
    return _best(
        points,
        build,
        [(*means, 0.0), (*means, 0.002)],
        (*(mean / 100 for mean in means), 0.0),
        (*(mean * 100 for mean in means), _most_per_ms(points)),
    )
