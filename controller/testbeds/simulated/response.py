"""Mechanism 6: response times. Backlog in a fluid, randomness by queueing theory, hops by the network.

The delay behind a backlog follows from the arrival and departure curves; on top of it comes the sojourn
in a G/G/n station (Sakasegawa's approximation, exact for M/M/1, as is the variance used here).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np

from controller.testbeds.simulated.flow import Dag, Floats

_BUSIEST = 0.99  # beyond it the backlog itself says how long records wait
_NORMAL_95, _NORMAL_99 = 1.6448536269514722, 2.3263478740408408


class Sojourn(NamedTuple):
    """Means and variances of times."""

    mean_s: Floats
    variance_s2: Floats


class Station(NamedTuple):
    """An operator as a G/G/n queue. SCV: squared coefficient of variation, 1 for Poisson arrivals and
    exponential service."""

    capacity_per_s: float
    service_s: float
    wait_exponent: float
    wait_scale_s: float
    service_variance_s2: float

    @classmethod
    def of(
        cls,
        capacity_per_s: float,
        replicas: int,
        arrival_scv: float,
        service_scv: float,
        queue_each: bool = False,
    ) -> Station:
        """With a queue of its own, a replica is a station of one server; who waits there gets no help from
        one that is idle."""
        service_s = replicas / capacity_per_s
        servers = 1 if queue_each else replicas
        return cls(
            capacity_per_s,
            service_s,
            sqrt(2 * (servers + 1)) - 1,
            service_s / servers * (arrival_scv + service_scv) / 2,
            service_scv * service_s**2,
        )

    def wait_s(self, rate_per_s: float) -> float:
        """How long a record waits on average by chance alone, with no backlog before it."""
        load = min(max(rate_per_s, 0.0) / self.capacity_per_s, _BUSIEST)
        waits: float = load**self.wait_exponent  # the probability to wait at all
        return waits * self.wait_scale_s / (1 - load)


def sojourns(stations: Sequence[Station], rate_per_s: Floats) -> Sojourn:
    """Waiting plus service of one record, for each station (row) at each of many rates (columns)."""
    capacity_per_s, service_s, exponent, scale_s, service_variance_s2 = np.array(stations).T[:, :, None]
    load = np.minimum(np.maximum(rate_per_s / capacity_per_s, 0.0), _BUSIEST)  # cheaper than clip
    waits = load**exponent
    wait_s = waits * scale_s / (1 - load)
    spread = np.divide(2 - waits, waits, out=np.zeros_like(waits), where=waits > 0)
    return Sojourn(service_s + wait_s, service_variance_s2 + wait_s**2 * spread)


def quantiles_s(total: Sojourn) -> tuple[Floats, Floats, Floats]:
    """Median, 95th and 99th percentile of gamma-distributed times by Wilson and Hilferty's cube (1.4 % off at
    worst for an exponential one)."""
    mean_s = total.mean_s
    third = np.sqrt(total.variance_s2) / np.maximum(mean_s, 1e-300) / 3  # 1 / (3 √shape)
    centre = 1 - third * third
    cubes = (np.maximum(centre + normal * third, 0.0) ** 3 for normal in (0.0, _NORMAL_95, _NORMAL_99))
    p50_s, p95_s, p99_s = (mean_s * cube for cube in cubes)
    return p50_s, p95_s, p99_s


def share_above(total: Sojourn, limit_s: Floats) -> Floats:
    """The share of gamma-distributed times that exceed a limit; a limit below 0 is exceeded by all."""
    from scipy.special import gammaincc  # only where somebody asks: a third of a run's time to import

    mean_s, variance_s2 = total.mean_s, np.maximum(total.variance_s2, 1e-12)
    share: Floats = gammaincc(mean_s**2 / variance_s2, np.maximum(limit_s, 0.0) * mean_s / variance_s2)
    return share


def slowest_way(
    dag: Dag, own: Sojourn, hops_s: Sequence[Sequence[float]], waits_s: Floats
) -> tuple[Sojourn, Floats]:
    """Response time of the DAG at many instants (columns): at each operator (row) the slowest of its inputs
    counts. Returns the random part and the wait behind backlogs on that way."""
    ways: list[_Way] = []
    lengths_s = own.mean_s + waits_s
    for i, above in enumerate(dag.upstream):
        way = _Way(lengths_s[i], own.variance_s2[i], waits_s[i])
        if above:
            before = _slowest([ways[j].later(hop_s) for j, hop_s in zip(above, hops_s[i], strict=True)])
            way = _Way(*(a + b for a, b in zip(way, before, strict=True)))
        ways.append(way)
    length_s, variance_s2, waited_s = _slowest([ways[i] for i in dag.sinks])
    return Sojourn(length_s - waited_s, variance_s2), waited_s


class _Way(NamedTuple):
    length_s: Floats
    variance_s2: Floats
    waited_s: Floats

    def later(self, hop_s: float) -> _Way:
        return _Way(self.length_s + hop_s, self.variance_s2, self.waited_s)


def _slowest(ways: Sequence[_Way]) -> _Way:
    """The longest of some ways, instant by instant."""
    longest = ways[0]
    for way in ways[1:]:
        is_longer = way.length_s > longest.length_s
        longest = _Way(*(np.where(is_longer, a, b) for a, b in zip(way, longest, strict=True)))
    return longest
