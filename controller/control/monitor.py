"""What Prometheus knows of any Flink job with Flink's own reporter, and nothing else at hand."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from controller.model import Capabilities, Capability, NodeMetrics, Observation, Operator, OperatorMetrics
from controller.testbeds.flink import queries
from controller.testbeds.flink.metrics import (
    MOST_BYTES,
    MOST_RECORDS,
    JobMonitor,
    Measured,
    Running,
    Window,
    _Instance,
    share,
)
from controller.testbeds.flink.prometheus import Prometheus, Series, named


class ReporterMonitor(JobMonitor):
    """CPU is the JVM's, of `cores` where a container has fewer than the JVM sees. What enters the job is what
    its sources read and what waits for them, as they last heard of their broker."""

    task_label = "task_id"

    def __init__(
        self,
        prometheus: Prometheus,
        operators: Sequence[Operator],
        window_s: float,
        scrape_s: float,
        cores: float | None = None,
    ) -> None:
        super().__init__(prometheus, operators, window_s, scrape_s)
        self._cores = cores
        self._nodes: dict[str, tuple[str, float]] = {}  # by how the reporter writes it: its id, its cores

    def know(self, taskmanagers: Mapping[str, float]) -> None:
        """The TaskManagers that there are, with their cores: the reporter may write their ids otherwise."""
        self._nodes = {}
        for name, cores in taskmanagers.items():
            self._nodes[name] = self._nodes[as_reported(name)] = (name, self._cores or cores)

    def measure(self, running: Running) -> Measured:
        seen = super().measure(running)
        return replace(seen, operators=_with_offers(self._operators, seen.operators))

    def _node_of(self, labels: Mapping[str, str]) -> str:
        told = super()._node_of(labels)
        return self._nodes.get(told, (told, 0.0))[0]

    def _entering(
        self,
        job: Sequence[Series],
        topic: Sequence[Series],
        instances: Mapping[str, Sequence[_Instance]],
        window: Window,
    ) -> tuple[float | None, float | None]:
        pending = named(job, queries.PENDING)
        if not pending or any(not abs(each.last) <= MOST_RECORDS for each in pending):
            return None, None
        sources = [each.name for each in self._operators if not each.upstream]
        read = [each.rate_out_per_s for name in sources for each in instances[name]]
        known = [rate for rate in read if rate is not None]
        if len(known) < len(read):
            return None, sum(each.last for each in pending)
        grown = sum(slope_per_s(each, window.from_s) for each in pending)
        return max(0.0, sum(known) + grown), sum(max(0.0, each.last) for each in pending)

    def _node_series(self, range_s: float) -> tuple[Series, ...]:
        return self._prometheus.samples(queries.jvm_samples(range_s))

    def _node_metrics(self, series: Sequence[Series], window: Window) -> dict[str, NodeMetrics]:
        cpu: dict[str, float | None] = {}
        memory: dict[str, float | None] = {}
        limits = {each.labels.get("tm_id"): each.last for each in named(series, queries.JVM_HEAP_LIMIT)}
        for each in series:
            name, cores = self._nodes.get(each.labels.get("tm_id", ""), ("", 0.0))
            limit = limits.get(each.labels.get("tm_id"), 0)
            if each.name == queries.JVM_CPU_NS and name:
                cpu[name] = share(each.rate_per_s(window.from_s, window.to_s), 1e9 * cores)
            elif each.name == queries.JVM_HEAP and name:
                memory[name] = share(each.last, limit if limit <= MOST_BYTES else None)
        return {name: NodeMetrics(cpu.get(name), memory.get(name)) for name in sorted({*cpu, *memory})}


def as_reported(name: str) -> str:
    """What Flink's reporter makes of a label unless it is told otherwise."""
    return re.sub(r"[^a-zA-Z0-9:_]", "_", name)


def slope_per_s(series: Series, since_s: float) -> float:
    """By least squares: a source hears of its broker in steps, whenever it fetches."""
    kept = [(at, value) for at, value in zip(series.times_s, series.values, strict=True) if at >= since_s]
    if len(kept) < 2:
        return 0.0
    mean_s, mean = fmean(at for at, _ in kept), fmean(value for _, value in kept)
    spread = sum((at - mean_s) ** 2 for at, _ in kept)
    return sum((at - mean_s) * (value - mean) for at, value in kept) / spread if spread else 0.0


def _with_offers(
    operators: Sequence[Operator], seen: Mapping[str, OperatorMetrics]
) -> dict[str, OperatorMetrics]:
    """What is offered to each operator: how many records it emits for one is not known, but measured."""
    result: dict[str, OperatorMetrics] = {}
    emitted: dict[str, float | None] = {}
    for operator in operators:
        metrics = seen.get(operator.name, OperatorMetrics())
        coming = [emitted[name] for name in operator.upstream]
        known = [rate for rate in coming if rate is not None]
        offered = metrics.offered_rate_per_s
        if operator.upstream:
            offered = sum(known) if known and len(known) == len(coming) else None
        emitted[operator.name] = offered
        if operator.upstream and offered is not None and metrics.throughput_per_s:
            emitted[operator.name] = offered * (metrics.output_rate_per_s or 0.0) / metrics.throughput_per_s
        result[operator.name] = replace(metrics, offered_rate_per_s=offered)
    return result


_FIGURES: Mapping[Capability, str] = {
    Capability.BACK_PRESSURE: "back_pressure_ratio",
    Capability.BUSY: "busy_ratio",
    Capability.TRUE_RATE: "busy_ratio",  # and a rate; while an operator is idle there is none
    Capability.ARRIVAL_RATE: "arrival_rate_per_s",
    Capability.OFFERED_RATE: "offered_rate_per_s",
    Capability.CPU: "cpu_ratio",
    Capability.MEMORY: "memory_ratio",
}


def figures_of(measured: Observation, scaled: Collection[str]) -> Capabilities:
    """Which figures are there for every operator that may be scaled: what this Flink's reporter tells."""
    found = {
        capability
        for capability, figure in _FIGURES.items()
        if all(getattr(measured.operators.get(name), figure, None) is not None for name in scaled)
    }
    if measured.lag_records is not None:
        found.add(Capability.LAG)
    if measured.response_time_ms is not None:
        found.add(Capability.RESPONSE_TIME)
    if all(getattr(measured.operators.get(name), "instances", ()) for name in scaled):
        found.add(Capability.INSTANCE_METRICS)
    return frozenset(found)
