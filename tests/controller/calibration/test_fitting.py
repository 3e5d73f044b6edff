"""Fitting capacity laws: each finds the points it made itself, and the one that made them is chosen."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import TypeAdapter

from controller.calibration.fitting import error_ratio, fitted, predicted_per_s
from controller.calibration.points import Point
from controller.testbeds.simulated.capacity import CapacityLaw
from fogscale.errors import FogscaleError

GRID = [(n, rtt_ms) for rtt_ms in (5.0, 100.0, 300.0) for n in (1, 2, 3, 4, 5)]


def law(**values):
    return TypeAdapter(CapacityLaw).validate_python(values)


def point(replicas: int, rtt_ms: float, rate_per_s: float = 1.0) -> Point:
    return Point(
        replicas=replicas,
        rtt_ms=rtt_ms,
        nodes=tuple(f"fog{i}" for i in range(replicas)),
        largest_rtt_ms=rtt_ms if replicas > 1 else 0.0,
        channel_rtt_ms=rtt_ms,
        rate_per_s=rate_per_s,
        records=1,
        seconds=1,
        warm_after_s=20,
        steady=True,
    )


def points_of(made_by, off: float = 0.0, grid=GRID) -> list[Point]:
    """What that law says, off by so much in the standard deviation."""
    rng = np.random.default_rng(7)
    return [
        point(n, rtt_ms, predicted_per_s(made_by, point(n, rtt_ms)) * (1 + off * rng.standard_normal()))
        for n, rtt_ms in grid
    ]


LAWS = [
    law(law="linear", per_replica_per_s=80, half_rtt_ms=900),
    law(law="power_latency", alpha_per_s=80, beta=0.8, gamma_per_s_per_ms=0.1),
    law(law="usl", per_replica_per_s=80, contention=0.05, crosstalk=0.02, half_rtt_ms=700),
    law(law="table", measured_per_s=[80, 150, 250, 260, 340], half_rtt_ms=700),
    law(law="in_flight", per_replica_per_s=3700, in_flight_bytes=172_000, record_bytes=230),
]


@pytest.mark.parametrize("made_by", LAWS, ids=lambda each: each.law)
def test_the_law_that_made_the_points_is_chosen(made_by):
    best = fitted(points_of(made_by), record_bytes=230)[0]
    assert best.law.law == made_by.law
    assert best.left_out_ratio == pytest.approx(0, abs=0.002)
    assert error_ratio(best.law, points_of(made_by)) < 0.002


def test_what_is_in_flight_is_found():
    best = fitted(points_of(LAWS[-1]), record_bytes=230)[0].law
    assert best.in_flight_bytes == pytest.approx(172_000, rel=0.01)
    assert best.per_replica_per_s == pytest.approx(3700, rel=0.01)


def test_where_nothing_limits_there_is_no_limit_and_the_simplest_law_wins():
    """A processor-bound job: the round trip does not matter, every replica adds the same."""
    made_by = law(law="linear", per_replica_per_s=78)
    fits = fitted(points_of(made_by))
    assert (fits[0].law.law, fits[0].law.half_rtt_ms) == ("linear", None)
    assert fits[0].law.per_replica_per_s == pytest.approx(78)
    in_flight = next(fit.law for fit in fits if fit.law.law == "in_flight")
    assert in_flight.in_flight_bytes is None


def test_errors_of_points_left_out_are_those_of_measuring():
    """Points 3 % off: no law can say better, and the true one not much worse."""
    fits = {fit.law.law: fit for fit in fitted(points_of(LAWS[0], off=0.03))}
    assert 0.01 < fits["linear"].left_out_ratio < 0.04
    assert fits["linear"].worst_ratio >= fits["linear"].left_out_ratio


def test_laws_that_points_cannot_tell_are_left_out():
    few = [point(1, 5, 80), point(2, 5, 160)]
    assert {fit.law.law for fit in fitted(few)} <= {"linear", "in_flight"}


def test_without_points_there_is_nothing_to_fit():
    with pytest.raises(FogscaleError, match="no point was measured"):
        fitted([])
    with pytest.raises(FogscaleError, match="measure at least two"):
        fitted([point(1, 5, 80)])
