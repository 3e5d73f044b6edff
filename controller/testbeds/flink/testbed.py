"""The testbed contract on a real Flink: the clock is the wall's, a rescale happens in a thread, and samples
are what Kafka says."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from hashlib import blake2b
from types import TracebackType
from typing import Any, ClassVar, Self

from controller.contract import ForgottenRunError, Step
from controller.loop import Progress
from controller.model import Capabilities, Note, Observation, OperatorMetrics, Plan, Sample
from controller.testbeds import Assignment
from controller.testbeds.flink.audit import Audit, audited
from controller.testbeds.flink.broker import Offsets, Output, places_of_group, set_group
from controller.testbeds.flink.checks import check_nodes, objection
from controller.testbeds.flink.connection import connected
from controller.testbeds.flink.fleet import Fleet
from controller.testbeds.flink.footprint import Footprint
from controller.testbeds.flink.http import MissingError, UnreachableError
from controller.testbeds.flink.incidents import Incidents
from controller.testbeds.flink.job import RunningJob
from controller.testbeds.flink.kubernetes import TakenOverError
from controller.testbeds.flink.layout import as_asked, companions_of, dealt_out, leaders_of
from controller.testbeds.flink.ledger import Ledger, WindowLedger
from controller.testbeds.flink.metrics import Measured, Monitor, Running
from controller.testbeds.flink.node_cpu import NodeCpu
from controller.testbeds.flink.notebook import Notebook, Notes
from controller.testbeds.flink.offers import offers_with
from controller.testbeds.flink.producing import Load, Producer, sent
from controller.testbeds.flink.program import INPUT, OUTPUT, group_of, program_for
from controller.testbeds.flink.reconfigurations import Reconfigurations, unsettled
from controller.testbeds.flink.rescale import Rescaler
from controller.testbeds.flink.rest import ENDED
from controller.testbeds.flink.settings import FlinkSettings
from controller.testbeds.flink.standby import on_standby
from controller.testbeds.flink.status import status_line
from controller.testbeds.flink.watch import State, Watch
from fog.checks.inotify import check_spare_instances
from fog.emulation.cgroups import Group
from fog.emulation.state import State as NodesState
from fog.services.broker import FLINK, PRODUCER
from fogscale.clock import SetClockWatch
from fogscale.errors import FogscaleError
from workloads.jobs import catalog

NAP_S = 0.2
LAST_SAMPLE_WITHIN_S = 15.0  # it asks the broker and Flink
CATCH_UP_WITHIN_S = 60.0
ASKED_EVERY_S = 2.0
FLOWS_WITHIN_S = 60.0  # a producer that sent nothing for so long has a load that begins with nothing


class FlinkTestbed:
    """Entering it connects and takes the lease; the job and its load start with the first look at them, or
    with `restore`, which goes on with those of a controller that is gone."""

    __test__: ClassVar[bool] = False

    def __init__(self, wanted: Assignment, settings: FlinkSettings) -> None:
        self._wanted, self._settings, self._topology = wanted, settings, wanted.topology
        self._job = catalog.find(settings.job)
        scalable = [each.name for each in self._topology.operators if each.scalable]
        self._placed = leaders_of(self._job, settings.layout, scalable)  # by plans
        self._shown = scalable or self._placed
        self._along = companions_of(self._job, settings.layout, self._placed)
        self._stack = ExitStack()
        self._zero_s = self._begun_s = time.time()  # of the run; of this part of it
        self._has_begun = False
        self._running = dict.fromkeys(wanted.start, 0)
        self._sent_at_s: float | None = None  # when the load had ended
        self._read_asked_s = 0.0  # when it was last asked whether all of it was read
        self._is_ending = False  # the job, by our own will
        self._audit: Audit | None = None
        self._footprint = Footprint()
        self._incidents = Incidents(self._now_s)
        self._is_lost = False  # the job, as the watch saw it last
        self._failed = ("", 0)  # a job, and how many of its checkpoints failed
        self.tell: Progress | None = None

    # The contract

    @property
    def offers(self) -> Capabilities:
        return offers_with(self._settings)

    @property
    def drained(self) -> bool:
        return self._audit is not None and self._audit.drained

    @property
    def finished(self) -> bool:
        return self._audit is not None

    @property
    def findings(self) -> Mapping[str, Any]:
        """What the run showed besides its samples, for the end of the journal."""
        notes = self._notebook.notes
        return {
            "audit": None if self._audit is None else self._audit.as_dict(),
            "rescales": self._changes.done(),
            "gaps": []
            if notes is None
            else [{"at_s": at_s, "seconds": away_s} for at_s, away_s in notes.gaps],
            "controller": self._footprint.as_dict(),
            "node_cpu": self._node_cpu.as_dict(),
            "time_scale": self._settings.time_scale,
        }

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._connect(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the load and the job in order; with a savepoint where the run is to go on."""
        try:
            if self._has_begun and isinstance(error, TakenOverError):
                self._leave()
            elif self._has_begun:
                self._end()
        finally:
            self._stack.close()

    def observe(self) -> Observation:
        self._begin()
        found, seen = self._found(), Measured()
        if not self._changes.is_busy and self._rescaler.job.id is not None:
            self._changes.requested |= dealt_out(self._changes.requested, found, self._placed)
            seen = self._measured(found)
        placement = as_asked(self._changes.requested, found, self._along)
        return Observation(
            time_s=self._now_s(),
            topology=self._topology,
            placement=placement,
            requested=dict(self._changes.requested),
            standby=self._idle(),
            operators=seen.operators or {each.name: OperatorMetrics() for each in self._topology.operators},
            nodes={
                node.name: seen.nodes[node.name] for node in self._topology.nodes if node.name in seen.nodes
            },
            measured_s=None if seen.time_s is None else seen.time_s - self._zero_s,
            lag_records=seen.lag_records,
            response_time_ms=seen.response_time_ms,
            receipts=self._changes.receipts(),
        )

    def apply(self, plan: Plan) -> None:
        with suppress(UnreachableError):  # then nobody else can have it either
            self._connection.keep(at_once=True)
        self._look_for_ready_nodes()
        is_over = self._is_ending or self._changes.is_busy
        problem = "a reconfiguration is in progress" if is_over else self._objection(plan)
        if problem:
            self._changes.refuse(plan, problem)
        else:
            self._changes.start(plan, self._standby_for(plan))

    def wait(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while not self.finished and time.monotonic() < until_s:
            time.sleep(min(NAP_S, max(0.0, until_s - time.monotonic())))
            self._clock.look()
            self._watch.check()
            self._changes.check()
            if self._is_lost and not self._changes.is_busy:
                self._is_lost = False  # until it is seen again
                self._changes.recover()
            self._judge_if_over()
            if self.tell is not None:
                self.tell(self._now_s(), self._status())

    def _status(self) -> str:
        """How things stand, short enough for a line of a terminal."""
        return status_line(self._watch.latest, self._shown, self._changes.last)

    def samples(self) -> Iterator[Sample]:
        self._begin()
        return iter(self._watch.take())

    def happened(self) -> tuple[Note, ...]:
        """What happened to the run since the last call, for the journal."""
        return self._incidents.take()

    def restore(self, steps: Sequence[Step]) -> None:
        """The job of the controller that is gone runs on, or lies in a savepoint. The time in between is left
        out, and named."""
        notes = self._notebook.notes
        is_known = notes is not None and notes.settings == self._digest and not notes.ended
        if notes is None or not is_known:
            if steps:
                raise ForgottenRunError(
                    "the testbed knows nothing of this run any more: use --fresh to start over"
                )
            return  # it died before it touched anything
        self._assemble(notes.run)
        self._producer.wait_for_end()
        self._rescaler.job.resume_from(notes.job_id, notes.savepoint)
        if not steps:  # it died while it began, and told nobody what it saw: all of it begins anew
            self._rescaler.job.cancel()
            self._notebook.change(ended=True, job_id=None)
            return
        self._changes.count = max(
            (each.reconfigurations for step in steps for each in step.samples), default=0
        )
        self._changes.earlier = notes.rescales
        self._go_on(notes, steps)

    # Beginning

    def _connect(self, stack: ExitStack) -> None:
        self._connection = connection = stack.enter_context(connected(self._settings.name))
        access = connection.access
        if access.manifest.emulated:
            check_spare_instances()
        check_nodes(self._topology, access.manifest)
        self._ready = connection.ready_nodes()
        self._notebook = Notebook(access.folder)
        group = Group(NodesState(access.folder).group)
        self._node_cpu = NodeCpu(group.cpu_used_s, access.fog_nodes if access.manifest.emulated else ())
        self._input = Offsets(access.kafka.access(PRODUCER), INPUT)

    def _assemble(self, run: str) -> None:
        """What works for the run of this name: a new one, or one that goes on."""
        connection, patience_s = self._connection, self._settings.patience_s
        access = connection.access
        self._run = run
        self._producer = Producer(self._load(), access.kafka.access(PRODUCER), access.folder)
        fleet = Fleet(connection.cluster, connection.flink, access.fog_nodes, patience_s)
        job = RunningJob(
            connection.flink,
            program_for(access, self._settings, self._run),
            patience_s,
            noted=self._note_job,
            newest_state=access.bucket.newest_state,
        )
        self._rescaler = Rescaler(job, fleet, self._settings.style, self._placed)
        counted_by = self._job.counted_by
        self._ledger = WindowLedger(counted_by=counted_by) if counted_by else Ledger()
        self._most = {
            name: self._topology.operator(name).n_max or self._input.partitions for name in self._placed
        }
        self._changes = Reconfigurations(
            self._rescaler, self._ledger, self._now_s, self._has_work, self._wanted.start,
            self._incidents, self._most,
        )  # fmt: skip

    @property
    def _digest(self) -> str:
        wanted = self._wanted
        parts = (self._settings.model_dump_json(), wanted.workload_name, dict(wanted.workload_parameters))
        values = (*parts, wanted.replay, wanted.seed, dict(wanted.start), wanted.run)
        return blake2b(repr(values).encode(), digest_size=8).hexdigest()

    def _load(self) -> Load:
        wanted, replay = self._wanted, self._wanted.replay
        return Load(
            workload=wanted.workload_name,
            parameters=wanted.workload_parameters,
            speed=replay.speed,
            copies=replay.copies,
            scale=replay.scale,
            seed=wanted.seed,
            run=self._run,
            topic=INPUT,
            records=self._job.records,
            start_at_s=self._settings.start_at_s / replay.speed,
            span_s=None if self._settings.span_s is None else self._settings.span_s / replay.speed,
        )

    def _begin(self) -> None:
        """A run of its own: whatever lies in the topics before it does not concern it."""
        if self._has_begun:
            return
        connection, kafka = self._connection, self._connection.access.kafka
        strangers = [job.name for job in connection.flink.jobs() if job.state not in ENDED]
        if strangers:
            raise FogscaleError(
                f"job '{strangers[0]}' runs on this testbed: cancel it, or go on with the run it belongs to"
            )
        self._assemble(f"{self._digest[:6]}-{int(time.time())}")
        if problem := self._objection(Plan(self._wanted.start)):
            raise FogscaleError(
                f"start: {problem}: change it, or repair the testbed (fogscale testbed status)"
            )
        output = Offsets(kafka.access(PRODUCER), OUTPUT)
        notes = Notes(self._run, self._digest, self._input.ends(), output.ends())
        output.close()
        set_group(kafka.access(FLINK), group_of(self._run), INPUT, notes.input)
        self._notebook.begin(notes)
        self._has_begun = True
        self._rescaler.begin(self._changes.requested, self._most)
        self._start_watch(notes, 0.0)
        self._producer.start()

    def _go_on(self, notes: Notes, steps: Sequence[Step]) -> None:
        self._has_begun = True
        reached_s = steps[-1].observation.time_s + steps[-1].waited_s
        self._changes.requested |= steps[-1].observation.requested
        self._rescaler.fleet.standby = frozenset(steps[-1].observation.standby)
        before, plan, asked_s = self._changes.requested, None, reached_s
        for step in unsettled(steps)[:1]:  # those after it were refused: one at a time
            if step.plan is not None and self._objection(step.plan) is None:
                plan, asked_s, before = step.plan, step.observation.time_s, dict(step.observation.requested)
                wanted = {name: tuple(nodes) for name, nodes in plan.placement.items()}
                self._changes.requested = {**self._changes.requested, **wanted}
        self._changes.go_on(plan, before, asked_s, reached_s)
        away_s = max(0.0, time.time() - (notes.seen_s or time.time()))
        self._notebook.change(gaps=(*notes.gaps, (reached_s, away_s)))
        self._start_watch(notes, reached_s)
        self._producer.go_on()

    def _start_watch(self, notes: Notes, reached_s: float) -> None:
        connection, access = self._connection, self._connection.access.kafka.access(PRODUCER)
        self._clock = SetClockWatch()
        self._begun_s = self._changes.running_since_s = time.time()
        self._zero_s = self._begun_s - reached_s
        self._monitor = Monitor(
            connection.prometheus,
            self._topology.operators,
            INPUT,
            self._settings.metric_window_s,
            notes.input,
            self._settings.chained,
        )
        self._watch = Watch(
            input=self._input,
            output=Output(access, OUTPUT, notes.run, notes.output, committed=False),
            committed=Output(access, OUTPUT, notes.run, notes.output, committed=True),
            base=notes.input,
            ledger=self._ledger,
            state=self._state,
            now_s=self._now_s,
            zero_ms=lambda: self._zero_s * 1000,
            interval_s=self._settings.sample_interval_s,
            chores=self._chores,
            taken=lambda: self._incidents.back("Kafka"),
            missed=lambda error: self._incidents.away("Kafka", str(error)),
        )
        if reached_s:
            self._watch.catch_up(CATCH_UP_WITHIN_S)
        self._watch.start()

    # Monitoring

    def _now_s(self) -> float:
        return time.time() - self._zero_s

    def _has_work(self) -> bool:
        return self._watch.offered > self._ledger.processed

    def _found(self) -> dict[str, tuple[str, ...]]:
        """The node of each instance that runs."""
        job, glance = self._rescaler.job, self._connection.glance
        try:
            return job.placement(job.look(glance), glance)
        except (UnreachableError, MissingError):
            return dict.fromkeys(self._changes.requested, ())

    def _measured(self, placement: Mapping[str, tuple[str, ...]]) -> Measured:
        job, flows_since_s = self._rescaler.job, self._flows_since_s()
        if job.id is None or flows_since_s is None or not all(placement.values()):
            return Measured()
        try:
            found = self._monitor.measure(
                Running(job.id, job.program.vertices, placement, self._changes.running_since_s, flows_since_s)
            )
        except UnreachableError as error:  # no metrics is an answer that policies know
            self._incidents.away("Prometheus", str(error))
            return Measured()
        self._incidents.back("Prometheus")
        return found

    def _flows_since_s(self) -> float | None:
        """Since when records come in, by the clock; None while a producer that was just started has sent
        none: the job is idle then, but its load is not."""
        found = self._watch.flows_since_s
        is_silent_by_nature = time.time() - self._begun_s > FLOWS_WITHIN_S or self._producer.has_ended
        return self._begun_s if found is None and is_silent_by_nature else found

    def _state(self) -> State:
        """What runs. Where Flink does not answer, the job may run on all the same: its output tells."""
        try:
            self._look_at_job()
        except MissingError:  # gone since we looked: the next look tells
            pass
        except UnreachableError as error:
            self._incidents.away("Flink", str(error))
            if not self._ledger.processed_since(self._now_s() - 2 * self._settings.sample_interval_s):
                self._running = dict.fromkeys(self._running, 0)
        asked_for, idle = sum(len(nodes) for nodes in self._changes.requested.values()), len(self._idle())
        return State(self._running, self._changes.count, idle, asked_for + idle)

    def _look_at_job(self) -> None:
        job, is_busy = self._rescaler.job, self._changes.is_busy
        wanted = job.id
        seen = job.look(self._connection.glance)
        self._incidents.back("Flink")
        self._running = job.running(seen)
        if is_busy or self._is_ending or wanted is None or wanted != job.id:
            return  # it is about to change
        self._is_lost = seen is None or seen.state in ENDED
        if seen is None or not seen.all_run:
            self._incidents.away("job", "Flink has forgotten it" if seen is None else seen.state)
            return
        self._incidents.back("job")
        failed = (wanted, self._connection.glance.failed_checkpoints(wanted))
        if failed[0] == self._failed[0] and failed[1] > self._failed[1]:
            self._incidents.tell("failed", "checkpoint", so_many=float(failed[1] - self._failed[1]))
        self._failed = failed

    def _chores(self) -> None:
        self._footprint.look()
        self._node_cpu.look(self._now_s())
        self._notebook.change(seen_s=time.time(), rescales=tuple(self._changes.done()))
        try:
            self._connection.keep()
        except UnreachableError as error:  # the lease is ours until somebody else takes it
            self._incidents.away("Kubernetes", str(error))
        else:
            self._incidents.back("Kubernetes")

    def _note_job(self, job: RunningJob) -> None:
        self._notebook.change(job_id=job.id, savepoint=job.savepoint)

    def _idle(self) -> tuple[str, ...]:
        """Nodes with a TaskManager on standby that is up."""
        rescaler = self._rescaler
        idle = rescaler.fleet.standby - rescaler.nodes_of(self._changes.requested)
        if not idle:
            return ()
        try:
            return tuple(sorted(idle & {each.id for each in self._connection.glance.taskmanagers()}))
        except UnreachableError:
            return ()

    def _standby_for(self, plan: Plan) -> tuple[str, ...]:
        rescaler = self._rescaler
        used = rescaler.nodes_of(self._changes.requested)
        return on_standby(
            plan.standby,
            wanted=rescaler.nodes_of(self._changes.wanted_by(plan)),
            idle=sorted(rescaler.fleet.standby - used),
            given_up=sorted(used),
            free=[node.name for node in self._topology.nodes if node.name in self._usable],
        )

    def _look_for_ready_nodes(self) -> None:
        with suppress(UnreachableError):  # as they were, then
            self._ready = self._connection.ready_nodes()

    def _objection(self, plan: Plan) -> str | None:
        pinned = {name: nodes for name, nodes in self._changes.requested.items() if name not in self._placed}
        return objection(plan, self._topology, self._placed, pinned, self._usable, self._input.partitions)

    @property
    def _usable(self) -> frozenset[str]:
        """The fog nodes that are ready."""
        return frozenset(self._connection.access.fog_nodes) & self._ready

    # End

    def _judge_if_over(self) -> None:
        """The load has ended and all of it is committed, or the time for it is up."""
        if not self._producer.has_ended or self._changes.is_busy:
            return
        if self._sent_at_s is None:
            self._sent_at_s = time.monotonic()
        numbers = sent(self._producer.report(), INPUT) or range(0)
        is_drained = self._ledger.committed >= len(numbers)
        if not is_drained and time.monotonic() - self._sent_at_s < self._settings.drain_limit_s:
            self._end_windows()
            return
        self._watch.sample_now(LAST_SAMPLE_WITHIN_S)
        access, notes = self._connection.access.kafka.access(PRODUCER), self._notebook.notes
        start = {} if notes is None else notes.output
        counted_by = self._job.counted_by
        self._audit = audited(access, OUTPUT, self._run, start, numbers, is_drained, counted_by)

    def _end_windows(self) -> None:
        """A job that counts by windows tells of the last ones only when it is ended, once all was read."""
        job, now_s = self._rescaler.job, time.monotonic()
        if not self._job.counted_by or job.id is None or now_s - self._read_asked_s < ASKED_EVERY_S:
            return
        self._read_asked_s = now_s
        try:
            if not self._has_read_all():
                return
            self._is_ending = True
            job.drain()
        except FogscaleError as error:  # it is tried again
            self._is_ending = False
            self._incidents.tell("not ended", "job", reason=str(error))

    def _has_read_all(self) -> bool:
        """By what the job's readers said in Kafka with their last checkpoint."""
        ends = self._input.ends()
        access, group = self._connection.access.kafka.access(FLINK), group_of(self._run)
        places = places_of_group(access, group, INPUT, ends)
        return all(places.get(part, 0) >= end for part, end in ends.items())

    def _leave(self) -> None:
        """The job and its TaskManagers are another controller's now."""
        self._producer.stop()
        if hasattr(self, "_watch"):
            self._watch.stop()

    def _end(self) -> None:
        self._producer.stop()
        self._changes.finish()
        if hasattr(self, "_watch"):
            self._watch.stop()
        job = self._rescaler.job
        if self.finished:
            job.cancel()
            self._notebook.change(ended=True, job_id=None, savepoint=None)
        elif job.id is not None:
            job.give_up() if job.is_lost else job.stop()
        job.release_nodes()
        job.forget_jar()
        self._rescaler.fleet.standby = frozenset()
        self._rescaler.fleet.change(())
