"""Mechanisms 2, 3 and 7: what a monitoring system would show of the engine's truth.

Plain floats on purpose: a job has a handful of operators, for which arrays cost more than they save.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from math import exp, sqrt
from statistics import fmean
from typing import NamedTuple

from numpy.random import Generator

from controller.model import Instance, InstanceMetrics, Instances, NodeMetrics, OperatorMetrics
from controller.testbeds.simulated.engine import Counters, Engine
from controller.testbeds.simulated.flow import Dag
from controller.testbeds.simulated.layout import Replicas
from controller.testbeds.simulated.settings import Memory, Noise


class Wander:
    """Slow errors of the CPU gauge: per instance an Ornstein–Uhlenbeck process, seen at the readings. Its
    spread is that of the noise, its autocorrelation exp(−t / cpu_wander_s)."""

    def __init__(self, noise: Noise, rng: Generator) -> None:
        self._spread, self._lasts_s, self._rng = noise.cpu_wander, noise.cpu_wander_s, rng
        self._errors: dict[str, float] = {}
        self._time_s = 0.0

    def errors(self, time_s: float, serving: Instances) -> Mapping[str, float]:
        if self._spread == 0:
            return _NO_ERRORS
        instance_ids = [each.id for some in serving.values() for each in some]
        kept = exp((self._time_s - time_s) / self._lasts_s)
        fresh = self._rng.standard_normal(len(instance_ids)).tolist()
        known, self._errors, self._time_s = self._errors, {}, time_s
        for name, draw in zip(instance_ids, fresh, strict=True):
            if name in known:
                self._errors[name] = kept * known[name] + sqrt(1 - kept * kept) * self._spread * draw
            else:
                self._errors[name] = self._spread * draw
        return self._errors


_NO_ERRORS: Mapping[str, float] = {}


class WindowErrors:
    """Errors of gauges that are means over a window, with a variance of 1. Every step has an error of its
    own, and a reading the mean of those in its window: so two readings share what their windows share."""

    def __init__(self, window_steps: int) -> None:
        self._window_steps = window_steps
        self._errors: dict[str, list[float]] = {}  # of the steps in the window, the newest last
        self._step = 0

    def of(self, gauges: Sequence[str], step: int, rng: Generator) -> list[float]:
        """Of each gauge, for a window that ends with a step."""
        known, fresh = self._errors, min(self._window_steps, step - self._step)
        drawn = iter(rng.standard_normal(len(gauges) * self._window_steps).tolist())
        self._errors, self._step = {}, step
        for name in gauges:
            new = list(islice(drawn, self._window_steps))
            self._errors[name] = known[name][fresh:] + new[:fresh] if name in known else new
        scale = 1.0 / sqrt(self._window_steps)
        return [scale * sum(self._errors[name]) for name in gauges]


def operator_metrics(
    engine: Engine,
    since: Counters,
    now: Counters,
    noise: Noise,
    draws: Draws,
    wander: Wander,
    shared: WindowErrors,
    serving: Instances,
    gauged_cpu: Mapping[str, Sequence[float]] | None = None,
) -> dict[str, OperatorMetrics]:
    """Averages between two instants, as Prometheus would report them; the CPU of instances as their gauges
    show it, where they have some."""
    truth = Truth.between(engine, since, now)
    operators, instances = len(truth.replicas), sum(truth.replicas)
    readers = Readers.of(noise, draws, meters=4 * operators + instances, gauges=operators + instances)
    if noise.cpu_by_window:
        gauges = _cpu_gauges(engine, truth, serving)
        readers = readers._replace(cpu_error=iter(shared.of(gauges, engine.step, draws.readings)))
    slow_errors = wander.errors(engine.time_s, serving)
    return {
        name: _operator(
            engine, i, truth, readers, serving[name], slow_errors, gauged_cpu[name] if gauged_cpu else None
        )
        for i, name in enumerate(engine.dag.names)
    }


def _cpu_gauges(engine: Engine, truth: Truth, serving: Instances) -> list[str]:
    """In the order in which they are read: that of an operator, then those of its instances."""
    asked = [name for i, name in enumerate(engine.dag.names) if truth.replicas[i]]
    return [gauge for name in asked for gauge in (name, *(each.id for each in serving[name]))]


class Truth(NamedTuple):
    """What each operator did between two instants, and how it stands at the second."""

    offered_per_s: list[float]
    arrival_per_s: list[float]
    throughput_per_s: list[float]
    busy: list[float]
    pressure: list[float]
    backlog: list[float]
    waits_s: list[float]  # behind the backlog
    replicas: list[int]  # processes that can be asked
    starting: float  # what starting took of the processors

    @classmethod
    def between(cls, engine: Engine, since: Counters, now: Counters) -> Truth:
        window_s = (now.step - since.step) * engine.step_s
        offered_per_s = [(b - a) / window_s for a, b in zip(since.offered, now.offered, strict=True)]
        throughput_per_s = [(b - a) / window_s for a, b in zip(since.processed, now.processed, strict=True)]
        placed = engine.layout.replicas
        busy = [_share(each, placed[i].busy_base_per_s) for i, each in enumerate(throughput_per_s)]
        return cls(
            offered_per_s,
            _arrivals(engine.dag, since, now, offered_per_s, throughput_per_s, window_s),
            throughput_per_s,
            busy,
            _back_pressure(engine, since, now, offered_per_s, busy),
            engine.backlog.tolist(),
            engine.waits_now_s(),
            engine.instances_alive(),
            _starting_ratio(engine, since),
        )


def _operator(
    engine: Engine,
    i: int,
    truth: Truth,
    readers: Readers,
    serving: tuple[Instance, ...],
    slow_errors: Mapping[str, float],
    gauged_cpu: Sequence[float] | None,
) -> OperatorMetrics:
    off, throughput_per_s, backlog = readers.off, truth.throughput_per_s[i], truth.backlog[i]
    input_off, throughput_seen = next(off), throughput_per_s * next(off)
    busy_seen, pressure_seen = min(1.0, truth.busy[i] * next(off)), min(1.0, truth.pressure[i] * next(off))
    cpu_factor = next(readers.cpu_factor)
    if truth.replicas[i] == 0:  # no process to ask; the broker still knows what enters and what waits
        return OperatorMetrics(
            arrival_rate_per_s=truth.arrival_per_s[i] * input_off if _at_broker(engine, i) else None,
            offered_rate_per_s=truth.offered_per_s[i] * input_off,
            queue_records=backlog,
        )
    placed, selectivity = engine.layout.replicas[i], engine.dag.selectivity[i]
    wait_s = 0.0 if placed.station is None else placed.station.wait_s(throughput_per_s)
    cpu = min(1.0, _share(throughput_per_s, placed.cpu_base_per_s) + truth.starting)
    cpus: Iterable[float] = repeat(cpu)
    if gauged_cpu is not None:
        cpus = [min(1.0, each + truth.starting) for each in gauged_cpu]
    memory = engine.simulation.memory.get(engine.dag.names[i])
    memory_used = memory_ratio(memory, truth.busy[i], backlog / truth.replicas[i])
    cpu_seen = readers.cpu(cpu, cpu_factor)
    memory_seen = readers.memory(memory_used)
    # Besides the backlog there are those that wait by chance (Little's law).
    queue_seen = readers.queue(backlog + throughput_per_s * wait_s)
    time_seen_ms = readers.time(_response_ms(placed, truth.waits_s[i] + wait_s))
    instances = _instances(serving, i, truth, selectivity, cpus, memory_used, readers, slow_errors)
    if gauged_cpu is not None:
        cpu_seen = fmean(each.cpu_ratio or 0.0 for each in instances)
    return OperatorMetrics(
        arrival_rate_per_s=truth.arrival_per_s[i] * input_off,
        output_rate_per_s=throughput_seen * selectivity,
        offered_rate_per_s=truth.offered_per_s[i] * input_off,
        throughput_per_s=throughput_seen,
        true_rate_per_s=throughput_seen / busy_seen if busy_seen > 0 else None,
        back_pressure_ratio=pressure_seen,
        busy_ratio=busy_seen,
        cpu_ratio=cpu_seen,
        memory_ratio=memory_seen,
        queue_records=queue_seen,
        response_time_ms=time_seen_ms,
        instances=instances,
    )


class Draws(NamedTuple):
    """Where errors of readings come from. Those of times have their own source, so that asking for times
    changes no other reading."""

    readings: Generator
    times: Iterator[float]  # standard normal

    @classmethod
    def of(cls, readings: Generator, times: Generator) -> Draws:
        return cls(readings, _in_blocks(times))


def _in_blocks(rng: Generator) -> Iterator[float]:
    """One draw after the other; drawn many at once, which is far cheaper."""
    while True:
        yield from rng.standard_normal(256).tolist()


class Readers(NamedTuple):
    """Reads true values as a monitoring system would. By how much each reading is off is drawn at once, and
    only where there is noise: thousands of small draws would take most of a run."""

    off: Iterator[float]  # factors of meters, which average
    cpu_factor: Iterator[float]  # of the CPU gauge
    cpu_error: Iterator[float]  # with a variance of 1
    memory_factor: Iterator[float]
    queue_factor: Iterator[float]
    times: Iterator[float]
    noise: Noise

    @classmethod
    def of(cls, noise: Noise, draws: Draws, meters: int, gauges: int) -> Readers:
        of_cpu = 0.0 if noise.cpu_by_window else noise.cpu_absolute or noise.cpu_ticks or 0.0
        gauged = (noise.cpu_relative, of_cpu, noise.memory_relative, noise.queue_relative)
        drawn = (meters if noise.relative > 0 else 0) + gauges * sum([spread > 0 for spread in gauged])
        errors = iter(draws.readings.standard_normal(drawn).tolist())
        return cls(
            _factors(noise.relative, islice(errors, meters)),
            _factors(noise.cpu_relative, islice(errors, gauges)),
            iter([*islice(errors, gauges)]) if of_cpu > 0 else _UNMOVED,  # now, or the next would take them
            _factors(noise.memory_relative, islice(errors, gauges)),
            _factors(noise.queue_relative, islice(errors, gauges)),
            draws.times,
            noise,
        )

    def cpu(self, ratio: float, factor: float) -> float:
        read = (ratio + cpu_spread(self.noise, ratio) * next(self.cpu_error)) * factor
        return 0.0 if read < 0.0 else 1.0 if read > 1.0 else read

    def memory(self, ratio: float | None) -> float | None:
        return None if ratio is None else min(1.0, ratio * next(self.memory_factor))

    def queue(self, records: float) -> float:
        return records * next(self.queue_factor)

    def time(self, time_ms: float | None) -> float | None:
        if time_ms is None or self.noise.relative == 0:
            return time_ms
        return time_ms * max(0.0, 1.0 + self.noise.relative * next(self.times))


_EXACT, _UNMOVED = repeat(1.0), repeat(0.0)


def _factors(spread: float, errors: Iterator[float]) -> Iterator[float]:
    """A reading is off by its error, but never negative."""
    if spread == 0:
        return _EXACT
    return iter([1.0 + off if (off := spread * error) > -1.0 else 0.0 for error in errors])


def cpu_spread(noise: Noise, ratio: float) -> float:
    """The standard deviation with which a gauge reads a load: the same for all of them, or by its ticks."""
    if noise.cpu_ticks is None:
        return noise.cpu_absolute
    load = min(1.0, max(0.0, ratio))
    return sqrt(noise.cpu_absolute**2 + load * (1.0 - load) / noise.cpu_ticks)


def memory_ratio(memory: Memory | None, busy: float, waiting_records: float) -> float | None:
    """Of one instance; None where the simulation knows nothing of memory."""
    if memory is None:
        return None
    used = memory.idle_ratio + memory.per_busy_ratio * busy
    return min(1.0, used + memory.per_waiting_record_ratio * waiting_records)


def _arrivals(
    dag: Dag,
    since: Counters,
    now: Counters,
    offered_per_s: list[float],
    throughput_per_s: list[float],
    window_s: float,
) -> list[float]:
    """What reached each operator: from outside, and from those upstream."""
    arrived = [
        sum([weight * throughput_per_s[j] for j, weight in inputs]) if inputs else offered_per_s[i]
        for i, inputs in enumerate(dag.inputs)
    ]
    for row, entry in enumerate(dag.entries):
        if dag.inputs[entry]:  # what enters there comes on top of what those upstream emit
            arrived[entry] += (now.entered[row] - since.entered[row]) / window_s
    return arrived


def _at_broker(engine: Engine, i: int) -> bool:
    """Whether what reaches an operator comes through a queue that can be asked, whatever runs."""
    if engine.simulation.buffering == "queues":
        return True
    return i in engine.dag.entries and not engine.dag.upstream[i]


def _share(rate_per_s: float, capacity_per_s: float) -> float:
    return min(1.0, max(0.0, rate_per_s / capacity_per_s)) if capacity_per_s > 0 else 0.0


def _back_pressure(
    engine: Engine, since: Counters, now: Counters, offered_per_s: list[float], busy: list[float]
) -> list[float]:
    """Behind a saturated operator its ancestors are busy for what passes and back-pressured for the rest;
    everything below it is not, and itself only where the network holds it back."""
    dag, simulation = engine.dag, engine.simulation
    pressure = [0.0] * len(dag.names)
    if simulation.buffering != "back_pressure":
        return pressure
    for row, entry in enumerate(dag.entries):
        steps = now.saturated_steps[row] - since.saturated_steps[row]
        limit_per_s, slowest = engine.limit_of(row)
        if steps == 0 or not (simulation.back_pressure_in_catch_up or offered_per_s[entry] > limit_per_s):
            continue
        for i in dag.ancestors[slowest]:
            if i == entry or entry in dag.ancestors[i]:
                pressure[i] = max(pressure[i], steps / (now.step - since.step) * (1.0 - busy[i]))
        own_ratio = engine.layout.replicas[slowest].own_pressure_ratio
        pressure[slowest] = max(pressure[slowest], steps / (now.step - since.step) * own_ratio)
    return pressure


def _starting_ratio(engine: Engine, since: Counters) -> float:
    """What starting took of the nodes' processors within a window."""
    while_down = engine.simulation.reconfiguration.cpu_while_down_ratio
    return while_down * engine.stopped_ratio(since.step) if while_down > 0 else 0.0


def _response_ms(placed: Replicas, wait_s: float) -> float | None:
    return None if placed.station is None else (wait_s + placed.station.service_s) * 1000


def _instances(
    serving: tuple[Instance, ...],
    i: int,
    truth: Truth,
    selectivity: float,
    cpus: Iterable[float],
    memory: float | None,
    readers: Readers,
    slow_errors: Mapping[str, float],
) -> tuple[InstanceMetrics, ...]:
    """Records are dealt out evenly, so instances differ by what measuring adds."""
    instances, busy, replicas = [], truth.busy[i], truth.replicas[i]
    processed_per_s, arrival_per_s = truth.throughput_per_s[i] / replicas, truth.arrival_per_s[i] / replicas
    offered_per_s = truth.offered_per_s[i] / replicas
    factors, offs = readers.cpu_factor, readers.off
    for each, cpu in zip(serving, cpus, strict=False):  # the CPU of all alike has no end
        factor, off = next(factors), next(offs)
        rate_per_s = processed_per_s * off
        instances.append(
            InstanceMetrics(
                each.id,
                each.node,
                "running",
                readers.cpu(cpu + slow_errors.get(each.id, 0.0), factor),
                readers.memory(memory),
                min(1.0, busy * factor),
                rate_per_s,
                arrival_per_s * off,
                rate_per_s * selectivity,
                offered_per_s * off,
            )
        )
    return tuple(instances)


_IDLE = NodeMetrics(cpu_ratio=0.0)


def node_metrics(
    slots: Mapping[str, int],
    operators: Mapping[str, OperatorMetrics],
    cores: Mapping[str, float],
    core_shares: Mapping[str, float],
) -> dict[str, NodeMetrics]:
    """A node's CPU and memory are shared by its slots; an empty slot uses none. Where replicas share cores,
    what they use of them counts."""
    used: dict[str, tuple[float, float | None]] = {}
    for metrics in operators.values():
        for instance in metrics.instances:
            cpu, memory = used.get(instance.node, (0.0, None))
            if instance.memory_ratio is not None:
                memory = (memory or 0.0) + instance.memory_ratio
            used[instance.node] = cpu + (instance.cpu_ratio or 0.0), memory
    seen = dict.fromkeys(slots, _IDLE)
    for name, (cpu, memory) in used.items():
        shared = max(1, slots.get(name, 1))
        cpu_ratio = cpu / shared
        if core_shares:
            cpu_ratio = min(1.0, cpu * core_shares.get(name, 1.0) / cores.get(name, 1.0))
        seen[name] = NodeMetrics(cpu_ratio, None if memory is None else memory / shared)
    return seen
