"""Mechanisms 2, 3 and 7: what a monitoring system would show of the engine's truth."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.random import Generator

from controller.model import InstanceMetrics, NodeMetrics, OperatorMetrics, Topology
from controller.testbeds.simulated.engine import Counters, Engine
from controller.testbeds.simulated.flow import Floats
from controller.testbeds.simulated.settings import Noise

_METRICS = 5  # noisy quantities per operator: input rate, throughput, busy share, back pressure, CPU


def operator_metrics(
    engine: Engine, since: Counters, now: Counters, noise: Noise, rng: Generator
) -> dict[str, OperatorMetrics]:
    """Averages between two instants, as Prometheus would report them."""
    window_s = (now.step - since.step) * engine.step_s
    input_per_s = (now.offered - since.offered) / window_s
    throughput_per_s = (now.processed - since.processed) / window_s
    running = np.array([engine.replicas_running(i) for i in range(len(engine.operators))])
    with np.errstate(divide="ignore", invalid="ignore"):
        busy = np.clip(np.nan_to_num(throughput_per_s / engine.capacity_per_s, posinf=0.0), 0.0, 1.0)
        lost_per_s = engine.latency_free_per_s - engine.capacity_per_s
        base_per_s = engine.capacity_per_s + engine.simulation.cpu_idle_in_latency_ratio * lost_per_s
        cpu = np.clip(np.nan_to_num(throughput_per_s / base_per_s, posinf=0.0), 0.0, 1.0)
    pressure = _back_pressure(engine, since, now, busy)
    spread = np.array([noise.relative] * (_METRICS - 1) + [noise.cpu_relative])
    factor = np.maximum(0.0, 1.0 + spread[:, None] * rng.standard_normal((_METRICS, len(running))))
    seen_input, seen_throughput = input_per_s * factor[0], throughput_per_s * factor[1]
    seen_busy, seen_pressure, seen_cpu = np.clip(np.array([busy, pressure, cpu]) * factor[2:], 0.0, 1.0)

    seen: dict[str, OperatorMetrics] = {}
    for i, name in enumerate(engine.dag.names):
        if running[i] == 0:  # no process to ask; Kafka still knows what was offered and what waits
            seen[name] = OperatorMetrics(
                input_rate_per_s=float(seen_input[i]), queue_records=float(engine.backlog[i])
            )
            continue
        true_rate = seen_throughput[i] / seen_busy[i] if seen_busy[i] > 0 else None
        seen[name] = OperatorMetrics(
            input_rate_per_s=float(seen_input[i]),
            throughput_per_s=float(seen_throughput[i]),
            true_rate_per_s=None if true_rate is None else float(true_rate),
            back_pressure_ratio=float(seen_pressure[i]),
            busy_ratio=float(seen_busy[i]),
            cpu_ratio=float(seen_cpu[i]),
            queue_records=float(engine.backlog[i]),
            response_time_ms=_response_ms(engine, i, float(throughput_per_s[i])),
            instances=_instances(engine, name, float(cpu[i]), float(busy[i]), float(throughput_per_s[i]), noise, rng),
        )
    return seen


def _back_pressure(engine: Engine, since: Counters, now: Counters, busy: Floats) -> Floats:
    """Behind a saturated operator its ancestors are busy for what passes and back-pressured for the rest;
    the root itself and everything below it are not."""
    dag = engine.dag
    pressure = np.zeros(len(dag.names))
    if engine.simulation.buffering != "back_pressure":
        return pressure
    saturated_share = (now.saturated_steps - since.saturated_steps) / (now.step - since.step)
    for row, entry in enumerate(dag.entries):
        with np.errstate(divide="ignore", invalid="ignore"):
            limit = np.where(dag.multiplicity[row] > 0, engine.capacity_per_s / dag.multiplicity[row], np.inf)
        root = int(limit.argmin())
        for i in dag.ancestors[root]:
            if i == entry or entry in dag.ancestors[i]:
                pressure[i] = max(pressure[i], saturated_share[row] * (1.0 - busy[i]))
    return pressure


def _response_ms(engine: Engine, i: int, rate_per_s: float) -> float | None:
    if engine.capacity_per_s[i] <= 0:
        return None
    wait_s = engine.waits_s(engine.backlog[:, None])[i, 0]
    return float(wait_s + engine.sojourn_at(i, rate_per_s).mean_s) * 1000


def _instances(
    engine: Engine, name: str, cpu: float, busy: float, rate_per_s: float, noise: Noise, rng: Generator
) -> tuple[InstanceMetrics, ...]:
    nodes = engine.running[name]
    spread = np.array([[noise.cpu_relative], [noise.relative]])
    factor = np.maximum(0.0, 1.0 + spread * rng.standard_normal((2, len(nodes)))).tolist()
    return tuple(
        InstanceMetrics(
            id=f"{name}-{node}-{position}",
            node=node,
            state="running",
            cpu_ratio=min(1.0, cpu * factor[0][position]),
            busy_ratio=min(1.0, busy * factor[0][position]),
            rate_per_s=rate_per_s / len(nodes) * factor[1][position],
        )
        for position, node in enumerate(nodes)
    )


def node_metrics(topology: Topology, operators: dict[str, OperatorMetrics]) -> dict[str, NodeMetrics]:
    """A node's CPU is shared by its slots; an empty slot uses none."""
    used: defaultdict[str, float] = defaultdict(float)
    for metrics in operators.values():
        for instance in metrics.instances:
            used[instance.node] += instance.cpu_ratio or 0.0
    slots = {node.name: node.slots for node in topology.nodes}
    return {name: NodeMetrics(cpu_ratio=used[name] / max(count, 1)) for name, count in slots.items()}
