"""Mechanisms 2, 3 and 7: what a monitoring system would show of the engine's truth.

Plain floats on purpose: a job has a handful of operators, for which arrays cost more than they save.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator

from controller.model import InstanceMetrics, NodeMetrics, OperatorMetrics, Topology
from controller.testbeds.simulated.engine import Counters, Engine
from controller.testbeds.simulated.settings import Noise


def operator_metrics(
    engine: Engine, since: Counters, now: Counters, noise: Noise, rng: Generator
) -> dict[str, OperatorMetrics]:
    """Averages between two instants, as Prometheus would report them."""
    window_s = (now.step - since.step) * engine.step_s
    input_per_s = ((now.offered - since.offered) / window_s).tolist()
    throughput_per_s = ((now.processed - since.processed) / window_s).tolist()
    backlog = engine.backlog.tolist()
    busy = list(map(_share, throughput_per_s, engine.capacity_per_s.tolist()))
    pressure = _back_pressure(engine, since, now, busy)
    replicas = [engine.replicas_running(i) for i in range(len(engine.operators))]
    off, cpu_off = _factors(noise, rng, 4 * len(replicas) + sum(replicas), len(replicas) + sum(replicas))

    seen: dict[str, OperatorMetrics] = {}
    for i, name in enumerate(engine.dag.names):
        input_seen, throughput_seen = input_per_s[i] * next(off), throughput_per_s[i] * next(off)
        busy_seen, pressure_seen = min(1.0, busy[i] * next(off)), min(1.0, pressure[i] * next(off))
        cpu = _share(throughput_per_s[i], _cpu_base_per_s(engine, i))
        cpu_seen = min(1.0, cpu * next(cpu_off))
        if replicas[i] == 0:  # no process to ask; Kafka still knows what was offered and what waits
            seen[name] = OperatorMetrics(input_rate_per_s=input_seen, queue_records=backlog[i])
            continue
        seen[name] = OperatorMetrics(
            input_rate_per_s=input_seen,
            throughput_per_s=throughput_seen,
            true_rate_per_s=throughput_seen / busy_seen if busy_seen > 0 else None,
            back_pressure_ratio=pressure_seen,
            busy_ratio=busy_seen,
            cpu_ratio=cpu_seen,
            queue_records=backlog[i],
            response_time_ms=_response_ms(engine, i, throughput_per_s[i]),
            instances=_instances(engine, name, cpu, busy[i], throughput_per_s[i], off, cpu_off),
        )
    return seen


def _share(rate_per_s: float, capacity_per_s: float) -> float:
    return min(1.0, max(0.0, rate_per_s / capacity_per_s)) if capacity_per_s > 0 else 0.0


def _factors(
    noise: Noise, rng: Generator, meters: int, gauges: int
) -> tuple[Iterator[float], Iterator[float]]:
    """By how much each reading is off, for meters that average and for the CPU gauge."""
    draws = rng.standard_normal(meters + gauges)
    draws[:meters] *= noise.relative
    draws[meters:] *= noise.cpu_relative
    off = np.maximum(1.0 + draws, 0.0).tolist()
    return iter(off[:meters]), iter(off[meters:])


def _cpu_base_per_s(engine: Engine, i: int) -> float:
    """Mechanism 2: the throughput that would show as 100 % CPU."""
    capacity_per_s = float(engine.capacity_per_s[i])
    lost_per_s = float(engine.latency_free_per_s[i]) - capacity_per_s
    return capacity_per_s + engine.simulation.cpu_idle_in_latency_ratio * lost_per_s


def _back_pressure(engine: Engine, since: Counters, now: Counters, busy: list[float]) -> list[float]:
    """Behind a saturated operator its ancestors are busy for what passes and back-pressured for the rest;
    the root itself and everything below it are not."""
    dag = engine.dag
    pressure = [0.0] * len(dag.names)
    if engine.simulation.buffering != "back_pressure":
        return pressure
    for row, entry in enumerate(dag.entries):
        steps = float(now.saturated_steps[row] - since.saturated_steps[row])
        if steps == 0:
            continue
        for i in dag.ancestors[engine.slowest_operator(row)]:
            if i == entry or entry in dag.ancestors[i]:
                pressure[i] = max(pressure[i], steps / (now.step - since.step) * (1.0 - busy[i]))
    return pressure


def _response_ms(engine: Engine, i: int, rate_per_s: float) -> float | None:
    if engine.capacity_per_s[i] <= 0:
        return None
    return (engine.wait_now_s(i) + engine.sojourn_at(i, rate_per_s).mean_s) * 1000


def _instances(
    engine: Engine,
    name: str,
    cpu: float,
    busy: float,
    rate_per_s: float,
    off: Iterator[float],
    cpu_off: Iterator[float],
) -> tuple[InstanceMetrics, ...]:
    nodes = engine.running[name]
    instances = []
    for position, node in enumerate(nodes):
        load_factor = next(cpu_off)
        instances.append(
            InstanceMetrics(
                id=f"{name}-{node}-{position}",
                node=node,
                state="running",
                cpu_ratio=min(1.0, cpu * load_factor),
                busy_ratio=min(1.0, busy * load_factor),
                rate_per_s=rate_per_s / len(nodes) * next(off),
            )
        )
    return tuple(instances)


def node_metrics(topology: Topology, operators: dict[str, OperatorMetrics]) -> dict[str, NodeMetrics]:
    """A node's CPU is shared by its slots; an empty slot uses none."""
    used: defaultdict[str, float] = defaultdict(float)
    for metrics in operators.values():
        for instance in metrics.instances:
            used[instance.node] += instance.cpu_ratio or 0.0
    return {
        node.name: NodeMetrics(cpu_ratio=used[node.name] / node.slots if node.slots else 0.0)
        for node in topology.nodes
    }
