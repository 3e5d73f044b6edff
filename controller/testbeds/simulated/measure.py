"""Mechanisms 2, 3 and 7: what a monitoring system would show of the engine's truth.

Plain floats on purpose: a job has a handful of operators, for which arrays cost more than they save.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from numpy.random import Generator

from controller.model import InstanceMetrics, NodeMetrics, OperatorMetrics, Topology
from controller.testbeds.simulated.engine import Counters, Engine, Replicas
from controller.testbeds.simulated.settings import Memory, Noise


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
    instances = sum(replicas)
    off, cpu_off = _factors(noise, rng, 4 * len(replicas) + instances, len(replicas) + instances)
    readers = Readers(noise, rng, off, cpu_off)

    seen: dict[str, OperatorMetrics] = {}
    for i, (name, placed) in enumerate(zip(engine.dag.names, engine.placed, strict=True)):
        input_seen, throughput_seen = input_per_s[i] * next(off), throughput_per_s[i] * next(off)
        busy_seen, pressure_seen = min(1.0, busy[i] * next(off)), min(1.0, pressure[i] * next(off))
        cpu_factor = next(cpu_off)
        if replicas[i] == 0:  # no process to ask; Kafka still knows what was offered and what waits
            seen[name] = OperatorMetrics(input_rate_per_s=input_seen, queue_records=backlog[i])
            continue
        wait_s = 0.0 if placed.station is None else placed.station.wait_s(throughput_per_s[i])
        load = Load(
            _share(throughput_per_s[i], placed.cpu_base_per_s),
            busy[i],
            memory_ratio(engine.simulation.memory.get(name), busy[i], backlog[i] / replicas[i]),
            throughput_per_s[i] / replicas[i],
        )
        seen[name] = OperatorMetrics(
            input_rate_per_s=input_seen,
            throughput_per_s=throughput_seen,
            true_rate_per_s=throughput_seen / busy_seen if busy_seen > 0 else None,
            back_pressure_ratio=pressure_seen,
            busy_ratio=busy_seen,
            cpu_ratio=readers.cpu(load.cpu, cpu_factor),
            memory_ratio=readers.memory(load.memory),
            # Besides the backlog there are those that wait by chance (Little's law).
            queue_records=readers.queue(backlog[i] + throughput_per_s[i] * wait_s),
            response_time_ms=_response_ms(placed, waits_s[i] + wait_s),
            instances=_instances(placed, load, readers),
        )
    return seen


class Load(NamedTuple):
    """What one instance is truly doing."""

    cpu: float
    busy: float
    memory: float | None
    rate_per_s: float


class Readers(NamedTuple):
    """Reads true values as a monitoring system would, noise included."""

    noise: Noise
    rng: Generator
    off: Iterator[float]
    cpu_off: Iterator[float]

    def cpu(self, ratio: float, factor: float) -> float:
        if self.noise.cpu_absolute > 0:
            ratio = max(0.0, ratio + self.noise.cpu_absolute * float(self.rng.standard_normal()))
        return min(1.0, ratio * factor)

    def memory(self, ratio: float | None) -> float | None:
        if ratio is None or self.noise.memory_relative == 0:
            return ratio
        factor = 1.0 + self.noise.memory_relative * float(self.rng.standard_normal())
        return min(1.0, max(0.0, ratio * factor))

    def queue(self, records: float) -> float:
        if self.noise.queue_relative == 0:
            return records
        return records * max(0.0, 1.0 + self.noise.queue_relative * float(self.rng.standard_normal()))


def memory_ratio(memory: Memory | None, busy: float, waiting_records: float) -> float | None:
    """Of one instance; None where the simulation knows nothing of memory."""
    if memory is None:
        return None
    used = memory.idle_ratio + memory.per_busy_ratio * busy
    return min(1.0, used + memory.per_waiting_record_ratio * waiting_records)


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


def _response_ms(placed: Replicas, wait_s: float) -> float | None:
    return None if placed.station is None else (wait_s + placed.station.service_s) * 1000


def _instances(placed: Replicas, load: Load, readers: Readers) -> tuple[InstanceMetrics, ...]:
    """Records are dealt out evenly, so instances differ by what measuring adds."""
    instances = []
    for instance_id, node in zip(placed.instance_ids, placed.nodes, strict=True):
        factor = next(readers.cpu_off)
        instances.append(
            InstanceMetrics(
                instance_id,
                node,
                "running",
                readers.cpu(load.cpu, factor),
                readers.memory(load.memory),
                min(1.0, load.busy * factor),
                load.rate_per_s * next(readers.off),
            )
        )
    return tuple(instances)


_IDLE = NodeMetrics(cpu_ratio=0.0)


def node_metrics(topology: Topology, operators: dict[str, OperatorMetrics]) -> dict[str, NodeMetrics]:
    """A node's CPU and memory are shared by its slots; an empty slot uses none."""
    used: dict[str, tuple[float, float | None]] = {}
    for metrics in operators.values():
        for instance in metrics.instances:
            cpu, memory = used.get(instance.node, (0.0, None))
            if instance.memory_ratio is not None:
                memory = (memory or 0.0) + instance.memory_ratio
            used[instance.node] = cpu + (instance.cpu_ratio or 0.0), memory
    slots = {node.name: node.slots for node in topology.nodes}
    seen = dict.fromkeys(slots, _IDLE)
    for name, (cpu, memory) in used.items():
        shared = max(1, slots.get(name, 1))
        seen[name] = NodeMetrics(cpu / shared, None if memory is None else memory / shared)
    return seen
