"""One job on a Flink: started, stopped with a savepoint, resumed, looked at by the names of its operators."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from controller.testbeds.flink.fleet import until
from controller.testbeds.flink.http import MissingError, RefusedError
from controller.testbeds.flink.rest import ENDED, Bounds, Flink, Job
from fogscale.errors import FogscaleError

Counts = Mapping[str, int]
"""Operator → instances."""


class SavepointError(FogscaleError):
    """The job runs on as it was."""


@dataclass(frozen=True)
class Program:
    """What is started: a jar, the class in it, and its arguments for so many instances of each operator."""

    jar: Path
    entry_class: str
    arguments: Callable[[Counts], list[str]]
    vertices: Mapping[str, str]  # operator → how Flink calls its task
    instances: Callable[[Counts], Counts] = lambda counts: counts  # also of those that go along
    nodes_class: str | None = None  # of the jar, by which a JobManager is told where jobs may run
    always: Collection[str] = ()  # TaskManagers that it uses besides those of a plan


@dataclass
class RunningJob:
    flink: Flink
    program: Program
    patience_s: float
    id: str | None = None  # None while there is none
    savepoint: str | None = None  # from which the next start goes on
    noted: Callable[[RunningJob], None] = lambda _: (
        None
    )  # hears of every change, so that a crash forgets none
    # Where the newest state of a job lies, whatever became of the JobManager; None where there is none.
    newest_state: Callable[[str], str | None] = lambda _: None
    _jar_id: str | None = field(default=None, repr=False)
    _next_id: str | None = field(default=None, repr=False)  # of a start that Flink may still be at

    def look(self, flink: Flink | None = None) -> Job | None:
        """None while it is stopped, and where Flink has forgotten it."""
        job = self.id
        if job is None:
            return None
        try:
            return (flink or self.flink).job(job)
        except MissingError:
            return None

    def start(self, counts: Counts) -> None:
        """From the savepoint, if there is one; returns once Flink has taken the job. Its id is noted before
        Flink hears of it, so that no controller that comes after this one starts a second."""
        self.id, self._next_id = self._next_id or uuid4().hex, None
        self.noted(self)
        self._hand_over(self.id, self.program.arguments(counts))

    def _hand_over(self, job: str, arguments: list[str]) -> None:
        def is_taken() -> bool:
            if not self._is_missing(job):
                return True  # an answer that we did not hear
            jar_id = self._uploaded()
            try:
                self.flink.run(jar_id, self.program.entry_class, arguments, self.savepoint, job=job)
            except MissingError:  # a JobManager that began anew has lost the jar
                self._jar_id = None
                return False
            except RefusedError:  # unless it took the job from a controller that is gone
                if self._is_missing(job):
                    raise
            return True

        try:
            until(is_taken, self.patience_s, "handing the job over to Flink")
        except RefusedError:
            self.id = None
            self.noted(self)
            raise

    def use(self, nodes: Collection[str]) -> None:
        """From now on Flink gives slots of these TaskManagers alone: whatever else is up is not touched."""
        self._tell_nodes(",".join(sorted({*nodes, *self.program.always})))

    def release_nodes(self) -> None:
        """Other jobs may run anywhere again."""
        self._tell_nodes("all")

    def _tell_nodes(self, names: str) -> None:
        entry_class = self.program.nodes_class
        if entry_class is None:
            return

        def is_told() -> bool:
            try:
                self.flink.plan(self._uploaded(), entry_class, ["--use", names])
            except MissingError:  # a JobManager that began anew has lost the jar
                self._jar_id = None
                return False
            return True

        until(is_told, self.patience_s, "telling Flink where jobs may run")

    def _uploaded(self) -> str:
        if self._jar_id is None:
            self._jar_id = self.flink.upload(self.program.jar)
        return self._jar_id

    def stop(self) -> str:
        """With a savepoint; the job is gone then."""
        location = self._stopped(self._known_id(), drain=False)
        self.savepoint, self.id = location, None
        self.noted(self)
        return location

    def drain(self) -> None:
        """Ends the job once it has read all there is: windows that are open end. Nothing can go on from the
        savepoint of a job that has ended so."""
        self._stopped(self._known_id(), drain=True)
        self.savepoint = self.id = None
        self.noted(self)

    def _stopped(self, job: str, drain: bool) -> str:
        trigger = self.flink.stop_with_savepoint(job, drain)
        until(lambda: self.flink.savepoint(job, trigger).done, self.patience_s, "the savepoint")
        made = self.flink.savepoint(job, trigger)
        if made.location is None:
            raise SavepointError(f"the savepoint failed ({made.failure}); the job runs on as it was")
        until(lambda: self._has_ended(job), self.patience_s, "stopping the job")
        return made.location

    def resume_from(self, job: str | None, savepoint: str | None) -> None:
        """What a controller that is gone left: a job that runs, or where to go on from."""
        self.savepoint, self.id = savepoint, job
        if job is not None and self._has_ended(job):
            self.give_up()

    @property
    def is_lost(self) -> bool:
        """Flink has forgotten the job, as it does when its JobManager dies, or has given it up."""
        job = self.id
        return job is not None and self._has_ended(job)

    def give_up(self) -> None:
        """Forgets a job that is gone: the next start goes on from its newest state, which the bucket knows
        even if Flink does not."""
        job = self._known_id()
        found = self.newest_state(job) or self.flink.last_state(job)
        # One without any state may have been handed over a moment ago: the same id cannot be taken twice.
        self._next_id = job if found is None and self._is_missing(job) else None
        self.savepoint = found or self.savepoint
        self.id = self._jar_id = None
        self.noted(self)

    def cancel(self) -> None:
        job, self.id = self.id, None
        if job is not None and not self._has_ended(job):
            self.flink.cancel(job)
            until(lambda: self._has_ended(job), self.patience_s, "cancelling the job")

    def forget_jar(self) -> None:
        jar_id, self._jar_id = self._jar_id, None
        if jar_id is not None:
            with suppress(MissingError):  # the JobManager began anew
                self.flink.remove_jar(jar_id)

    def require(self, counts: Counts) -> None:
        """At most so many instances; with fewer slots, fewer run."""
        bounds = self.flink.requirements(self._known_id())
        ids = self._vertex_ids()
        wanted = {ids[name]: Bounds(1, count) for name, count in counts.items() if name in ids}
        self.flink.require(self._known_id(), {**bounds, **wanted})

    def wait_until_it_runs(self, counts: Counts) -> None:
        until(lambda: self.runs(counts), self.patience_s, "starting the job")

    def runs(self, counts: Counts) -> bool:
        """Every instance of it, and as many as wanted."""
        seen = self.look()
        if seen is None:
            return False
        if seen.state in ENDED:
            raise FogscaleError(f"the job ended by itself ({seen.state}): see the JobManager's log")
        running = self.running(seen)
        return seen.all_run and all(running.get(name) == count for name, count in counts.items())

    def running(self, seen: Job | None) -> dict[str, int]:
        """Instances of each operator; 0 while the job does not run as a whole."""
        known = (
            {} if seen is None or not seen.all_run else {each.name: each.running for each in seen.vertices}
        )
        return {name: known.get(vertex, 0) for name, vertex in self.program.vertices.items()}

    def placement(self, seen: Job | None, flink: Flink | None = None) -> dict[str, tuple[str, ...]]:
        """The node of each instance; none while the job does not run as a whole."""
        if seen is None or not seen.all_run:
            return dict.fromkeys(self.program.vertices, ())
        wanted = set(self.program.vertices.values())
        nodes = {
            each.name: (flink or self.flink).nodes_of(seen.id, each.id)
            for each in seen.vertices
            if each.name in wanted
        }
        return {name: nodes.get(vertex, ()) for name, vertex in self.program.vertices.items()}

    def _vertex_ids(self) -> dict[str, str]:
        ids = {each.name: each.id for each in self.flink.job(self._known_id()).vertices}
        return {name: ids[vertex] for name, vertex in self.program.vertices.items() if vertex in ids}

    def _known_id(self) -> str:
        if self.id is None:
            raise FogscaleError("the job does not run: start it first")
        return self.id

    def _has_ended(self, job: str) -> bool:
        try:
            return self.flink.job(job).state in ENDED
        except MissingError:
            return True

    def _is_missing(self, job: str) -> bool:
        try:
            self.flink.job(job)
        except MissingError:
            return True
        return False
