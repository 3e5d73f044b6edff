"""The job as it is placed now: what each operator can do there, and how far records travel between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from controller.model import Operator, Placement, Topology
from controller.placement import largest_rtt_ms
from controller.testbeds.simulated.flow import Dag, Floats
from controller.testbeds.simulated.response import Station
from controller.testbeds.simulated.settings import Simulation, scv_of

Nodes = tuple[str, ...]


class Replicas(NamedTuple):
    """One operator."""

    nodes: Nodes
    capacity_per_s: float  # while it runs
    cpu_base_per_s: float  # mechanism 2: the throughput that would show as 100 % CPU
    busy_base_per_s: float  # and as 100 % busy
    own_pressure_ratio: float  # while it is saturated: the share of time in which the network holds it back
    station: Station | None  # None where nothing can be served


class Layout(NamedTuple):
    """All operators."""

    replicas: list[Replicas]
    capacity_per_s: Floats
    limits_per_s: list[float]  # per entry: the most it could bring if it were alone …
    slowest: list[int]  # … and the operator that says so
    hops_s: list[list[float]]  # per operator: from each of those upstream, one way


class Site:
    """The nodes and the network as they are now, and what operators can do on them."""

    def __init__(self, topology: Topology, speeds: Mapping[str, float], simulation: Simulation) -> None:
        self._topology, self._speeds, self._simulation = topology, speeds, simulation

    def laid_out(self, operators: tuple[Operator, ...], dag: Dag, placement: Placement) -> Layout:
        shares = self.core_shares(placement)
        replicas = [
            self._replicas(operator, tuple(placement[operator.name]), placement, shares)
            for operator in operators
        ]
        capacity_per_s = np.array([each.capacity_per_s for each in replicas])
        limits_per_s, slowest = _bottlenecks(dag, capacity_per_s)
        hops_s = [
            [self._hop_s(replicas[j].nodes, replicas[i].nodes) for j in dag.upstream[i]]
            for i in range(len(operators))
        ]
        return Layout(replicas, capacity_per_s, limits_per_s, slowest, hops_s)

    def core_shares(self, placement: Placement) -> dict[str, float]:
        """By node, the part of a core that each replica on it gets; those not named: a whole one."""
        if not self._simulation.shared_cores:
            return {}
        cores = {node.name: node.cores for node in self._topology.nodes}
        crowd = Counter(node for nodes in placement.values() for node in nodes)
        return {node: min(1.0, cores.get(node, 1.0) / replicas) for node, replicas in crowd.items()}

    def capacity_of(
        self,
        operator: Operator,
        nodes: Nodes,
        placement: Placement,
        shares: Mapping[str, float] | None = None,
    ) -> tuple[float, float]:
        """Mechanism 1: records/s on these nodes, while the others are placed so, and what it would be without
        the network."""
        if not nodes:
            return 0.0, 0.0
        law = self._simulation.capacity[operator.name]
        core_shares = shares or {}
        speeds = [self._speeds.get(node, 1.0) * core_shares.get(node, 1.0) for node in nodes]
        speed = sum(speeds) / len(nodes)
        latency_free_per_s = law.latency_free_per_s(len(nodes), speed)
        across = largest_rtt_ms if law.across == "replicas" else self._channel_rtt_ms(operator, placement)
        rtt_ms = across(self._topology, nodes)
        capacity_per_s = law.capacity_per_s(len(nodes), speed, rtt_ms)
        return capacity_per_s * self._kept_by_checkpoints(rtt_ms), latency_free_per_s

    def _channel_rtt_ms(self, operator: Operator, placement: Placement) -> Callable[[Topology, Nodes], float]:
        """The largest between replicas and those that send to them or receive from them."""
        others = [*operator.upstream, *(each.name for each in self._topology.downstream_of(operator.name))]
        ends = {node for name in others for node in placement.get(name, ())}

        def largest_ms(topology: Topology, nodes: Nodes) -> float:
            return max((topology.rtt_ms(a, b) for a in nodes for b in ends if a != b), default=0.0)

        return largest_ms

    def _kept_by_checkpoints(self, rtt_ms: float) -> float:
        checkpoints = self._simulation.checkpoints
        if checkpoints is None:
            return 1.0
        return max(0.0, 1.0 - checkpoints.round_trips * rtt_ms / 1000 / checkpoints.interval_s)

    def _replicas(
        self, operator: Operator, nodes: Nodes, placement: Placement, shares: Mapping[str, float]
    ) -> Replicas:
        simulation = self._simulation
        capacity_per_s, latency_free_per_s = self.capacity_of(operator, nodes, placement, shares)
        station = None
        if capacity_per_s > 0:
            arrival_scv = scv_of(simulation.arrival_scv, operator.name)
            service_scv = scv_of(simulation.service_scv, operator.name)
            queue_each = simulation.waiting_lines == "each"
            station = Station.of(capacity_per_s, len(nodes), arrival_scv, service_scv, queue_each)
        lost_per_s = latency_free_per_s - capacity_per_s
        cpu_base_per_s = capacity_per_s + simulation.cpu_idle_in_latency_ratio * lost_per_s
        busy_base_per_s = capacity_per_s + (1 - simulation.busy_in_latency_ratio) * lost_per_s
        lost_ratio = lost_per_s / latency_free_per_s if latency_free_per_s > 0 else 0.0
        own_pressure_ratio = simulation.back_pressure_in_latency_ratio * lost_ratio
        return Replicas(nodes, capacity_per_s, cpu_base_per_s, busy_base_per_s, own_pressure_ratio, station)

    def _hop_s(self, senders: Nodes, receivers: Nodes) -> float:
        pairs_ms = [self._topology.rtt_ms(a, b) for a in senders for b in receivers]
        return sum(pairs_ms) / len(pairs_ms) / 2000 if pairs_ms else 0.0


def _bottlenecks(dag: Dag, capacity_per_s: Floats) -> tuple[list[float], list[int]]:
    limits_per_s: list[float] = []
    slowest: list[int] = []
    for multiplicity, behind in zip(dag.multiplicity, dag.behind, strict=True):
        limits = capacity_per_s[behind] / multiplicity[behind]
        slowest.append(int(behind[limits.argmin()]))
        limits_per_s.append(float(limits.min()))
    return limits_per_s, slowest
