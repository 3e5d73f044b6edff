"""Mechanism 6: response times. Backlog in a fluid, randomness by queueing theory, hops by the network.

The delay behind a backlog follows from the arrival and departure curves; on top of it comes the sojourn
in a G/G/n station (Sakasegawa's approximation, exact for M/M/1, as is the variance used here).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from controller.testbeds.simulated.flow import Dag, Floats

_BUSIEST = 0.99  # beyond it the backlog itself says how long records wait
_NORMAL_QUANTILES = {0.50: 0.0, 0.95: 1.6448536269514722, 0.99: 2.3263478740408408}


class Sojourn(NamedTuple):
    mean_s: float
    variance_s2: float


def sojourn(
    rate_per_s: float, capacity_per_s: float, replicas: int, arrival_scv: float, service_scv: float
) -> Sojourn:
    """Waiting plus service of one record. SCV: squared coefficient of variation, 1 for Poisson arrivals
    and exponential service."""
    service_s = replicas / capacity_per_s
    load = min(max(rate_per_s, 0.0) / capacity_per_s, _BUSIEST)
    waits = load ** (sqrt(2 * (replicas + 1)) - 1)  # the probability to wait at all
    wait_s = waits * service_s / (replicas * (1 - load)) * (arrival_scv + service_scv) / 2
    wait_variance = wait_s**2 * (2 - waits) / waits if waits > 0 else 0.0
    return Sojourn(service_s + wait_s, service_scv * service_s**2 + wait_variance)


def quantile_s(total: Sojourn, share: float) -> float:
    """A quantile of a gamma-distributed time by Wilson and Hilferty's cube (1.4 % off at worst for an
    exponential one)."""
    if total.variance_s2 <= 0 or total.mean_s <= 0:
        return total.mean_s
    shape = total.mean_s**2 / total.variance_s2
    cube = 1 - 1 / (9 * shape) + _NORMAL_QUANTILES[share] / (3 * sqrt(shape))
    return total.mean_s * max(cube, 0.0) ** 3


def slowest_way(
    dag: Dag, own: Sequence[Sojourn], hops_s: Sequence[Sequence[float]], waits_s: Floats
) -> tuple[Sojourn, Floats]:
    """Response time of the DAG: at each operator the slowest of its inputs counts. Returns the random part
    and, for each column of waits, the wait behind backlogs on that way."""
    ways: list[_Way] = []
    for i, above in enumerate(dag.upstream):
        mean_s, variance_s2 = own[i]
        waited_s = waits_s[i]
        if above:
            hop_s = dict(zip(above, hops_s[i], strict=True))
            slowest = max(above, key=lambda j: ways[j].length_s + hop_s[j]) if len(above) > 1 else above[0]
            way = ways[slowest]
            mean_s += way.total.mean_s + hop_s[slowest]
            variance_s2 += way.total.variance_s2
            waited_s = way.waited_s + waited_s
        ways.append(_Way(Sojourn(mean_s, variance_s2), waited_s))
    last = dag.sinks[0] if len(dag.sinks) == 1 else max(dag.sinks, key=lambda i: ways[i].length_s)
    return ways[last].total, ways[last].waited_s


class _Way(NamedTuple):
    total: Sojourn
    waited_s: Floats

    @property
    def length_s(self) -> float:
        return self.total.mean_s + float(self.waited_s.sum()) / len(self.waited_s)
