"""Mechanisms 2, 3 and 7: what a monitoring system would show of the engine's truth.

Plain floats on purpose: a job has a handful of operators, for which arrays cost more than they save.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from numpy.random import Generator

from controller.model import InstanceMetrics, NodeMetrics, OperatorMetrics, Topology
from controller.testbeds.simulated.engine import Counters, Engine, Replicas
from controller.testbeds.simulated.settings import Noise


def operator_metrics(
    engine: Engine, since: Counters, now: Counters, noise: Noise, rng: Generator
) -> dict[str, OperatorMetrics]:
    """Averages between two instants, as Prometheus would report them."""
    window_s = (now.step - since.step) * engine.step_s
    input_per_s = ((now.offered - since.offered) / window_s).tolist()
    throughput_per_s = ((now.processed - since.processed) / window_s).tolist()
    backlog, waits_s = engine.backlog.tolist(), engine.waits_now_s()
    busy = [
        _share(rate_per_s, placed.capacity_per_s)
        for rate_per_s, placed in zip(throughput_per_s, engine.placed, strict=True)
    ]
    pressure = _back_pressure(engine, since, now, input_per_s, busy)
    replicas = [engine.replicas_running(i) for i in range(len(engine.operators))]
    off, cpu_off = _factors(noise, rng, 4 * len(replicas) + sum(replicas), len(replicas) + sum(replicas))

    seen: dict[str, OperatorMetrics] = {}
    for i, (name, placed) in enumerate(zip(engine.dag.names, engine.placed, strict=True)):
        input_seen, throughput_seen = input_per_s[i] * next(off), throughput_per_s[i] * next(off)
        busy_seen, pressure_seen = min(1.0, busy[i] * next(off)), min(1.0, pressure[i] * next(off))
        cpu = _share(throughput_per_s[i], placed.cpu_base_per_s)
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
            response_time_ms=_response_ms(placed, waits_s[i], throughput_per_s[i]),
            instances=_instances(placed, cpu, busy[i], throughput_per_s[i], off, cpu_off),
        )
    return seen


def _share(rate_per_s: float, capacity_per_s: float) -> float:
    return min(1.0, max(0.0, rate_per_s / capacity_per_s)) if capacity_per_s > 0 else 0.0


def _factors(
    noise: Noise, rng: Generator, meters: int, gauges: int
) -> tuple[Iterator[float], Iterator[float]]:
    """By how much each reading is off, for meters that average and for the CPU gauge."""
    draws = rng.standard_normal(meters + gauges).tolist()
    relative, cpu_relative = noise.relative, noise.cpu_relative
    off = [max(0.0, 1.0 + relative * draw) for draw in draws[:meters]]
    cpu_off = [max(0.0, 1.0 + cpu_relative * draw) for draw in draws[meters:]]
    return iter(off), iter(cpu_off)


def _back_pressure(
    engine: Engine, since: Counters, now: Counters, input_per_s: list[float], busy: list[float]
) -> list[float]:
    """Behind a saturated operator its ancestors are busy for what passes and back-pressured for the rest;
    the root itself and everything below it are not."""
    dag, simulation = engine.dag, engine.simulation
    pressure = [0.0] * len(dag.names)
    if simulation.buffering != "back_pressure":
        return pressure
    for row, entry in enumerate(dag.entries):
        steps = float(now.saturated_steps[row] - since.saturated_steps[row])
        limit_per_s, slowest = engine.limit_of(row)
        if steps == 0 or not (simulation.back_pressure_in_catch_up or input_per_s[entry] > limit_per_s):
            continue
        for i in dag.ancestors[slowest]:
            if i == entry or entry in dag.ancestors[i]:
                pressure[i] = max(pressure[i], steps / (now.step - since.step) * (1.0 - busy[i]))
    return pressure


def _response_ms(placed: Replicas, wait_s: float, rate_per_s: float) -> float | None:
    if placed.station is None:
        return None
    return (wait_s + placed.station.sojourn(rate_per_s).mean_s) * 1000


def _instances(
    placed: Replicas,
    cpu: float,
    busy: float,
    rate_per_s: float,
    off: Iterator[float],
    cpu_off: Iterator[float],
) -> tuple[InstanceMetrics, ...]:
    """Records are dealt out evenly, so instances differ by what measuring adds."""
    each_per_s = rate_per_s / len(placed.nodes)
    return tuple(
        [
            InstanceMetrics(
                instance_id,
                node,
                "running",
                cpu_ratio=min(1.0, cpu * (load_factor := next(cpu_off))),
                busy_ratio=min(1.0, busy * load_factor),
                rate_per_s=each_per_s * next(off),
            )
            for instance_id, node in zip(placed.instance_ids, placed.nodes, strict=True)
        ]
    )


_IDLE = NodeMetrics(cpu_ratio=0.0)


def node_metrics(topology: Topology, operators: dict[str, OperatorMetrics]) -> dict[str, NodeMetrics]:
    """A node's CPU is shared by its slots; an empty slot uses none."""
    used: defaultdict[str, float] = defaultdict(float)
    for metrics in operators.values():
        for instance in metrics.instances:
            used[instance.node] += instance.cpu_ratio or 0.0
    return {
        node.name: NodeMetrics(cpu_ratio=used[node.name] / node.slots) if node.name in used else _IDLE
        for node in topology.nodes
    }
