"""Runs an experiment, lets faults happen to it one after the other, and judges each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from controller.contract import Step
from controller.journal import Recorded, read
from controller.model import Note
from controller.testbeds.flink.access import Access
from controller.testbeds.flink.faults.catalogue import Fault
from controller.testbeds.flink.faults.tally import Tally
from controller.testbeds.flink.notebook import Notebook
from fog.checks.probe import ask, shell
from fog.emulation.namespaces import entered
from fog.services.broker import PRODUCER
from fogscale.errors import FogscaleError

LOOK_EVERY_S = 1.0
SETTLED_WITHIN_S = 400.0  # after a fault, or what it did is not over
BEGUN_WITHIN_S = 400.0
STEADY_RECORDS = 200  # committed after the last fault, before the next one


@dataclass(frozen=True)
class Tried:
    """What came of a fault."""

    fault: str
    does: str
    silent_s: float  # longest time without a processed record, from its beginning until all is well
    well_after_s: float | None  # until the job ran as asked for and all was committed; None: never
    records: int  # produced until then, since the run began
    lost: int
    doubled: int
    asked_for: tuple[str, ...]  # nodes
    runs_on: tuple[str, ...]
    journal: str  # what it tells

    @property
    def passed(self) -> bool:
        is_clean = self.lost == self.doubled == 0
        return is_clean and self.well_after_s is not None and sorted(self.asked_for) == sorted(self.runs_on)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "passed": self.passed}


@dataclass
class Experiment:
    """The command of a user, given again where it was killed."""

    file: Path
    results: Path
    log: IO[bytes]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "fogscale.cli", "run", str(self.file), "--out", str(self.results)]
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, start_new_session=True
        )

    def kill(self) -> None:
        if self.process is not None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def end(self) -> None:
        """As Ctrl-C does."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(SETTLED_WITHIN_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def check(self) -> None:
        if self.process is not None and self.process.poll() is not None:
            raise FogscaleError(f"the experiment ended by itself: see {self.log.name}")

    def journal(self) -> Recorded | None:
        found = list(self.results.glob("experiment=*/policy=*/workload=*/seed=*/journal.jsonl"))
        return read(found[0]) if found else None


@dataclass
class Site:
    """A testbed on which an experiment runs."""

    access: Access
    experiment: Experiment
    tally: Tally
    say: Callable[[str], None] = lambda _: None
    _steps: int = field(default=0, repr=False)

    def ask(self, node: str, command: str) -> str:
        found = next(each for each in self.access.manifest.nodes if each.name == node)
        with shell(found, self.access.network) as client:
            return ask(client, command)

    def wait(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self.tally.read()
            time.sleep(min(LOOK_EVERY_S, max(0.0, until_s - time.monotonic())))

    def kill_controller(self) -> None:
        self.experiment.kill()
        self.experiment.start()

    def wait_for_plan(self) -> None:
        known = sum(step.plan is not None for step in self._journal_steps())
        self._until(lambda: sum(step.plan is not None for step in self._journal_steps()) > known)

    def settle(self) -> None:
        """Until the job is as it was asked for, and works."""
        before = len(self.tally.seen.times)
        self._until(lambda: self._is_as_asked_for() and len(self.tally.seen.times) > before + STEADY_RECORDS)

    def tried(self, fault: Fault) -> Tried:
        steps, begun_s = len(self._journal_steps()), time.time()
        fault.happen(self)
        produced = self.tally.produced()
        is_well = self._until(
            lambda: self._is_as_asked_for() and self.tally.seen.missing(produced) == 0, fails=False
        )
        well_s = time.time()
        last = self._journal_steps()[-1].observation
        asked_for, runs_on = (tuple(each["map"]) for each in (last.requested, last.placement))
        return Tried(
            fault.name,
            fault.does,
            round(self.tally.seen.silence_s(begun_s, well_s), 1),
            round(well_s - begun_s, 1) if is_well else None,
            produced,
            self.tally.seen.missing(produced),
            self.tally.seen.doubled,
            asked_for,
            runs_on,
            told_by(self._journal_steps()[steps:]),
        )

    def _until(self, look: Callable[[], bool], fails: bool = True) -> bool:
        deadline_s = time.monotonic() + SETTLED_WITHIN_S
        while time.monotonic() < deadline_s:
            self.experiment.check()
            self.tally.read()
            if look():
                return True
            time.sleep(LOOK_EVERY_S)
        if fails:
            raise FogscaleError(f"not well within {SETTLED_WITHIN_S:.0f} s: see {self.experiment.log.name}")
        return False

    def _is_as_asked_for(self) -> bool:
        """By the newest observation of the controller that runs now, not of one that is gone."""
        steps = self._journal_steps()
        if not steps or len(steps) == self._steps:
            return False
        self._steps = len(steps)
        return not steps[-1].observation.reconfiguring and steps[-1].plan is None

    def _journal_steps(self) -> tuple[Step, ...]:
        recorded = self.experiment.journal()
        return () if recorded is None else recorded.steps


def told_by(steps: Iterable[Step]) -> str:
    """What a journal says besides that all is well, in a line."""
    words: list[str] = []
    for step in steps:
        words += [
            f"rescale {each.outcome}: {each.message}"
            for each in step.observation.receipts
            if each.outcome != "done" or each.message
        ]
        words += [_sentence(note) for note in step.notes]
    return "; ".join(dict.fromkeys(words))


def _sentence(note: Note) -> str:
    details = [_detail(key, value) for key, value in note.data.items() if key != "at_s"]
    return f"{note.sender} {note.kind}" + (f" ({', '.join(details)})" if details else "")


def _detail(key: str, value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:g} s" if key == "seconds" or key.endswith("_s") else f"{value:g}"


@contextmanager
def begun(access: Access, file: Path, results: Path, say: Callable[[str], None]) -> Iterator[Site]:
    """The experiment runs and its records flow; at the end it is ended as by Ctrl-C."""
    results.mkdir(parents=True, exist_ok=True)
    with (results / "faults.log").open("ab") as log:
        experiment = Experiment(file, results, log)
        experiment.start()
        try:
            notes = _notes(access, experiment)
            with entered(access.network):
                tally = Tally(access.kafka.access(PRODUCER), notes)
            try:
                yield Site(access, experiment, tally, say)
            finally:
                tally.close()
        finally:
            experiment.end()


def _notes(access: Access, experiment: Experiment) -> Any:
    """Of the run that has just begun: it is known once its first turn is journalled."""
    deadline_s = time.monotonic() + BEGUN_WITHIN_S
    while time.monotonic() < deadline_s:
        experiment.check()
        recorded = experiment.journal()
        if recorded is not None and recorded.steps:
            return Notebook(access.folder).notes
        time.sleep(LOOK_EVERY_S)
    raise FogscaleError(f"the experiment did not begin in {BEGUN_WITHIN_S:.0f} s: see {experiment.log.name}")
