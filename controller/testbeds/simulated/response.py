"""Mechanism 6: response times. Backlog in a fluid, randomness by queueing theory, hops by the network.

The delay behind a backlog follows from the arrival and departure curves; on top of it comes the sojourn
in a G/G/n station (Sakasegawa's approximation, exact for M/M/1, as is the variance used here).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from operator import itemgetter
from typing import NamedTuple

from controller.testbeds.simulated.flow import Dag

_BUSIEST = 0.99  # beyond it the backlog itself says how long records wait
_NORMAL_95, _NORMAL_99 = 1.6448536269514722, 2.3263478740408408


class Sojourn(NamedTuple):
    mean_s: float
    variance_s2: float


class Station(NamedTuple):
    """An operator as a G/G/n queue. SCV: squared coefficient of variation, 1 for Poisson arrivals and
    exponential service."""

    capacity_per_s: float
    service_s: float
    wait_exponent: float
    wait_scale_s: float
    service_variance_s2: float

    @classmethod
    def of(cls, capacity_per_s: float, replicas: int, arrival_scv: float, service_scv: float) -> Station:
        service_s = replicas / capacity_per_s
        return cls(
            capacity_per_s,
            service_s,
            sqrt(2 * (replicas + 1)) - 1,
            service_s / replicas * (arrival_scv + service_scv) / 2,
            service_scv * service_s**2,
        )

    def sojourn(self, rate_per_s: float) -> Sojourn:
        """Waiting plus service of one record."""
        load = min(max(rate_per_s, 0.0) / self.capacity_per_s, _BUSIEST)
        waits = load**self.wait_exponent  # the probability to wait at all
        if waits <= 0:
            return Sojourn(self.service_s, self.service_variance_s2)
        wait_s = waits * self.wait_scale_s / (1 - load)
        return Sojourn(self.service_s + wait_s, self.service_variance_s2 + wait_s**2 * (2 - waits) / waits)


def quantiles_s(total: Sojourn) -> tuple[float, float, float]:
    """Median, 95th and 99th percentile of a gamma-distributed time by Wilson and Hilferty's cube (1.4 % off
    at worst for an exponential one)."""
    mean_s, variance_s2 = total
    if variance_s2 <= 0 or mean_s <= 0:
        return mean_s, mean_s, mean_s
    spread = sqrt(variance_s2) / mean_s / 3  # 1 / (3 √shape)
    centre = 1 - spread * spread
    return (
        mean_s * max(centre, 0.0) ** 3,
        mean_s * (centre + _NORMAL_95 * spread) ** 3,
        mean_s * (centre + _NORMAL_99 * spread) ** 3,
    )


def slowest_way(
    dag: Dag, own: Sequence[Sojourn], hops_s: Sequence[Sequence[float]], waits_s: Sequence[float]
) -> tuple[Sojourn, float]:
    """Response time of the DAG: at each operator the slowest of its inputs counts. Returns the random part
    and the wait behind backlogs on that way."""
    ways: list[tuple[float, float, float]] = []  # mean of all, variance, the wait in it
    for i, above in enumerate(dag.upstream):
        mean_s, variance_s2 = own[i]
        waited_s = waits_s[i]
        mean_s += waited_s
        if above:
            inputs = zip(above, hops_s[i], strict=True)
            before_s, j = max(((ways[j][0] + hop_s, j) for j, hop_s in inputs), key=_first)
            mean_s += before_s
            variance_s2 += ways[j][1]
            waited_s += ways[j][2]
        ways.append((mean_s, variance_s2, waited_s))
    mean_s, variance_s2, waited_s = max((ways[i] for i in dag.sinks), key=_first)
    return Sojourn(mean_s - waited_s, variance_s2), waited_s


_first = itemgetter(0)
