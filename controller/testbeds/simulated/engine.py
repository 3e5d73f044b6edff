"""The simulated job: an operator DAG on nodes, advanced in spans within which nothing changes.

The engine knows physics only: arrivals, capacities, queues, stops. What a reconfiguration is, what a
policy sees and when faults strike is decided around it, in testbed.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.errors import FogscaleError, unknown
from controller.model import Operator, Placement, Sample, Topology
from controller.placement import largest_rtt_ms
from controller.testbeds.simulated.faults import NodeLoss, Straggler
from controller.testbeds.simulated.flow import Dag, Floats, Flow, back_pressured, queued
from controller.testbeds.simulated.response import Sojourn, quantile_s, slowest_way, sojourn
from controller.testbeds.simulated.settings import Simulation

_NOTHING = 1e-6  # records: below it a queue is empty, above it rounding would not show


class Counters(NamedTuple):
    """Cumulative truth at one instant."""

    step: int
    offered: Floats  # records offered to each operator, before any back pressure
    processed: Floats  # records each operator has processed
    saturated_steps: Floats  # per entry: steps that ended with a backlog


class Engine:
    def __init__(
        self,
        topology: Topology,
        placement: Placement,
        inputs: Mapping[str, NDArray[np.int64]],
        simulation: Simulation,
    ) -> None:
        check_job(topology, simulation, inputs)
        self.simulation = simulation
        self.step_s = simulation.step_s
        self.operators = topology.operators
        self.dag = Dag.of(topology.operators, inputs)
        self._arrivals = np.array([inputs[self.dag.names[entry]] for entry in self.dag.entries], dtype=float)
        self.last_arrival_step = self._arrivals.shape[1]
        self._offered = np.zeros((len(self.dag.entries), self.last_arrival_step + 1))
        np.cumsum(self._arrivals, axis=1, out=self._offered[:, 1:])
        self._per_offered = _records_per_offered(self.dag)

        self._entries = list(self.dag.entries)
        self._history: deque[tuple[int, Floats, Floats]] = deque()
        self._window_steps = round(simulation.metric_window_s / self.step_s)
        size = len(self.operators)
        self.step = 0
        self.drained = False
        self.reconfigurations = 0
        self.taken: list[Sample] = []
        self.backlog = np.zeros(size)
        self._processed = np.zeros(size)
        self._rate_per_s = np.zeros(size)  # of each operator in the span last run
        self._saturated_steps = np.zeros(len(self.dag.entries))
        self._serves_from = np.zeros(size)  # in steps, fractions allowed: when a stop of the operator ends
        self._all_serve_from = 0.0
        self._sample_steps = round(simulation.sample_interval_s / self.step_s)
        self._sampled_step = -1
        self._sample_due = True

        self.running: dict[str, tuple[str, ...]] = {}
        self.capacity_per_s = np.zeros(size)  # while it runs
        self.latency_free_per_s = np.zeros(size)
        self.set_environment(topology, {node.name: node.speed for node in topology.nodes})
        self.place(placement)

    @property
    def time_s(self) -> float:
        return self.step * self.step_s

    def set_environment(self, topology: Topology, speeds: Mapping[str, float]) -> None:
        """The nodes and the network as they are now."""
        self._topology = topology
        self._speeds = speeds
        if self.running:
            self.place(self.running)

    def place(self, placement: Placement) -> None:
        """These replicas serve from now on."""
        for i, operator in enumerate(self.operators):
            nodes = tuple(placement[operator.name])
            capacity, latency_free = self.capacity_of(operator, nodes)
            self.capacity_per_s[i], self.latency_free_per_s[i] = capacity, latency_free
        if {name: len(nodes) for name, nodes in placement.items()} != {
            name: len(nodes) for name, nodes in self.running.items()
        }:
            self._sample_due = True
        self.running = {name: tuple(nodes) for name, nodes in placement.items()}
        self._capacity_per_step = self.capacity_per_s * self.step_s
        self._served_per_s: list[float] = self.capacity_per_s.tolist()
        self._limits_per_s, self._slowest = self._bottlenecks()
        self._hops_s = [
            [self._hop_s(self.operators[j].name, operator.name) for j in self.dag.upstream[i]]
            for i, operator in enumerate(self.operators)
        ]

    def _bottlenecks(self) -> tuple[list[float], list[int]]:
        """Per entry: the most it could bring if it were alone, and the operator that says so."""
        limits_per_s: list[float] = []
        slowest: list[int] = []
        for multiplicity, behind in zip(self.dag.multiplicity, self.dag.behind, strict=True):
            limits = self.capacity_per_s[behind] / multiplicity[behind]
            slowest.append(int(behind[limits.argmin()]))
            limits_per_s.append(float(limits.min()))
        return limits_per_s, slowest

    def capacity_of(self, operator: Operator, nodes: tuple[str, ...]) -> tuple[float, float]:
        """Mechanism 1: records/s on these nodes, and what it would be without the network."""
        if not nodes:
            return 0.0, 0.0
        law = self.simulation.capacity[operator.name]
        speed = sum(self._speeds.get(node, 1.0) for node in nodes) / len(nodes)
        latency_free_per_s = law.latency_free_per_s(len(nodes), speed)
        return law.capacity_per_s(
            len(nodes), speed, largest_rtt_ms(self._topology, nodes)
        ), latency_free_per_s

    def _hop_s(self, sender: str, receiver: str) -> float:
        pairs = [self._topology.rtt_ms(a, b) for a in self.running[sender] for b in self.running[receiver]]
        return sum(pairs) / len(pairs) / 2000 if pairs else 0.0

    def stop(self, names: set[str], until_s: float) -> None:
        for i, operator in enumerate(self.operators):
            if operator.name in names:
                self._serves_from[i] = max(self._serves_from[i], until_s / self.step_s)
        self._all_serve_from = float(self._serves_from.max())
        self._sample_due = True

    def replicas_running(self, i: int) -> int:
        return len(self.running[self.dag.names[i]]) if self._serves_from[i] <= self.step else 0

    def counters(self, step: int) -> Counters:
        """Cumulative truth at a step, now or within the metrics' window before."""
        offered = self._offered[:, min(step, self.last_arrival_step)] @ self.dag.multiplicity
        if step == 0:
            return Counters(0, offered, np.zeros(len(self.operators)), np.zeros(len(self.dag.entries)))
        for start, processed, saturated in reversed(self._history):
            if start < step:
                column = step - start - 1
                return Counters(step, offered, processed[:, column], saturated[:, column])
        raise ValueError(f"step {step} lies before the metrics' window")

    def lag_records(self) -> int:
        """Everything that waits somewhere, counted in records as they were offered."""
        return ceil(float((self.backlog / self._per_offered).sum()) - _NOTHING)

    def advance(self, end: int) -> None:
        """Lets the job run until a step, or until it has nothing left to do."""
        while self.step < end and not self.drained:
            self._run_span(self._next_edge(end))

    def _next_edge(self, end: int) -> int:
        """Where the span ends: stops end, some within a step, and so does the workload."""
        if self.step < self.last_arrival_step:
            end = min(end, self.last_arrival_step)
        if self._all_serve_from <= self.step:
            return end
        for serves_from in self._serves_from.tolist():
            if serves_from > self.step:
                whole = floor(serves_from)
                end = min(end, whole if whole > self.step else self.step + 1)
        return end

    def _capacity_now(self) -> Floats:
        """Per step: nothing while stopped, a part in the step in which a stop ends."""
        if self._all_serve_from <= self.step:
            return self._capacity_per_step
        served_share = np.clip(self.step + 1 - self._serves_from, 0.0, 1.0)
        now: Floats = self._capacity_per_step * served_share
        return now

    def _run_span(self, end: int) -> None:
        arrivals = self._arrivals[:, self.step : end]
        if arrivals.shape[1] == 0:
            arrivals = np.zeros((len(self.dag.entries), end - self.step))
        flow_of: Callable[[Dag, Floats, Floats, Floats], Flow] = (
            back_pressured if self.simulation.buffering == "back_pressure" else queued
        )
        flow = flow_of(self.dag, self._capacity_now(), self.backlog, arrivals)
        if self.step >= self.last_arrival_step:
            flow = self._up_to_the_last_record(flow)
            end = self.step + flow.backlog.shape[1]
        self._rate_per_s = flow.processed.sum(axis=1) / ((end - self.step) * self.step_s)
        self._sample_span(flow, end)
        was_stopped = self._all_serve_from > self.step
        self._remember(flow, arrivals)
        self.backlog = flow.backlog[:, -1].copy()
        self.step = end
        if was_stopped and not (self._serves_from > self.step).all():
            self._sample_due = True
        self._check_conservation()
        if self.step >= self.last_arrival_step and float(self.backlog.sum()) <= _NOTHING:
            self.drained = True
            self.sample_end()

    def _remember(self, flow: Flow, arrivals: Floats) -> None:
        """Counters at every step of the span, as far back as the metrics' window reaches."""
        saturated = flow.backlog[self._entries] > _NOTHING
        if not self.simulation.back_pressure_in_catch_up:
            limits = np.array(self._limits_per_s) * self.step_s
            saturated &= (arrivals.mean(axis=1) > limits)[:, None]
        processed = np.cumsum(flow.processed, axis=1)
        processed += self._processed[:, None]
        saturated_steps = np.cumsum(saturated, axis=1, dtype=float)
        saturated_steps += self._saturated_steps[:, None]
        self._processed, self._saturated_steps = processed[:, -1], saturated_steps[:, -1]
        self._history.append((self.step, processed, saturated_steps))
        reach = self.step + processed.shape[1] - self._window_steps
        while len(self._history) > 1 and self._history[1][0] < reach:
            self._history.popleft()

    def _up_to_the_last_record(self, flow: Flow) -> Flow:
        empty = flow.backlog.sum(axis=0) <= _NOTHING
        steps = int(empty.argmax()) + 1 if empty.any() else flow.backlog.shape[1]
        return Flow(flow.processed[:, :steps], flow.backlog[:, :steps])

    def _check_conservation(self) -> None:
        """Mechanism 4: what came in is processed or waits, at every operator."""
        arrived = self._offered[:, min(self.step, self.last_arrival_step)]
        inflow = np.zeros(len(self.operators))
        inflow[self._entries] = arrived
        if self.simulation.buffering == "back_pressure":
            entered = arrived - self.backlog[self._entries]
            missing = entered @ self.dag.multiplicity - self._processed
        else:
            for i, above in enumerate(self.dag.upstream):
                inflow[i] += sum(self.dag.selectivity[j] * self._processed[j] for j in above)
            missing = inflow - self._processed - self.backlog
        tolerance = 1e-9 * float(inflow.sum() + 1) + _NOTHING
        assert float(np.abs(missing).max()) <= tolerance, f"records lost or invented: {missing}"

    # Samples: truth on a grid, and at every instant the running replicas change.

    def _sample_span(self, flow: Flow, end: int) -> None:
        """What is due at the start of a span (only now it is known what follows that instant) and on the
        grid within it; what is due at its end waits for the next span."""
        grid = self._sample_steps
        steps = list(range((self.step // grid + 1) * grid, end, grid))
        backlogs = flow.backlog[:, steps[0] - self.step - 1 :: grid] if steps else flow.backlog[:, :0]
        backlogs = backlogs[:, : len(steps)]
        if (self._sample_due or self.step % grid == 0) and self._sampled_step != self.step:
            steps.insert(0, self.step)
            backlogs = np.concatenate((self.backlog[:, None], backlogs), axis=1)
        if steps:
            self._take(steps, backlogs)
        self._sample_due = False

    def sample_end(self) -> None:
        """The last instant of a run belongs to it, grid or not."""
        if self._sampled_step != self.step:
            self._take([self.step], self.backlog[:, None])

    def _take(self, steps: list[int], backlogs: Floats) -> None:
        replicas = {name: self.replicas_running(i) for i, name in enumerate(self.dag.names)}
        total, waits_s = self._response(steps, backlogs)
        waiting = (backlogs / self._per_offered[:, None]).sum(axis=0).tolist()
        offered = self._offered[:, np.minimum(steps, self.last_arrival_step)].sum(axis=0).tolist()
        quantiles_ms = (
            None if total is None else [quantile_s(total, share) * 1000 for share in (0.50, 0.95, 0.99)]
        )
        for column, step in enumerate(steps):
            lag = ceil(waiting[column] - _NOTHING)
            wait_ms = waits_s[column] * 1000
            p50, p95, p99 = (None,) * 3 if quantiles_ms is None else (wait_ms + q for q in quantiles_ms)
            self.taken.append(
                Sample(
                    time_s=step * self.step_s,
                    offered_records=int(offered[column]),
                    processed_records=int(offered[column]) - lag,
                    lag_records=lag,
                    replicas=replicas,
                    reconfigurations=self.reconfigurations,
                    response_p50_ms=p50,
                    response_p95_ms=p95,
                    response_p99_ms=p99,
                )
            )
        self._sampled_step = steps[-1]

    # Response times

    def _response(self, steps: list[int], backlogs: Floats) -> tuple[Sojourn | None, list[float]]:
        """The random part of a record's time in the job, and for each column of backlogs the wait behind
        it. None where some operator has no replicas: then nobody knows."""
        if min(self._served_per_s) <= 0:
            return None, [0.0] * len(steps)
        own = [self.sojourn_at(i, rate) for i, rate in enumerate(self._rate_per_s.tolist())]
        total, waits_s = slowest_way(self.dag, own, self._hops_s, self._waits_s(steps, backlogs))
        return total, waits_s.tolist()

    def slowest_way_ms(self, own_ms: Sequence[float | None]) -> float | None:
        """The response time of the job from those of its operators; None where one is unknown."""
        ways_ms: list[float] = []
        for i, response_ms in enumerate(own_ms):
            if response_ms is None:
                return None
            inputs = zip(self.dag.upstream[i], self._hops_s[i], strict=True)
            ways_ms.append(response_ms + max((ways_ms[j] + hop_s * 1000 for j, hop_s in inputs), default=0.0))
        return max(ways_ms[i] for i in self.dag.sinks)

    def sojourn_at(self, i: int, rate_per_s: float) -> Sojourn:
        return sojourn(
            rate_per_s,
            self._served_per_s[i],
            len(self.running[self.dag.names[i]]),
            self.simulation.arrival_scv,
            self.simulation.service_scv,
        )

    def _waits_s(self, steps: list[int], backlogs: Floats) -> Floats:
        """How long the last record of each operator's backlog waits for its turn, stops included."""
        if self.simulation.buffering == "queues":
            waits: Floats = backlogs / np.maximum(self.capacity_per_s, _NOTHING)[:, None]
        else:
            waits = np.zeros_like(backlogs)
            for row, entry in enumerate(self.dag.entries):
                waits[entry] = backlogs[entry] / max(self._limits_per_s[row], _NOTHING)
        if self._all_serve_from > steps[0]:
            stopped_s = np.maximum(self._serves_from[:, None] - steps, 0.0) * self.step_s
            if self.simulation.buffering == "back_pressure":  # records wait at the entries, for the slowest
                stopped_s = np.where(
                    np.isin(range(len(waits)), self.dag.entries)[:, None], stopped_s.max(axis=0), 0.0
                )
            waits += stopped_s
        return waits

    def wait_now_s(self, i: int) -> float:
        """The same for one operator at this instant."""
        if self.simulation.buffering == "queues":
            limit_per_s, serves_from = self._served_per_s[i], float(self._serves_from[i])
        elif i in self.dag.entries:
            limit_per_s, serves_from = self._limits_per_s[self.dag.entries.index(i)], self._all_serve_from
        else:
            return 0.0
        stopped_s = max(serves_from - self.step, 0.0) * self.step_s
        return float(self.backlog[i]) / max(limit_per_s, _NOTHING) + stopped_s

    def slowest_operator(self, row: int) -> int:
        """The one that limits what an entry may bring."""
        return self._slowest[row]


def check_job(topology: Topology, simulation: Simulation, inputs: Mapping[str, NDArray[np.int64]]) -> None:
    """Every operator has a law, every name is known, all inputs last equally long."""
    operators = [operator.name for operator in topology.operators]
    for name in operators:
        if name not in simulation.capacity:
            raise FogscaleError(f"simulation.capacity has no law for operator '{name}': add one")
    for name in (*simulation.capacity, *inputs):
        if name not in operators:
            raise FogscaleError(unknown("operator", name, operators))
    if len({len(counts) for counts in inputs.values()}) > 1:
        spans = ", ".join(f"{name} {len(counts)}" for name, counts in inputs.items())
        raise FogscaleError(f"inputs must all last equally long, but have these steps: {spans}")
    nodes = [node.name for node in topology.nodes]
    for fault in simulation.faults:
        if isinstance(fault, (NodeLoss, Straggler)) and fault.node not in nodes:
            raise FogscaleError(f"simulation.faults: {unknown('node', fault.node, nodes)}")


def _records_per_offered(dag: Dag) -> Floats:
    """How many records an operator sees for one record offered to the job, to count backlogs alike."""
    reaches = np.maximum((dag.multiplicity > 0).sum(axis=0), 1)
    per_offered: Floats = dag.multiplicity.sum(axis=0) / reaches
    return np.where(per_offered > 0, per_offered, 1.0)
