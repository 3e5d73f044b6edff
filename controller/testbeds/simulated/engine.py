"""The simulated job: an operator DAG on nodes, worked out in stretches within which nothing changes.

The engine knows physics only: arrivals, capacities, queues, stops. What a reconfiguration is, what a
policy sees and when faults strike is decided around it, in testbed.py.

A stretch is worked out further ahead than it is asked for, since most turns of the loop change nothing; what
lies ahead is thrown away when something does. So a run costs array operations per change, not per turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor
from operator import truediv
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.model import Placement, Sample, Topology
from controller.testbeds.simulated.checks import check_job
from controller.testbeds.simulated.flow import Dag, Floats, Flow, back_pressured, queued
from controller.testbeds.simulated.layout import Site
from controller.testbeds.simulated.record_kinds import Boot, Times, of_kinds
from controller.testbeds.simulated.response import quantiles_s, slowest_way, sojourns
from controller.testbeds.simulated.settings import Simulation

_NOTHING = 1e-6  # records: below it a queue is empty, above it rounding would not show

_FIRST_STEPS = 128  # at least so far ahead after a change
_FURTHER = 4  # times as far ahead each time that nothing has changed
_MOST_VALUES_AHEAD = 2**15  # operators × steps: what is thrown away should not have cost much


class Counters(NamedTuple):
    """Cumulative truth at one instant."""

    step: int
    entered: list[float]  # records that came in at each entry
    offered: list[float]  # records offered to each operator, before any back pressure
    processed: list[float]  # records each operator has processed
    saturated_steps: list[float]  # per entry: steps that ended with more waiting than buffers hold


class Stretch(NamedTuple):
    """Steps within which nothing changes. Column 0 is their first instant, column k that after k steps."""

    start: int
    end: int
    backlog: Floats  # [operator, instant]
    processed: Floats  # [operator, instant], since the run began
    saturated_steps: Floats  # [entry, instant], since the run began
    offered: Floats  # per instant: records offered to the job since the run began
    waiting: Floats  # per instant: everything that waits somewhere, in records as they were offered
    waits_s: Floats  # [operator, instant]: how long the last record of the backlog waits for its turn
    late: Floats  # [kind, instant]: records that came too late since the run began
    time_in_job_s: Floats  # [kind, instant]: of all its records together since the run began
    responses_ms: dict[int, tuple[float | None, ...]]  # mean, p50, p95, p99 where samples are taken


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
        drain_limit_s = simulation.drain_limit_s
        drain_steps = self.last_arrival_step if drain_limit_s is None else drain_limit_s / self.step_s
        self.last_step = self.last_arrival_step + ceil(drain_steps)  # no run goes on any longer
        self._offered = np.zeros((len(self.dag.entries), self.last_arrival_step + 1))
        np.cumsum(self._arrivals, axis=1, out=self._offered[:, 1:])
        self._per_offered = _records_per_offered(self.dag)
        self._per_offered_list = self._per_offered.tolist()

        self._entries = list(self.dag.entries)
        self._window_steps = round(simulation.metric_window_s / self.step_s)
        self._sample_steps = round(simulation.sample_interval_s / self.step_s)
        size = len(self.operators)
        self.step = 0
        self.drained = False
        self.reconfigurations = 0
        self.standby = 0
        self.inactive = 0  # instances that are there and paid for, but serve nothing
        self._boots_end: dict[str, list[float]] = {}  # in steps, of instances that do not serve yet
        self.taken: list[Sample] = []
        self._stretches: deque[Stretch] = deque()  # as far back as the metrics' window reaches
        self._spans_ahead = 0  # 0: something has changed since the last stretch was worked out
        self._serves_from = np.zeros(size)  # in steps, fractions allowed: when a stop of the operator ends
        self._all_serve_from = 0.0
        self._slow_steps = simulation.reconfiguration.catch_up_s / self.step_s  # after a stop
        self._warm_from = np.zeros(size)  # in steps: when an operator that stopped is as fast as ever
        self._stops: deque[tuple[int, float]] = deque()  # first and last step of stops, the latest last
        self._sampled_step = -1
        self._sample_due = True

        self.running: dict[str, tuple[str, ...]] = {}
        self._replicas: dict[str, int] = {}  # how many of each operator run while nothing is stopped
        self._boots_beside = simulation.reconfiguration.style == "boot"
        self.set_environment(topology, {node.name: node.speed for node in topology.nodes})
        self.place(placement)

    @property
    def time_s(self) -> float:
        return self.step * self.step_s

    def core_shares(self) -> Mapping[str, float]:
        """By node, the part of a core that each replica on it gets now; empty where cores are not shared."""
        return self._site.core_shares(self.running)

    def set_environment(self, topology: Topology, speeds: Mapping[str, float]) -> None:
        """The nodes and the network as they are now."""
        self._site = Site(topology, speeds, self.simulation)
        if self.running:
            self.place(self.running)

    def place(self, placement: Placement) -> None:
        """These replicas serve from now on."""
        replicas = {name: len(placement[name]) for name in self.dag.names}
        if replicas != self._replicas:
            self._sample_due = True
        self._replicas = replicas
        self.running = {name: tuple(nodes) for name, nodes in placement.items()}
        self.layout = self._site.laid_out(self.operators, self.dag, self.running)
        self._capacity_per_step = self.layout.capacity_per_s * self.step_s
        self._spans_ahead = 0

    def stop(self, names: set[str], until_s: float) -> None:
        for i, operator in enumerate(self.operators):
            if operator.name in names:
                self._serves_from[i] = max(self._serves_from[i], until_s / self.step_s)
                if self._slow_steps > 0:
                    self._warm_from[i] = self._serves_from[i] + self._slow_steps
        self._all_serve_from = float(self._serves_from.max())
        self._stops.append((self.step, until_s / self.step_s))
        self._sample_due = True
        self._spans_ahead = 0

    def set_standby(self, instances: int) -> None:
        """So many idle instances are up from now on."""
        if instances != self.standby:
            self.standby = instances
            self._sample_due = True
            self._spans_ahead = 0

    def set_inactive(self, instances: int) -> None:
        """So many instances are paid for from now on without serving."""
        if instances != self.inactive:
            self.inactive = instances
            self._sample_due = True
            self._spans_ahead = 0

    def set_booting(self, ready_s: Mapping[str, Sequence[float]]) -> None:
        """Instances that serve from these times on; until then, records that need their state wait."""
        self._boots_end = {
            name: [time_s / self.step_s for time_s in times] for name, times in ready_s.items()
        }
        self._sample_due = True
        self._spans_ahead = 0

    def replicas_now(self) -> Mapping[str, int]:
        """How many of each operator run."""
        if self._all_serve_from <= self.step:
            return self._replicas
        serves = (self._serves_from <= self.step).tolist()
        return {
            name: replicas if runs else 0
            for (name, replicas), runs in zip(self._replicas.items(), serves, strict=True)
        }

    def instances_alive(self) -> list[int]:
        """Processes that can be asked: a restarting job has none, but what hands state over is there."""
        return list((self._replicas if self._boots_beside else self.replicas_now()).values())

    def counters(self, step: int) -> Counters:
        """Cumulative truth at a step, now or within the metrics' window before."""
        entered = self._offered[:, min(step, self.last_arrival_step)]
        offered = (entered @ self.dag.multiplicity).tolist()
        for stretch in reversed(self._stretches):
            if stretch.start <= step:
                column = step - stretch.start
                processed, saturated = stretch.processed[:, column], stretch.saturated_steps[:, column]
                return Counters(step, entered.tolist(), offered, processed.tolist(), saturated.tolist())
        if step == 0:
            nothing = [0.0] * len(self.operators), [0.0] * len(self.dag.entries)
            return Counters(0, entered.tolist(), offered, *nothing)
        raise ValueError(f"step {step} lies before the metrics' window")

    def processed_at(self, operator: int, step: int) -> float:
        """Records that one operator has processed by a step, as far back as counters reach."""
        for stretch in reversed(self._stretches):
            if stretch.start <= step:
                return float(stretch.processed[operator, step - stretch.start])
        return 0.0

    @property
    def backlog(self) -> Floats:
        """Records that wait at each operator now."""
        if not self._stretches:
            return np.zeros(len(self.operators))
        stretch = self._stretches[-1]
        return stretch.backlog[:, self.step - stretch.start]

    def in_offered_records(self, waiting: Sequence[float]) -> float:
        """Records that wait at each operator, counted together as they were offered to the job."""
        records: float = sum(map(truediv, waiting, self._per_offered_list))
        return records

    def advance(self, end: int) -> None:
        """Lets the job run until a step, or until it has nothing left to do."""
        while self.step < end and not self.drained:
            if self._spans_ahead == 0 or self.step == self._stretches[-1].end:
                self._work_ahead(end)
            self._pass_to(min(end, self._stretches[-1].end))

    def _next_edge(self, end: int) -> int:
        """Where something changes by itself: stops end, some within a step, and so does the workload."""
        end = min(end, self.last_arrival_step if self.step < self.last_arrival_step else self.last_step)
        edges = () if self._all_serve_from <= self.step else self._serves_from.tolist()
        if self._slow_steps > 0:
            edges = (*edges, *self._warm_from.tolist())
        for edge in edges:
            if edge > self.step:
                whole = floor(edge)
                end = min(end, whole if whole > self.step else self.step + 1)
        return end

    def _capacity_now(self) -> Floats:
        """Per step: nothing while stopped, a part in the step in which a stop ends, and less than usual while
        a job that stopped gets warm."""
        is_slow = self._slow_steps > 0 and bool((self._warm_from > self.step).any())
        if self._all_serve_from <= self.step and not is_slow:
            return self._capacity_per_step
        served_share = np.clip(self.step + 1 - self._serves_from, 0.0, 1.0)
        if is_slow:
            warm_share = np.clip(self.step + 1 - self._warm_from, 0.0, 1.0)
            slow_share = np.maximum(served_share - warm_share, 0.0)
            served_share -= slow_share * (1 - self.simulation.reconfiguration.catch_up_ratio)
        now: Floats = self._capacity_per_step * served_share
        return now

    def _work_ahead(self, end: int) -> None:
        """The next stretch: after a change no longer than asked for, then several times as long each time."""
        span = end - self.step
        most_spans = max(1, _MOST_VALUES_AHEAD // (span * len(self.operators)))
        self._spans_ahead = min(max(ceil(_FIRST_STEPS / span), _FURTHER * self._spans_ahead), most_spans)
        end = self._next_edge(self.step + self._spans_ahead * span)
        arrivals = self._arrivals[:, self.step : end]
        if arrivals.shape[1] == 0:
            arrivals = np.zeros((len(self.dag.entries), end - self.step))
        flow_of: Callable[[Dag, Floats, Floats, Floats], Flow] = (
            back_pressured if self.simulation.buffering == "back_pressure" else queued
        )
        flow = flow_of(self.dag, self._capacity_now(), self.backlog, arrivals)
        if self.step >= self.last_arrival_step:
            flow = self._up_to_the_last_record(flow)
        self._stretches.append(self._stretch(flow))
        self._check_conservation(self._stretches[-1])
        while len(self._stretches) > 1 and self._stretches[1].start <= self.step - self._window_steps:
            self._stretches.popleft()

    def _stretch(self, flow: Flow) -> Stretch:
        before = self.counters(self.step)
        start, end = self.step, self.step + flow.backlog.shape[1]
        backlog = _from(self.backlog, flow.backlog)
        processed = _from(before.processed, flow.processed)
        processed.cumsum(axis=1, out=processed)
        unseen = max(_NOTHING, self.simulation.buffered_records)
        saturated = _from(before.saturated_steps, flow.backlog[self._entries] > unseen)
        offered = self._offered_at(start, end)
        waits_s = self._waits_s(start, backlog)
        times, responses_ms = self._responses(start, processed, waits_s, offered)
        return Stretch(
            start,
            end,
            backlog,
            processed,
            saturated.cumsum(axis=1, out=saturated),
            offered,
            self._together(backlog),
            waits_s,
            *times,
            responses_ms,
        )

    def _offered_at(self, start: int, end: int) -> Floats:
        """Records offered to the job by each instant from one to another, the last included."""
        if end <= self.last_arrival_step:
            entered = self._offered[:, start : end + 1]
        else:
            entered = self._offered[:, np.minimum(np.arange(start, end + 1), self.last_arrival_step)]
        together: Floats = entered[0] if len(entered) == 1 else entered.sum(axis=0)
        return together

    def _together(self, backlog: Floats) -> Floats:
        """All that waits, in records as they were offered: per column of [operator, instant]."""
        together: Floats = (backlog / self._per_offered[:, None]).sum(axis=0)
        return together

    def _pass_to(self, end: int) -> None:
        """Time passes within a stretch: samples are taken."""
        stretch = self._stretches[-1]
        self._sample_span(stretch, end)
        if self._all_serve_from > self.step:
            stop_ends = (self._serves_from > self.step) & (self._serves_from <= end)
            self._sample_due = bool(stop_ends.any())
        self.step = end
        if end >= self.last_arrival_step and stretch.waiting[end - stretch.start] <= _NOTHING:
            self.drained = True
            self.sample_end()

    def _up_to_the_last_record(self, flow: Flow) -> Flow:
        empty = self._together(flow.backlog) <= _NOTHING
        steps = int(empty.argmax()) + 1 if empty.any() else flow.backlog.shape[1]
        return Flow(flow.processed[:, :steps], flow.backlog[:, :steps])

    def _check_conservation(self, stretch: Stretch) -> None:
        """Mechanism 4: what came in is processed or waits, at every operator."""
        arrived = self._offered[:, min(stretch.end, self.last_arrival_step)]
        processed, backlog = stretch.processed[:, -1], stretch.backlog[:, -1]
        inflow = np.zeros(len(self.operators))
        inflow[self._entries] = arrived
        if self.simulation.buffering == "back_pressure":
            entered = arrived - backlog[self._entries]
            missing = entered @ self.dag.multiplicity - processed
        else:
            for i, inputs in enumerate(self.dag.inputs):
                inflow[i] += sum(weight * processed[j] for j, weight in inputs)
            missing = inflow - processed - backlog
        tolerance = 1e-9 * float(inflow.sum() + 1) + _NOTHING
        assert float(np.abs(missing).max()) <= tolerance, f"records lost or invented: {missing}"

    # Samples: truth on a grid, and at every instant the running replicas change.

    def _sample_span(self, stretch: Stretch, end: int) -> None:
        """What is due at the start of a span (only now it is known what follows that instant) and on the
        grid within it; what is due at its end waits for the next span."""
        grid = self._sample_steps
        due = [*range((self.step // grid + 1) * grid, end, grid)]
        if (self._sample_due or self.step % grid == 0) and self._sampled_step != self.step:
            due.insert(0, self.step)
        self._take(due, stretch)
        self._sample_due = False

    def sample_end(self) -> None:
        """The last instant of a run belongs to it, grid or not."""
        if self._sampled_step != self.step:
            self._take([self.step], self._stretches[-1])

    def _take(self, steps: Sequence[int], stretch: Stretch) -> None:
        """Samples at these steps; the same replicas run at all of them."""
        if not steps:
            return
        replicas = self.replicas_now()
        booting = sum(map(len, self._boots_end.values()))
        several = len(self._entries) > 1
        instances = booting + self.inactive + sum(self._replicas.values())
        for step in steps:
            column = step - stretch.start
            offered = int(stretch.offered[column])
            lag = ceil(float(stretch.waiting[column]) - _NOTHING)
            late, times_s = self._of_kinds(stretch, column)
            mean_ms, p50_ms, p95_ms, p99_ms = stretch.responses_ms[column]
            sample = Sample(
                step * self.step_s,
                offered,
                offered - lag,
                lag,
                replicas,
                self.reconfigurations,
                p50_ms,
                p95_ms,
                p99_ms,
                mean_ms,
                late,
                times_s,
                self.standby,
                self.standby + instances,
                self._entered(step) if several else {},
            )
            self.taken.append(sample)
        self._sampled_step = steps[-1]

    def _entered(self, step: int) -> dict[str, int]:
        counts = self._offered[:, min(step, self.last_arrival_step)].tolist()
        return {self.dag.names[entry]: int(n) for entry, n in zip(self._entries, counts, strict=True)}

    def _of_kinds(self, stretch: Stretch, column: int) -> tuple[dict[str, int], dict[str, float]]:
        kinds = self.simulation.kinds
        if not kinds:
            return {}, {}
        late, times_s = stretch.late[:, column].tolist(), stretch.time_in_job_s[:, column].tolist()
        return dict(zip(kinds, map(round, late), strict=True)), dict(zip(kinds, times_s, strict=True))

    # Response times (mechanism 6)

    def _responses(
        self, start: int, processed: Floats, waits_s: Floats, offered: Floats
    ) -> tuple[tuple[Floats, Floats], dict[int, tuple[float | None, ...]]]:
        """What became of each kind of records at every instant of a stretch, and response times where samples
        are taken: on the grid, where it begins and where it ends. Rates are those of the sample interval
        that follows."""
        last, grid = processed.shape[1] - 1, self._sample_steps
        sampled = [0, *range(grid - start % grid, last, grid), last]
        if any(each.station is None for each in self.layout.replicas):  # nobody knows how long it will take
            return self._kinds(start, offered, None), dict.fromkeys(sampled, (None,) * 4)
        columns = np.array(sampled)
        lengths = columns[1:] - columns[:-1]
        then = processed[:, columns]
        rate_per_s = (then[:, 1:] - then[:, :-1]) / (lengths * self.step_s)
        at_samples = np.concatenate((rate_per_s, rate_per_s[:, -1:]), axis=1)
        times = self._times(at_samples, waits_s[:, columns])
        shown = np.array((times.total.mean_s, *quantiles_s(times.total))) + times.waited_s
        if self.simulation.kinds:
            times = self._times(np.repeat(rate_per_s, lengths, axis=1), waits_s[:, 1:])
        return self._kinds(start, offered, times), dict(zip(sampled, (shown * 1000).T.tolist(), strict=True))

    def _kinds(self, start: int, offered: Floats, times: Times | None) -> tuple[Floats, Floats]:
        """Late records and the time in the job, per kind and instant, since the run began."""
        kinds = self.simulation.kinds.values()
        if not kinds:
            nothing = np.empty((0, len(offered)))
            return nothing, nothing
        late_before = times_before = np.zeros(len(kinds))
        if self._stretches:
            before = self._stretches[-1]
            late_before = before.late[:, start - before.start]
            times_before = before.time_in_job_s[:, start - before.start]
        arrived = np.diff(offered)
        late, times_s = of_kinds(kinds, arrived, times, self._boots(start, len(arrived)))
        return (
            np.cumsum(_from(late_before, late), axis=1),
            np.cumsum(_from(times_before, times_s), axis=1),
        )

    def _boots(self, start: int, steps: int) -> list[Boot]:
        at = np.arange(start, start + steps)
        return [
            Boot(np.maximum(end - at, 0.0) * self.step_s, len(self.running[name]) + len(ends))
            for name, ends in self._boots_end.items()
            for end in ends
        ]

    def _times(self, rate_per_s: Floats, waits_s: Floats) -> Times:
        stations = [each.station for each in self.layout.replicas if each.station is not None]
        return Times(*slowest_way(self.dag, sojourns(stations, rate_per_s), self.layout.hops_s, waits_s))

    def slowest_way_ms(self, own_ms: Sequence[float | None]) -> float | None:
        """The response time of the job from those of its operators; None where one is unknown."""
        ways_ms: list[float] = []
        for i, response_ms in enumerate(own_ms):
            if response_ms is None:
                return None
            inputs = zip(self.dag.upstream[i], self.layout.hops_s[i], strict=True)
            ways_ms.append(response_ms + max([ways_ms[j] + hop_s * 1000 for j, hop_s in inputs], default=0.0))
        return max([ways_ms[i] for i in self.dag.sinks])

    def _waits_s(self, start: int, backlog: Floats) -> Floats:
        """How long the last record of each operator's backlog waits for its turn, stops included; at each
        instant from a step on."""
        if self.simulation.buffering == "queues":
            waits: Floats = backlog / np.maximum(self.layout.capacity_per_s, _NOTHING)[:, None]
        else:
            waits = np.zeros_like(backlog)
            for row, entry in enumerate(self.dag.entries):
                waits[entry] = backlog[entry] / max(self.layout.limits_per_s[row], _NOTHING)
        if self._slow_steps > 0:
            waits = self._longer_while_slow(start, waits)
        if self._all_serve_from > start:
            steps = np.arange(start, start + backlog.shape[1])
            stopped_s = np.maximum(self._serves_from[:, None] - steps, 0.0) * self.step_s
            if self.simulation.buffering == "back_pressure":  # records wait at the entries, for the slowest
                waits[self._entries] += stopped_s.max(axis=0)
            else:
                waits += stopped_s
        return waits

    def _longer_while_slow(self, start: int, waits_s: Floats) -> Floats:
        """Waits at the usual rate, made longer: what is served while the job gets warm takes 1/ratio."""
        ratio = self.simulation.reconfiguration.catch_up_ratio
        steps = np.arange(start, start + waits_s.shape[1])
        begins = np.maximum(self._serves_from[:, None], steps)
        slow_s = np.maximum(self._warm_from[:, None] - begins, 0.0) * self.step_s
        if self.simulation.buffering == "back_pressure":
            slow_s = np.broadcast_to(slow_s.max(axis=0), slow_s.shape)
        longer: Floats = np.minimum(waits_s / ratio, waits_s + (1 - ratio) * slow_s)
        return longer

    def stopped_ratio(self, since: int) -> float:
        """The share of the steps since then in which the job, or a part of it, was stopped."""
        while self._stops and self._stops[0][1] <= self.step - self._window_steps - 1:
            self._stops.popleft()
        stopped = sum(max(0.0, min(self.step, end) - max(since, start)) for start, end in self._stops)
        return min(1.0, stopped / max(1, self.step - since))

    def waits_now_s(self) -> list[float]:
        """How long a record that arrives at each operator now waits behind its backlog."""
        stretch = self._stretches[-1]
        if self._spans_ahead > 0:
            waits: list[float] = stretch.waits_s[:, self.step - stretch.start].tolist()
            return waits
        return self._waits_s(self.step, self.backlog[:, None])[:, 0].tolist()  # type: ignore[no-any-return]

    def limit_of(self, row: int) -> tuple[float, int]:
        """The most that an entry may bring in a second, and the operator that says so."""
        return self.layout.limits_per_s[row], self.layout.slowest[row]


def _from(first: Floats | list[float], following: Floats | NDArray[np.bool_]) -> Floats:
    """The same with one more column before the others."""
    columns = np.empty((following.shape[0], following.shape[1] + 1))
    columns[:, 0] = first
    columns[:, 1:] = following
    return columns


def _records_per_offered(dag: Dag) -> Floats:
    """How many records an operator sees for one record offered to the job, to count backlogs alike."""
    reaches = np.maximum((dag.multiplicity > 0).sum(axis=0), 1)
    per_offered: Floats = dag.multiplicity.sum(axis=0) / reaches
    return np.where(per_offered > 0, per_offered, 1.0)
