"""The simulated testbed: the engine behind the testbed contract, with reconfigurations, faults and noise."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from math import ceil
from types import TracebackType
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from controller.contract import Step
from controller.model import (
    Capabilities,
    Capability,
    Instance,
    InstanceMetrics,
    NodeMetrics,
    Observation,
    OperatorMetrics,
    Outcome,
    Placement,
    Plan,
    Receipt,
    Sample,
    Topology,
    placement_of,
)
from controller.network import RttScaled
from controller.placement import free_nodes
from controller.testbeds.simulated.checks import objection
from controller.testbeds.simulated.engine import Counters, Engine
from controller.testbeds.simulated.faults import (
    FailedSavepoint,
    LostMetrics,
    NodeLoss,
    SlowNetwork,
    Straggler,
)
from controller.testbeds.simulated.instances import (
    Named,
    Names,
    active_of,
    first_named,
    named_for,
    occupied_by,
    without_nodes,
)
from controller.testbeds.simulated.measure import Draws, Wander, WindowErrors, node_metrics, operator_metrics
from controller.testbeds.simulated.readings import CpuByInstance, PressureReadings, gauged_cpu
from controller.testbeds.simulated.settings import Simulation
from controller.testbeds.simulated.standby import kept_idle, nodes_for_more, nodes_of
from fogscale.errors import FogscaleError

DEPENDS_ON_SETTINGS = frozenset({Capability.MEMORY, Capability.INSTANT_RESCALE})


class _Seen(NamedTuple):
    """What monitoring shows, all of one age."""

    time_s: float | None
    operators: dict[str, OperatorMetrics]
    lag_records: float | None
    response_time_ms: float | None


class SimulatedTestbed:
    """Deterministic: the same inputs, settings and generator give the same run, byte for byte."""

    __test__: ClassVar[bool] = False

    def __init__(
        self,
        topology: Topology,
        start: Placement,
        simulation: Simulation,
        inputs: Mapping[str, NDArray[np.int64]],
        rng: Generator,
    ) -> None:
        self._simulation = simulation
        self._whole_topology = topology
        self._topology = topology
        self._slots = {node.name: node.slots for node in topology.nodes}
        self._noise_rng, self._duration_rng, wander_rng, times_rng, self._gauge_rng = rng.spawn(5)
        self._draws = Draws.of(self._noise_rng, times_rng)
        self._wander = Wander(simulation.noise, wander_rng)
        late = simulation.back_pressure_readings
        self._pressure = None if late is None else PressureReadings(late)
        self._engine = Engine(topology, start, inputs, simulation)
        self._names = Names()
        self._serving = first_named(start, self._names)
        self._ask(self._serving)
        self._booting: dict[str, dict[int, Instance]] = {name: {} for name in start}  # by ticket
        self._up_s: dict[str, float] = {}  # of those that are not active: when they are up
        self._ready_s: dict[int, float] = {}  # ticket -> when the boot ends
        self._standby: dict[str, float] = {}  # node -> when the idle instance on it is up
        self._receipts: list[Receipt] = []
        self._settled_s = 0.0
        self._blind_until_s = 0.0  # no metrics before
        self._busy_until_s = dict.fromkeys(start, 0.0)  # per operator: when its reconfiguration ends
        self._agenda: list[tuple[int, int, Callable[[], None]]] = []
        self._ticket = count()
        self._window_steps = round(simulation.metric_window_s / simulation.step_s)
        self._shared_errors = WindowErrors(self._window_steps)
        self._counters: dict[int, Counters] = {}  # as far back as the metrics' window reaches
        self._last_seen: _Seen | None = None
        self._orphaned: dict[str, tuple[str, ...]] = {}  # replicas that went down with their node
        for edge_s in sorted({edge for fault in simulation.faults for edge in fault.edges_s}):
            self._schedule(edge_s, self._apply_faults)
        self._run_agenda()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing outlives the process."""

    @property
    def offers(self) -> Capabilities:
        offers = set(Capability) - DEPENDS_ON_SETTINGS
        if self._simulation.reconfiguration.style == "instant":
            offers.add(Capability.INSTANT_RESCALE)
        scaled = [operator.name for operator in self._whole_topology.operators if operator.scalable]
        if all(name in self._simulation.memory for name in scaled):
            offers.add(Capability.MEMORY)
        return frozenset(offers)

    @property
    def drained(self) -> bool:
        return self._engine.drained

    @property
    def finished(self) -> bool:
        return self._engine.drained or self._engine.step >= self._engine.last_step

    def samples(self) -> Iterator[Sample]:
        taken, self._engine.taken = self._engine.taken, []
        return iter(taken)

    def wait(self, seconds: float) -> None:
        engine = self._engine
        self._advance(min(engine.step + max(1, round(seconds / engine.step_s)), engine.last_step))
        if self.finished:
            engine.sample_end()

    def restore(self, steps: Sequence[Step]) -> None:
        for step in steps:
            samples, observation = tuple(self.samples()), self.observe()
            if observation != step.observation or samples != step.samples:
                raise FogscaleError(
                    f"at {step.observation.time_s:g} s the simulation now differs from the journal: the code "
                    f"or the settings have changed since; use --fresh to start over"
                )
            if step.plan is not None:
                self.apply(step.plan)
            self.wait(step.waited_s)

    # Time

    def _schedule(self, time_s: float, action: Callable[[], None]) -> None:
        step = ceil(time_s / self._engine.step_s - 1e-9)
        heapq.heappush(self._agenda, (step, next(self._ticket), action))

    def _advance(self, target: int) -> None:
        while self._engine.step < target and not self._engine.drained:
            next_step = self._agenda[0][0] if self._agenda else target
            self._engine.advance(min(target, next_step))
            self._run_agenda()

    def _run_agenda(self) -> None:
        while self._agenda and self._agenda[0][0] <= self._engine.step:
            heapq.heappop(self._agenda)[2]()

    # Monitoring

    def observe(self) -> Observation:
        engine = self._engine
        seen = self._measured()
        return Observation(
            time_s=engine.time_s,
            topology=self._topology,
            placement=self._placement_now(),
            requested=self._requested_nodes,
            operators=seen.operators,
            nodes={} if seen.time_s is None else self._node_metrics(seen.operators),
            measured_s=seen.time_s,
            lag_records=seen.lag_records,
            response_time_ms=seen.response_time_ms,
            receipts=self._receipts_since(),
            standby=self._standby_now(),
            changing=self._busy() if self._one_by_one else None,
            requested_instances=self._requested,
        )

    def _node_metrics(self, operators: Mapping[str, OperatorMetrics]) -> dict[str, NodeMetrics]:
        cores = {node.name: node.cores for node in self._topology.nodes}
        return node_metrics(self._slots, operators, cores, self._engine.core_shares())

    def _measured(self) -> _Seen:
        engine, noise = self._engine, self._simulation.noise
        is_stale = noise.stale_ratio > 0 and self._noise_rng.random() < noise.stale_ratio
        if is_stale and self._last_seen is not None:
            return self._last_seen
        if engine.step == 0 or self._is_active(LostMetrics) or self._metrics_missing():
            return _Seen(None, {name: OperatorMetrics() for name in engine.dag.names}, None, None)
        if engine.time_s < self._settled_s:
            noise = noise.while_settling()
        since = self._counters_at(max(0, engine.step - self._window_steps))
        until = self._counters_at(engine.step)
        operators = operator_metrics(
            engine,
            since,
            until,
            noise,
            self._draws,
            self._wander,
            self._shared_errors,
            self._serving,
            self._gauged(),
        )
        if self._pressure is not None:
            operators = self._pressure.shown(engine.time_s, operators)
        for name, booting in self._booting.items():
            if booting or self._engine.inactive:
                others = (*self._shown_booting(name), *self._shown_inactive(name))
                operators[name] = replace(operators[name], instances=operators[name].instances + others)
        response_ms = engine.slowest_way_ms([seen.response_time_ms for seen in operators.values()])
        self._last_seen = _Seen(engine.time_s, operators, self._lag_seen(operators), response_ms)
        return self._last_seen

    def _gauged(self) -> CpuByInstance | None:
        gauge = self._simulation.cpu_gauge
        return None if gauge is None else gauged_cpu(self._engine, gauge, self._serving, self._gauge_rng)

    def _metrics_missing(self) -> bool:
        """While the job is stopped and until monitoring knows the new instances, where that takes time."""
        missing_s = self._simulation.reconfiguration.metrics_missing_s
        return missing_s > 0 and (bool(self._busy()) or self._engine.time_s < self._blind_until_s)

    def _shown_booting(self, name: str) -> Iterator[InstanceMetrics]:
        for each in self._booting[name].values():
            yield InstanceMetrics(each.id, each.node, "booting")

    def _shown_inactive(self, name: str) -> Iterator[InstanceMetrics]:
        for each in self._requested[name]:
            if not each.active:
                is_up = self._up_s.get(each.id, 0.0) <= self._engine.time_s
                yield InstanceMetrics(each.id, each.node, "inactive" if is_up else "booting")

    def _counters_at(self, step: int) -> Counters:
        """Where a window begins, one has usually ended before: the past is looked up only once."""
        known = self._counters.get(step)
        if known is None:
            known = self._counters[step] = self._engine.counters(step)
            oldest = next(iter(self._counters))
            if oldest < self._engine.step - self._window_steps:
                del self._counters[oldest]
        return known

    def _lag_seen(self, operators: Mapping[str, OperatorMetrics]) -> float:
        queues = [seen.queue_records or 0.0 for seen in operators.values()]
        lag, noise = self._engine.in_offered_records(queues), self._simulation.noise
        if noise.lag_hidden_s > 0:
            passed = [seen.throughput_per_s or 0.0 for seen in operators.values()]
            lag = max(0.0, lag - noise.lag_hidden_s * min(passed))
        return lag * noise.lag_seen_ratio

    def _placement_now(self) -> Placement:
        replicas = self._engine.replicas_now()
        return {name: nodes if replicas[name] else () for name, nodes in self._engine.running.items()}

    def _receipts_since(self) -> tuple[Receipt, ...]:
        receipts, self._receipts = tuple(self._receipts), []
        return receipts

    # Reconfiguration (mechanism 5)

    def apply(self, plan: Plan) -> None:
        touched = {name for name in self._requested if self._touches(plan, name)}
        problem = self._busy_with(touched) or objection(plan, self._topology)
        problem = problem or self._names.objection(plan, self._requested)
        if problem:
            self._settle(plan, "refused", self._engine.time_s, 0.0, problem)
            return
        if not touched:
            self._keep_standby(plan.standby, self._requested)
            self._settle(plan, "unchanged", self._engine.time_s, 0.0, "already so")
            return
        wanted = self._requested | {name: self._wanted(plan, name) for name in touched}
        self._names.take(wanted)
        serving = {name for name in touched if active_of(wanted[name]) != active_of(self._requested[name])}
        if serving:
            self._engine.reconfigurations += 1
            if self._pressure is not None:
                self._pressure.change_asked_for(self._engine.time_s)
        if self._simulation.reconfiguration.style == "boot":
            self._boot(plan, wanted)
        elif serving:
            self._stop_and_go(plan, wanted, serving if self._one_by_one else set(wanted))
        else:
            self._wait_for_idle(plan, wanted)

    def _ask(self, instances: Named) -> None:
        """What is requested from now on."""
        self._requested = instances
        self._requested_nodes = placement_of(instances)

    def _place(self, instances: Named) -> None:
        """Who serves from now on."""
        self._serving = instances
        self._engine.place(placement_of(instances))

    def _touches(self, plan: Plan, name: str) -> bool:
        """Whether a plan wants anything else of an operator than what is requested; who names no instances
        wants active ones only."""
        now = self._requested[name]
        if plan.instances is None:
            nodes = tuple(plan.placement.get(name, ()))
            return nodes != self._requested_nodes[name] or len(nodes) != len(now)
        return set(plan.instances.get(name, ())) != set(now)

    def _wanted(self, plan: Plan, name: str) -> tuple[Instance, ...]:
        if plan.instances is not None:
            return tuple(plan.instances[name])
        return named_for(tuple(plan.placement[name]), name, self._requested[name], self._serving, self._names)

    @property
    def _one_by_one(self) -> bool:
        """Whether operators are reconfigured each on its own, while the others run on."""
        return self._simulation.reconfiguration.style == "pause"

    def _busy(self) -> tuple[str, ...]:
        return tuple(name for name, until_s in self._busy_until_s.items() if self._engine.time_s < until_s)

    def _busy_with(self, touched: set[str]) -> str:
        """Why a plan has to wait; empty if it touches nothing that is under reconfiguration."""
        busy = self._busy()
        if not self._one_by_one:
            return "a reconfiguration is in progress" if busy else ""
        waiting = [name for name in busy if name in touched]
        return f"a reconfiguration of {', '.join(waiting)} is in progress" if waiting else ""

    def _drawn_s(self, range_s: tuple[float, float]) -> float:
        low_s, high_s = range_s
        return low_s if low_s == high_s else float(self._duration_rng.uniform(low_s, high_s))

    def _stop_and_go(self, plan: Plan, wanted: Named, touched: set[str]) -> None:
        """Once all instances are there, stops the job, or the operators it touches."""
        requested_s = self._engine.time_s
        waited_s = self._provision_s(wanted)
        duration_s = self._drawn_s(self._simulation.reconfiguration.range_s)
        before = self._requested
        self._up_s = self._ups_s(wanted, requested_s + waited_s)
        self._ask(wanted)
        self._keep_standby(plan.standby, wanted)
        self._busy_until_s |= dict.fromkeys(touched, requested_s + waited_s + duration_s)

        def begin() -> None:
            self._restart(plan, touched, before, requested_s, duration_s)

        if waited_s > 0:
            self._schedule(requested_s + waited_s, begin)
        else:
            begin()

    def _restart(
        self,
        plan: Plan,
        touched: set[str],
        before: Named,
        requested_s: float,
        duration_s: float,
    ) -> None:
        """Stops; then the new replicas serve, or after a failed savepoint the old ones do."""
        engine, started_s = self._engine, self._engine.time_s
        failed = self._is_active(FailedSavepoint)
        if failed:
            self._names.give_back(self._requested, before)
            self._ask(self._requested | {name: before[name] for name in touched})
        else:
            self._place(self._serving | {name: active_of(self._requested[name]) for name in touched})
        self._count_inactive()
        if duration_s > 0:
            engine.stop(touched, started_s + duration_s)

        def finish() -> None:
            message = "the savepoint failed; the job resumed as it was" if failed else ""
            outcome: Outcome = "failed" if failed else "done"
            paused = tuple(name for name in plan.placement if name in touched) if self._one_by_one else ()
            self._settle(plan, outcome, requested_s, duration_s, message, paused)

        if duration_s > 0:
            self._schedule(started_s + duration_s, finish)
        else:
            finish()

    # Instances that are there but not active: they take a slot and cost, and are ready to serve

    def _wait_for_idle(self, plan: Plan, wanted: Named) -> None:
        """Whoever serves goes on; the others come or leave beside them."""
        requested_s = self._engine.time_s
        ready_s = requested_s + self._provision_s(wanted)
        self._up_s = self._ups_s(wanted, ready_s)
        self._ask(wanted)
        self._keep_standby(plan.standby, wanted)
        self._count_inactive()
        self._answer_at(ready_s, plan, requested_s)

    def _answer_at(self, time_s: float, plan: Plan, requested_s: float) -> None:
        """Nothing was disturbed, so there is nothing to settle."""

        def answer() -> None:
            self._receipts.append(Receipt(plan, "done", requested_s, max(requested_s, self._engine.time_s)))

        self._schedule(time_s, answer)
        self._run_agenda()

    def _ups_s(self, wanted: Named, new_s: float) -> dict[str, float]:
        """When each that is not active is up: new and moved ones at a time, others as they were."""
        there = {each.id: each.node for some in self._requested.values() for each in some}
        idle = [each for some in wanted.values() for each in some if not each.active]
        return {
            each.id: self._up_s.get(each.id, 0.0) if there.get(each.id) == each.node else new_s
            for each in idle
        }

    def _count_inactive(self) -> None:
        self._engine.set_inactive(sum(not each.active for some in self._requested.values() for each in some))

    # Hot standby: idle instances that a scale-up can use at once

    def _standby_now(self) -> tuple[str, ...]:
        return tuple(node for node, up_s in self._standby.items() if up_s <= self._engine.time_s)

    def _provision_s(self, wanted: Named) -> float:
        """How long it takes until the new instances are there: no time if all of them are on standby."""
        there = nodes_of(occupied_by(self._requested))
        new = nodes_of(occupied_by(wanted)) - there - Counter(self._standby_now())
        return self._drawn_s(self._simulation.reconfiguration.provision_s) if new else 0.0

    def _keep_standby(self, instances: int, wanted: Named) -> None:
        """Those given up become idle; what is missing is provisioned."""
        now_s, topology, taken = self._engine.time_s, self._topology, occupied_by(wanted)
        self._standby = kept_idle(self._standby, instances, self._engine.running, taken, topology, now_s)
        for node in nodes_for_more(self._standby, instances, taken, topology):
            self._standby[node] = now_s + self._drawn_s(self._simulation.reconfiguration.new_instance_s)
            self._schedule(self._standby[node], self._count_standby)
        self._count_standby()

    def _count_standby(self) -> None:
        self._engine.set_standby(len(self._standby_now()))

    def _boot(self, plan: Plan, wanted: Named) -> None:
        """Removed instances leave at once, new ones serve when they have booted; nothing stops."""
        started_s, idle = self._engine.time_s, Counter(self._standby_now())
        changed = {name for name in wanted if active_of(wanted[name]) != active_of(self._requested[name])}
        up_s = self._up_now_s()
        ready_s = started_s
        for name, some in wanted.items():
            booting = {ticket: each for ticket, each in self._booting[name].items() if each in some}
            ready = {*self._serving[name], *booting.values()}
            self._booting[name] = booting
            nodes = [each.node for each in some]
            missing = sorted(
                (each for each in some if each not in ready), key=lambda it: nodes.index(it.node)
            )
            for each in missing:
                ticket = next(self._ticket)
                boots_until_s = self._boots_until_s(each, up_s, idle)
                ready_s = max(ready_s, boots_until_s)
                if not each.active:
                    self._up_s[each.id] = boots_until_s
                    continue
                booting[ticket], self._ready_s[ticket] = each, boots_until_s
                self._schedule(boots_until_s, partial(self._serve, name, ticket))
        self._ask(wanted)
        self._hand_over({name: self._those_of(name, self._serving[name]) for name in wanted})
        self._keep_standby(plan.standby, wanted)
        self._count_inactive()
        if changed:
            self._schedule(ready_s, lambda: self._settle(plan, "done", started_s, 0.0, ""))
            self._run_agenda()
        else:
            self._answer_at(ready_s, plan, started_s)

    def _up_now_s(self) -> dict[tuple[str, str], float]:
        """Since when, or from when on, an instance is up on a node."""
        serving = (each for some in self._serving.values() for each in some)
        booting = (item for some in self._booting.values() for item in some.items())
        idle = (each for some in self._requested.values() for each in some if not each.active)
        return {
            **{(each.id, each.node): 0.0 for each in serving},
            **{(each.id, each.node): self._ready_s[ticket] for ticket, each in booting},
            **{(each.id, each.node): self._up_s.get(each.id, 0.0) for each in idle},
        }

    def _boots_until_s(
        self, each: Instance, up_s: Mapping[tuple[str, str], float], idle: Counter[str]
    ) -> float:
        """No boot for one that is up there already, or where an idle one takes its part."""
        now_s = self._engine.time_s
        if (each.id, each.node) in up_s:
            return max(now_s, up_s[each.id, each.node])
        boot_s = (
            0.0 if _taken_from(idle, each.node) else self._drawn_s(self._simulation.reconfiguration.range_s)
        )
        return now_s + boot_s

    def _those_of(self, name: str, instances: Iterable[Instance]) -> tuple[Instance, ...]:
        """Of these the ones that are requested, in that order."""
        some = set(instances)
        return tuple(each for each in self._requested[name] if each in some)

    def _serve(self, name: str, ticket: int) -> None:
        booted = self._booting[name].pop(ticket, None)
        if booted is not None:  # else given up while it booted
            in_order = self._those_of(name, (*self._serving[name], booted))
            self._hand_over(self._serving | {name: in_order})

    def _tell_booting(self) -> None:
        ready_s = {
            name: [self._ready_s[ticket] for ticket in nodes]
            for name, nodes in self._booting.items()
            if nodes
        }
        self._engine.set_booting(ready_s)

    def _hand_over(self, instances: Named) -> None:
        """Where instances join or leave, state moves, and the operator stands still meanwhile."""
        engine, handover_s = self._engine, self._simulation.reconfiguration.handover_s
        touched = {name for name, some in instances.items() if some != self._serving[name]}
        self._place(instances)
        self._tell_booting()
        if handover_s > 0 and touched:
            engine.stop(touched, engine.time_s + handover_s)

    def _settle(
        self,
        plan: Plan,
        outcome: Outcome,
        requested_s: float,
        downtime_s: float,
        message: str,
        operators: tuple[str, ...] = (),
    ) -> None:
        finished_s = max(requested_s + downtime_s, self._engine.time_s)
        self._receipts.append(Receipt(plan, outcome, requested_s, finished_s, downtime_s, message, operators))
        if outcome in ("done", "failed"):
            self._blind_until_s = finished_s + self._simulation.reconfiguration.metrics_missing_s
            self._settled_s = finished_s + self._simulation.reconfiguration.settling_s

    # Faults (mechanism 8)

    def _is_active(self, kind: type) -> bool:
        time_s = self._engine.time_s
        return any(isinstance(fault, kind) and fault.is_active(time_s) for fault in self._simulation.faults)

    def _apply_faults(self) -> None:
        """Brings nodes, speeds and network to what the faults active now make of them."""
        time_s, whole = self._engine.time_s, self._whole_topology
        active = [fault for fault in self._simulation.faults if fault.is_active(time_s)]
        lost = {fault.node: fault.recovery_s for fault in active if isinstance(fault, NodeLoss)}
        rtt_factor = np.prod([fault.rtt_factor for fault in active if isinstance(fault, SlowNetwork)])
        self._topology = replace(
            whole,
            nodes=tuple(node for node in whole.nodes if node.name not in lost),
            rtt_ms=whole.rtt_ms if rtt_factor == 1 else RttScaled(whole.rtt_ms, float(rtt_factor)),  # type: ignore[arg-type]
        )
        self._slots = {node.name: node.slots for node in self._topology.nodes}
        speeds = {node.name: node.speed for node in whole.nodes}
        for fault in active:
            if isinstance(fault, Straggler):
                speeds[fault.node] *= fault.speed_factor
        self._engine.set_environment(self._topology, speeds)
        self._drop_replicas_on(lost)
        self._bring_back_orphans()

    def _drop_replicas_on(self, lost: Mapping[str, float]) -> None:
        for name, nodes in self._requested_nodes.items():
            if gone := tuple(node for node in nodes if node in lost):
                self._orphaned[name] = (*self._orphaned.get(name, ()), *gone)
        self._ask(without_nodes(self._requested, lost))
        self._count_inactive()
        self._standby = {node: up_s for node, up_s in self._standby.items() if node not in lost}
        self._count_standby()
        self._booting = {
            name: {ticket: each for ticket, each in some.items() if each.node not in lost}
            for name, some in self._booting.items()
        }
        self._tell_booting()
        struck = [lost[node] for nodes in self._engine.running.values() for node in nodes if node in lost]
        if not struck:
            return
        until_s = self._engine.time_s + max(struck)
        self._place(without_nodes(self._serving, lost))
        self._engine.stop(set(self._engine.running), until_s)
        for name, busy_until_s in self._busy_until_s.items():
            self._busy_until_s[name] = max(busy_until_s, until_s)
        self._settled_s = until_s + self._simulation.reconfiguration.settling_s

    def _bring_back_orphans(self) -> None:
        """What Kubernetes does for an operator below its n_min once a node it ran on is back: nobody else
        would, since without replicas there is nothing to measure."""
        for operator in self._topology.operators:
            for node in self._orphaned.get(operator.name, ()):
                too_few = len(self._requested_nodes[operator.name]) < operator.n_min
                if too_few and node in free_nodes(self._topology, occupied_by(self._requested)):
                    back = (*self._requested[operator.name], self._names.new(operator.name, node))
                    self._orphaned[operator.name] = tuple(
                        other for other in self._orphaned[operator.name] if other != node
                    )
                    self._ask(self._requested | {operator.name: back})
                    self._place(self._serving | {operator.name: active_of(back)})


def _taken_from(remaining: Counter[str], node: str) -> bool:
    if remaining[node] == 0:
        return False
    remaining[node] -= 1
    return True
