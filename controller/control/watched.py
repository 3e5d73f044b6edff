"""A job that is watched: what Flink says runs where, and what Prometheus measured, as one observation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller.control.found import Shape, topology_of
from controller.control.monitor import ReporterMonitor
from controller.model import Observation, OperatorMetrics, Placement, Receipt, Sample, Topology
from controller.testbeds.flink.http import MissingError, UnreachableError
from controller.testbeds.flink.metrics import Measured, Running
from controller.testbeds.flink.rest import ENDED, Flink, Job
from controller.topology import RttSettings


@dataclass
class Watched:
    flink: Flink
    monitor: ReporterMonitor
    shape: Shape
    id: str
    rtt: RttSettings | None = None
    notice: Callable[[str], None] = lambda _: None  # hears what is out of order, once
    ended: str = ""  # why there is nothing more to watch
    requested: dict[str, tuple[str, ...]] = field(default_factory=dict)
    receipts: list[Receipt] = field(default_factory=list)
    reconfigurations: int = 0
    zero_s: float = field(default_factory=time.time)
    _topology: Topology | None = None
    _running_since_s: float = 0.0  # nobody knows how long it ran before we came
    _counts: dict[str, int] = field(default_factory=dict)
    _told: str = ""
    _sampled_s: float = 0.0
    _processed: float = 0.0

    def now_s(self) -> float:
        return time.time() - self.zero_s

    def observe(self) -> Observation:
        job = self._look()
        placement = self._placement(job)
        self._follow(placement)
        seen = self._measured(placement)
        topology = self._topology_now()
        receipts, self.receipts = tuple(self.receipts), []
        return Observation(
            time_s=self.now_s(),
            topology=topology,
            placement=placement,
            requested=dict(self.requested),
            operators={
                each.name: seen.operators.get(each.name, OperatorMetrics()) for each in topology.operators
            },
            nodes={each.name: seen.nodes[each.name] for each in topology.nodes if each.name in seen.nodes},
            measured_s=None if seen.time_s is None else seen.time_s - self.zero_s,
            lag_records=seen.lag_records,
            response_time_ms=seen.response_time_ms,
            receipts=receipts,
        )

    def sample(self, observation: Observation) -> Sample:
        """What happened, as far as the same metrics tell: nobody numbers the records of a user's own job."""
        first = next(each.name for each in observation.topology.operators if not each.upstream)
        rate = observation.operators[first].throughput_per_s or 0.0
        self._processed += rate * (observation.time_s - self._sampled_s)
        self._sampled_s = observation.time_s
        lag = int(observation.lag_records or 0)
        return Sample(
            time_s=observation.time_s,
            offered_records=int(self._processed) + lag,
            processed_records=int(self._processed),
            lag_records=lag,
            replicas={name: len(nodes) for name, nodes in observation.placement.items()},
            reconfigurations=self.reconfigurations,
            allocated=sum(len(nodes) for nodes in observation.placement.values()),
        )

    def counts(self, placement: Placement) -> dict[str, int]:
        return {name: len(placement[name]) for name in self.shape.scaled}

    def _look(self) -> Job | None:
        """None while Flink does not answer: it may be back soon."""
        try:
            job = self.flink.job(self.id)
        except UnreachableError as error:
            self._tell(f"{error}; watching on")
            return None
        except MissingError:
            self.ended = "Flink does not know the job any more"
            return None
        if job.state in ENDED:
            self.ended = f"the job ended ({job.state})"
        return job

    def _placement(self, job: Job | None) -> dict[str, tuple[str, ...]]:
        nothing: dict[str, tuple[str, ...]] = dict.fromkeys(self.shape.vertices, ())
        if job is None or not job.all_run:
            return nothing
        try:
            return {
                name: self.flink.nodes_of(self.id, vertex) for name, vertex in self.shape.vertices.items()
            }
        except (UnreachableError, MissingError):
            return nothing

    def _follow(self, placement: Mapping[str, tuple[str, ...]]) -> None:
        """What runs is what was asked for, unless it is on its way; somebody else may have rescaled it."""
        counts = {name: len(nodes) for name, nodes in placement.items()}
        if not all(counts.values()):
            self._counts = {"": 0}  # whatever comes is another start
            return
        if counts != self._counts:
            self._running_since_s = time.time() if self._counts else 0.0
            self._counts = counts
        self.requested = dict(placement)

    def _measured(self, placement: Mapping[str, tuple[str, ...]]) -> Measured:
        if not all(placement.values()):
            return Measured()
        try:
            taskmanagers = {each.id: each.cores for each in self.flink.taskmanagers()}
            self.monitor.know(taskmanagers)
            running = Running(self.id, self.shape.vertices, placement, self._running_since_s)
            measured = self.monitor.measure(running)
        except UnreachableError as error:
            self._tell(f"{error}; without metrics nobody decides")
            return Measured()
        if measured.time_s is None:
            self._tell("Prometheus has no metrics of all instances yet: without them nobody decides")
        else:
            self._told = ""
        return measured

    def _topology_now(self) -> Topology:
        try:
            topology = topology_of(self.shape, self.flink.taskmanagers(), self.rtt)
        except UnreachableError:
            topology = self._topology or topology_of(self.shape, (), self.rtt)
        if topology != self._topology:
            self._topology = topology
        return self._topology or topology

    def _tell(self, what: str) -> None:
        if what != self._told:
            self._told = what
            self.notice(what)
