"""What a plan becomes on a Flink without a testbed around it: by its REST API alone, in two styles."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from controller.control.settings import Style
from controller.control.watched import Watched
from controller.model import Outcome, Plan, Receipt
from controller.testbeds.flink.fleet import until
from controller.testbeds.flink.http import MissingError, RefusedError
from controller.testbeds.flink.rest import ENDED, Bounds, Flink
from fogscale.errors import FogscaleError

OVERRIDES = "pipeline.jobvertex-parallelism-overrides"


@dataclass(frozen=True)
class Application:
    """What is started again after a savepoint."""

    jar: Path
    entry_class: str | None
    arguments: tuple[str, ...]


def check_style(flink: Flink, job: str, style: Style, application: Application | None) -> None:
    """Whether this Flink can do it, before anything is touched."""
    if style == "restart":
        if application is None:
            raise FogscaleError("style restart starts the job again from a savepoint: name its --jar")
        return
    try:
        flink.requirements(job)
    except (RefusedError, MissingError) as error:
        raise FogscaleError(
            f"this job cannot be rescaled in place ({error}): set jobmanager.scheduler: adaptive, use --style"
            " restart with --jar, or only watch with --dry-run"
        ) from None


@dataclass
class Driver:
    """One plan at a time; whoever asks waits. State is unchanged where a plan is refused."""

    job: Watched
    style: Style
    patience_s: float
    application: Application | None = None
    say: Callable[[str], None] = lambda _: None
    _jar_id: str | None = field(default=None, repr=False)
    _savepoint: str | None = None  # set while the job is stopped

    def carry_out(self, plan: Plan) -> None:
        begun_s, before = self.job.now_s(), self.job.counts(self.job.requested)
        wanted = {name: len(plan.placement.get(name, ())) or count for name, count in before.items()}
        if wanted == before:
            return self._settle(plan, "unchanged", begun_s, "already so")
        problem = self._objection(wanted)
        if problem:
            return self._settle(plan, "refused", begun_s, problem)
        self.job.reconfigurations += 1
        try:
            self._change(wanted)
        except FogscaleError as error:
            return self._settle(plan, "failed", begun_s, f"{error}; {self._back(before)}")
        return self._settle(plan, "done", begun_s, "")

    def close(self) -> None:
        if self._jar_id is not None:
            self.job.flink.remove_jar(self._jar_id)

    def _objection(self, wanted: Mapping[str, int]) -> str | None:
        slots = sum(each.slots for each in self.job.flink.taskmanagers())
        for name, count in wanted.items():
            most = min(slots, self.job.shape.most[name])
            if not 1 <= count <= most:
                return f"'{name}' can have 1 to {most} replicas ({slots} slots), not {count}"
        return None

    def _change(self, counts: Mapping[str, int]) -> None:
        if self.style == "in_place":
            bounds = self.job.flink.requirements(self.job.id)
            ids = self.job.shape.vertices
            wanted = {ids[name]: Bounds(1, count) for name, count in counts.items()}
            self.job.flink.require(self.job.id, {**bounds, **wanted})
        else:
            self._restart(counts)
        until(lambda: self._runs(counts), self.patience_s, "rescaling the job")

    def _restart(self, counts: Mapping[str, int]) -> None:
        if self._jar_id is None and self.application is not None:
            self._jar_id = self.job.flink.upload(self.application.jar)  # while the job still runs
        if self._savepoint is None:
            self._savepoint = self._stopped()
        self._start(counts)

    def _stopped(self) -> str:
        flink = self.job.flink
        job, trigger = self.job.id, flink.stop_with_savepoint(self.job.id)
        until(lambda: flink.savepoint(job, trigger).done, self.patience_s, "the savepoint")
        made = flink.savepoint(job, trigger)
        if made.location is None:
            raise FogscaleError(f"the savepoint failed ({made.failure}); the job runs on as it was")
        until(lambda: flink.job(job).state in ENDED, self.patience_s, "stopping the job")
        return made.location

    def _start(self, counts: Mapping[str, int]) -> None:
        """From the savepoint, which serves again if the job does not start."""
        application, ids = self.application, self.job.shape.vertices
        if application is None or self._jar_id is None:
            raise FogscaleError("style restart needs the job's jar: name it with --jar")
        options = {OVERRIDES: ",".join(f"{ids[name]}:{count}" for name, count in counts.items())}
        arguments = (application.entry_class, application.arguments, self._savepoint, options)
        self.job.id = self.job.flink.run(self._jar_id, *arguments)
        self.say(f"the job goes on as {self.job.id}, from {self._savepoint}")
        until(lambda: self._runs(counts), self.patience_s, "starting the job")
        self._savepoint = None

    def _back(self, before: Mapping[str, int]) -> str:
        """In place the old bounds are enough. Where the savepoint failed, the job never stopped."""
        try:
            if self.style == "in_place":
                self._change(before)
            elif self._savepoint is not None:
                self._start(before)
            return "the job runs as it did before"
        except FogscaleError as error:
            return f"and it could not be brought back ({error})"

    def _runs(self, counts: Mapping[str, int]) -> bool:
        seen = self.job.flink.job(self.job.id)
        if seen.state in ENDED:
            raise FogscaleError(f"the job ended by itself ({seen.state}): see the JobManager's log")
        running = {each.id: each.running for each in seen.vertices}
        ids = self.job.shape.vertices
        return seen.all_run and all(running.get(ids[name]) == count for name, count in counts.items())

    def _settle(self, plan: Plan, outcome: Outcome, begun_s: float, words: str) -> None:
        now_s = self.job.now_s()
        # Nobody numbers the records of this job: how long none came out is known where nothing was done.
        downtime_s = 0.0 if outcome in ("unchanged", "refused") else None
        self.job.receipts.append(Receipt(plan, outcome, begun_s, now_s, downtime_s, words))
        if outcome != "unchanged":
            self.say(f"{outcome} after {now_s - begun_s:.1f} s" + (f": {words}" if words else ""))
