"""Measuring on a real testbed, by the Gesscale paper's method: the job is given more than it can do, and once
it is warm, what leaves it is counted. Counted are the records themselves, by the stamps they carry."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from math import ceil

from controller.calibration.backlog import Backlog
from controller.calibration.points import Point, Restart, Wanted
from controller.calibration.stamps import Stamps
from controller.model import Topology
from controller.placement import largest_rtt_ms
from controller.testbeds.flink import queries
from controller.testbeds.flink.broker import Offsets, Output, set_group
from controller.testbeds.flink.connection import Connection
from controller.testbeds.flink.fleet import Fleet
from controller.testbeds.flink.http import UnreachableError
from controller.testbeds.flink.job import RunningJob
from controller.testbeds.flink.metrics import Measured, Monitor, Running
from controller.testbeds.flink.program import INPUT, OUTPUT, group_of, program_for
from controller.testbeds.flink.prometheus import Prometheus, named
from controller.testbeds.flink.rescale import Rescaler
from controller.testbeds.flink.rest import ENDED
from controller.testbeds.flink.settings import FlinkSettings, Style
from fog.services.broker import FLINK, PRODUCER
from fogscale.errors import FogscaleError

READ_WITHIN_S = 0.1
SPAN_S = 10.0  # two such spans in a row that are alike: it is warm
ALIKE = 0.05
METRICS_WINDOW_S = 15.0
METRICS_WITHIN_S = 60.0
FIRST_RECORD_WITHIN_S = 120.0
LEFT_RATIO = 0.95  # of a backlog: what comes after may be its end

Told = Callable[[str], None]


class DryError(FogscaleError):
    """The backlog is too small for this."""


@dataclass(frozen=True)
class Pace:
    """How long things are looked at."""

    warm_s: float = 15.0  # at least
    warm_limit_s: float = 60.0  # at most
    measure_s: float = 30.0
    after_restart_s: float = 60.0


@dataclass
class _Run:
    """A job that works on the backlog."""

    rescaler: Rescaler
    output: Output
    stamps: Stamps
    backlog: Backlog
    topology: Topology
    prometheus: Prometheus
    monitor: Monitor
    operator: str
    running_since_s: float = field(default_factory=time.time)

    def read_for(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self.stamps.add(self.output.read(READ_WITHIN_S))
        if self.stamps.count > LEFT_RATIO * self.backlog.records:
            raise DryError(
                f"the job was through with {self.backlog.records} records: give it more (--records)"
            )

    def until_first(self, since_s: float, patience_s: float = FIRST_RECORD_WITHIN_S) -> float:
        """When the first record since a time left the job."""
        deadline_s = time.monotonic() + patience_s
        while (first_s := self.stamps.first_after(since_s)) is None:
            if time.monotonic() > deadline_s:
                raise FogscaleError(f"no record left the job within {patience_s:.0f} s: see Flink's logs")
            self.read_for(READ_WITHIN_S)
        return first_s

    def until_warm(self, pace: Pace, since_s: float) -> tuple[float, bool]:
        """Seconds since a time, and whether it was steady by then."""
        while True:
            self.read_for(1.0)
            now_s = time.time()
            before = self.stamps.rate_per_s(now_s - 2 * SPAN_S, now_s - SPAN_S)
            after = self.stamps.rate_per_s(now_s - SPAN_S, now_s)
            is_steady = now_s - since_s >= 2 * SPAN_S and abs(after - before) <= ALIKE * before
            if is_steady and now_s - since_s >= pace.warm_s:
                return now_s - since_s, True
            if now_s - since_s > pace.warm_limit_s:
                return now_s - since_s, False

    def seen(self, nodes: Sequence[str]) -> Measured:
        job = self.rescaler.job
        placement = {name: found for name, found in job.placement(job.look()).items() if found}
        if job.id is None or len(placement.get(self.operator, ())) != len(nodes):
            return Measured()
        return self.monitor.measure(Running(job.id, job.program.vertices, placement, self.running_since_s))

    def record_bytes(self, window_s: float) -> float | None:
        """Of a record on its way from the source to the others, over a span that has just passed."""
        job = self.rescaler.job
        source = next(each.name for each in self.topology.operators if not each.upstream)
        vertex = job.program.vertices[source]
        if job.id is None:
            return None
        series = self.prometheus.samples(queries.sent_samples(job.id, ceil(window_s)))
        gained = {
            each.name: each.last - each.values[0] for each in series if each.labels.get("task_name") == vertex
        }
        records = gained.get(queries.RECORDS_OUT, 0.0)
        return gained.get(queries.BYTES_OUT, 0.0) / records if records > 0 else None


class Bench:
    """A testbed whose network and lease are ours; jobs run on it one after the other."""

    def __init__(
        self,
        connection: Connection,
        settings: FlinkSettings,
        topology: Topology,
        scaled: str,
        backlog: Backlog,
        pace: Pace,
    ) -> None:
        self._connection, self._settings, self._topology = connection, settings, topology
        self._scaled, self._backlog, self._pace = scaled, backlog, pace
        access = connection.access
        self.fleet = Fleet(connection.cluster, connection.flink, access.fog_nodes, settings.patience_s)

    def check_free(self) -> None:
        strangers = [job.name for job in self._connection.flink.jobs() if job.state not in ENDED]
        if strangers:
            raise FogscaleError(
                f"job '{strangers[0]}' runs on this testbed: end the run it belongs to, or cancel it"
            )

    def point(self, wanted: Wanted, nodes: Sequence[str]) -> Point:
        self._connection.keep()
        with self._run(nodes, "restart") as run:
            first_s = run.until_first(0.0)
            warm_after_s, is_steady = run.until_warm(self._pace, first_s)
            since_s = time.time()
            run.read_for(self._pace.measure_s)
            until_s = time.time()
            run.read_for(1.0)  # what was written by then has come in now
            seen, record_bytes = run.seen(nodes), run.record_bytes(self._pace.measure_s)
        records = run.stamps.between(since_s, until_s)
        here = seen.operators.get(self._scaled)
        source = next(each.name for each in self._topology.operators if not each.upstream)
        above = seen.operators.get(source)
        return Point(
            replicas=wanted.replicas,
            rtt_ms=wanted.rtt_ms,
            nodes=tuple(nodes),
            largest_rtt_ms=self._largest_ms(nodes),
            channel_rtt_ms=self._channel_ms(nodes),
            rate_per_s=round(records / (until_s - since_s), 3),
            records=records,
            seconds=round(until_s - since_s, 3),
            warm_after_s=round(warm_after_s, 1),
            steady=is_steady,
            cpu_ratio=None if here is None else _rounded(here.cpu_ratio),
            busy_ratio=None if here is None else _rounded(here.busy_ratio),
            back_pressure_ratio=None if here is None else _rounded(here.back_pressure_ratio),
            source_back_pressure_ratio=None if above is None else _rounded(above.back_pressure_ratio),
            record_bytes=None if record_bytes is None else round(record_bytes, 1),
            load_1min=round(os.getloadavg()[0], 2),
            taken_at=_now(),
        )

    def restarts(self, style: Style, sets: Sequence[Sequence[str]], tell: Told) -> Iterator[Restart]:
        """From one set of nodes to the next, each under a backlog; the first set is where it begins."""
        with self._run(sets[0], style) as run:
            run.until_warm(self._pace, run.until_first(0.0))
            for before, after in pairwise(sets):
                tell(f"{style} from {len(before)} to {len(after)} replicas")
                self._connection.keep()
                yield self._restart(run, style, before, after)

    def _restart(self, run: _Run, style: Style, before: Sequence[str], after: Sequence[str]) -> Restart:
        begun_s = time.time()
        outcome = run.rescaler.rescale(self._placed(before), self._placed(after))
        if not outcome.done:
            raise FogscaleError(f"the {style} to {len(after)} replicas failed: {outcome.message}")
        run.running_since_s = time.time()
        run.read_for(1.0)
        silent_s, first_s = self._silence(run, begun_s)
        cpu_ratio = self._cpu_of(after, first_s - silent_s, first_s)
        missing_s = self._until_metrics(run, after, first_s)
        run.read_for(max(0.0, self._pace.after_restart_s - (time.time() - first_s)))
        run.until_warm(self._pace, time.time())
        warm_per_s = run.stamps.rate_per_s(time.time() - 2 * SPAN_S, time.time())
        share, slow_s = run.stamps.catch_up(first_s, first_s + self._pace.after_restart_s, warm_per_s)
        return Restart(
            style=style,
            before=len(before),
            after=len(after),
            silent_s=round(silent_s, 2),
            catch_up_ratio=_rounded(share),
            catch_up_s=slow_s,
            metrics_missing_s=missing_s,
            cpu_while_down_ratio=_rounded(cpu_ratio),
            load_1min=round(os.getloadavg()[0], 2),
            taken_at=_now(),
        )

    def _silence(self, run: _Run, begun_s: float) -> tuple[float, float]:
        """How long nothing was processed, and when that ended."""
        run.until_first(run.running_since_s)
        return run.stamps.longest_gap(begun_s - 1.0, time.time())

    def _cpu_of(self, nodes: Sequence[str], since_s: float, until_s: float) -> float | None:
        """Mean over the nodes, of a span that has just passed."""
        try:
            window_s = ceil(time.time() - since_s + 10.0)  # Prometheus takes no fractions of a second
            series = self._connection.prometheus.samples(queries.node_samples(window_s))
        except UnreachableError:
            return None
        cpus = {each.labels["node"]: each.last for each in named(series, queries.CGROUP_CPUS)}
        found = [
            used / cpus[node]
            for each in named(series, queries.CGROUP_CPU_S)
            if (node := each.labels["node"]) in nodes
            and (used := each.rate_per_s(max(since_s, each.times_s[0]), min(until_s, each.last_s)))
            is not None
        ]
        return sum(found) / len(found) if found else None

    def _until_metrics(self, run: _Run, nodes: Sequence[str], first_s: float) -> float | None:
        """Seconds from the first record on until monitoring tells everything of the new job."""
        deadline_s = time.monotonic() + METRICS_WITHIN_S
        while time.monotonic() < deadline_s:
            with suppress(UnreachableError):
                here = run.seen(nodes).operators.get(self._scaled)
                if here is not None and here.throughput_per_s is not None:
                    return round(max(0.0, time.time() - first_s), 1)
            run.read_for(0.5)
        return None

    @contextmanager
    def _run(self, nodes: Sequence[str], style: Style) -> Iterator[_Run]:
        """A job of its own, from the beginning of the backlog; stopped in order, so that no transaction of
        it keeps readers of committed records waiting."""
        kafka, name = self._connection.access.kafka, f"calibration-{time.time_ns()}"
        set_group(kafka.access(FLINK), group_of(name), INPUT, self._backlog.base)
        program = program_for(self._connection.access, self._settings, name)
        job = RunningJob(self._connection.flink, program, self._settings.patience_s)
        rescaler = Rescaler(job, self.fleet, style, (self._scaled,))
        offsets = Offsets(kafka.access(PRODUCER), OUTPUT)
        output = Output(kafka.access(PRODUCER), OUTPUT, self._backlog.run, offsets.ends(), committed=False)
        offsets.close()
        monitor = Monitor(
            self._connection.prometheus,
            self._topology.operators,
            INPUT,
            METRICS_WINDOW_S,
            self._backlog.base,
            self._settings.chained,
        )
        try:
            rescaler.begin(self._placed(nodes), {self._scaled: len(nodes)})
            prometheus = self._connection.prometheus
            yield _Run(
                rescaler, output, Stamps(), self._backlog, self._topology, prometheus, monitor, self._scaled
            )
        finally:
            output.close()
            if job.id is not None:
                job.stop()
            job.release_nodes()
            job.forget_jar()

    def _placed(self, nodes: Sequence[str]) -> dict[str, tuple[str, ...]]:
        return {self._scaled: tuple(nodes)}

    def _largest_ms(self, nodes: Sequence[str]) -> float:
        return largest_rtt_ms(self._real, tuple(nodes))

    def _channel_ms(self, nodes: Sequence[str]) -> float:
        nodes_there = self._connection.access.manifest.nodes
        services = next(node.name for node in nodes_there if node.group == "services")
        return max(self._real.rtt_ms(services, node) for node in nodes)

    @property
    def _real(self) -> Topology:
        """The job on the testbed's round trips of this moment."""
        return replace(self._topology, rtt_ms=self._connection.access.manifest.rtt_ms)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
