"""One or several processes that send together: each takes a share of the keys, so that order per key holds.

They connect first and start at one moment; each tells how it goes once a second; one that dies ends the run.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

import numpy as np

from fogscale.errors import FogscaleError, Interrupted
from fogscale.signals import while_ending
from workloads.producer.chunks import Task
from workloads.producer.lateness import Lateness
from workloads.producer.pacing import Pacer, Tally
from workloads.producer.sender import Sender

READY_WITHIN_S = 60.0
START_AFTER_S = 0.5  # lets every process take the order to start before the first record is due
PATIENCE_S = 10.0  # how long an interrupted run waits for what it sent to be acknowledged
TELL_EVERY_S = 1.0

SEND_S = 4e-6  # what handing over one record takes, measured; rendering is measured on the spot
MOST_BUSY_RATIO = 0.6  # of one process, before another is added


class Start(NamedTuple):
    zero_s: float  # the machine's monotonic clock at the start of the whole replay
    zero_ms: float  # the wall clock at that moment


class Ready(NamedTuple):
    pass


class Held(NamedTuple):
    position: int


class Ended(NamedTuple):
    tally: Tally
    failure: str | None


@dataclass
class Outcome:
    """What all processes did together."""

    tallies: list[Tally]
    start: Start
    finished_s: float  # on the monotonic clock
    interrupted: bool = False


def processes_for(task: Task) -> int:
    """How many processes a task needs on this machine, found by rendering some of its records."""
    schedule = task.schedule
    sample = np.arange(schedule.first, min(schedule.last, schedule.first + 2000))
    times_ms = schedule.event_times_ms(sample)
    task.records.batch(task.seed, schedule.first, times_ms)  # the first call pays for set-up
    begun_s = time.perf_counter()
    task.records.batch(task.seed, schedule.first, times_ms)
    render_s = (time.perf_counter() - begun_s) / len(sample)
    return processes_needed(schedule.peak_per_s, render_s / schedule.copies + SEND_S, os.cpu_count() or 1)


def processes_needed(peak_per_s: float, record_s: float, cores: int) -> int:
    return int(np.clip(np.ceil(peak_per_s * record_s / MOST_BUSY_RATIO), 1, cores))


def send(
    tasks: Sequence[Task],
    bootstrap: str,
    config: Mapping[str, str],
    interrupts: Callable[[], int] = lambda: 0,
    tell: Callable[[list[Tally]], None] = lambda _tallies: None,
) -> Outcome:
    """Sends all tasks, one process each. The first interrupt ends the run in order, the second at once."""
    workers = [_Worker(task, bootstrap, config, number) for number, task in enumerate(tasks, start=1)]
    try:
        _await(workers, Ready, READY_WITHIN_S, interrupts)
        starts_at_s = min(task.schedule.starts_at_s for task in tasks)
        start = _start(starts_at_s)
        for worker in workers:
            worker.order(start)
        interrupted = _follow(workers, interrupts, tell)
        failures = [worker.failure for worker in workers if worker.failure]
        if failures:
            sent = sum(worker.tally.acknowledged for worker in workers)
            raise FogscaleError(f"{failures[0]} (until then {sent} records were sent and acknowledged)")
        return Outcome([worker.tally for worker in workers], start, time.monotonic(), interrupted)
    finally:
        for worker in workers:
            worker.end()


def _start(starts_at_s: float) -> Start:
    zero_s = time.monotonic() + START_AFTER_S - starts_at_s
    return Start(zero_s, (time.time() + START_AFTER_S - starts_at_s) * 1000)


def _follow(
    workers: list[_Worker], interrupts: Callable[[], int], tell: Callable[[list[Tally]], None]
) -> bool:
    """Until all have ended; true if that was an interrupt's doing."""
    interrupted = False
    while any(worker.runs for worker in workers):
        _receive(workers, 0.2)
        tell([worker.tally for worker in workers])
        if any(worker.failure for worker in workers):
            return interrupted  # a run with a hole is of no use: the others end too
        if interrupts() > 1:
            raise Interrupted("interrupted twice: ended at once; what the broker got is not known")
        if interrupts() and not interrupted:
            interrupted = True
            _end_together(workers)
    return interrupted


def _end_together(workers: list[_Worker]) -> None:
    """All end at the same record, so that a later run can go on from there without loss or duplicate."""
    running = [worker for worker in workers if worker.runs]
    for worker in running:
        worker.order("hold")
    _await(running, Held, PATIENCE_S, lambda: 0)
    for topic in {worker.task.topic for worker in running}:
        together = [worker for worker in workers if worker.task.topic == topic]
        until = max(worker.tally.position if not worker.runs else worker.position for worker in together)
        for worker in together:
            worker.order(until)


def _await(workers: list[_Worker], answer: type, seconds: float, interrupts: Callable[[], int]) -> None:
    deadline_s = time.monotonic() + seconds
    while missing := [w for w in workers if w.runs and not isinstance(w.answer, answer)]:
        _receive(missing, 0.2)
        if failed := next((worker for worker in workers if worker.failure), None):
            raise FogscaleError(failed.failure)
        if interrupts():
            raise Interrupted("interrupted before the first record was sent")
        if time.monotonic() > deadline_s:
            raise FogscaleError(
                f"process {missing[0].number} gave no answer within {seconds:.0f} s: try again"
            )


def _receive(workers: Sequence[_Worker], timeout_s: float) -> None:
    by_source = {worker.source: worker for worker in workers if worker.runs}
    for source in wait(list(by_source), timeout_s):
        by_source[source].receive()  # type: ignore[index]


class _Worker:
    """A sending process as its parent sees it."""

    def __init__(self, task: Task, bootstrap: str, config: Mapping[str, str], number: int) -> None:
        self.task = task
        self.number = number
        self.tally = Tally(position=task.schedule.first)
        self.position = task.schedule.first
        self.answer: object = None
        self.failure: str | None = None
        self.runs = True
        spawn = multiprocessing.get_context("spawn")
        self.source, theirs = spawn.Pipe()
        self._process = spawn.Process(
            target=_work, args=(theirs, task, bootstrap, dict(config)), daemon=True, name=f"producer-{number}"
        )
        with while_ending(signal.SIG_IGN):  # inherited: to end in order is for its parent to say
            self._process.start()
        theirs.close()

    def order(self, what: object) -> None:
        with suppress(OSError):  # it may just have died, which receive() notices
            self.source.send(what)

    def receive(self) -> None:
        try:
            self.answer = self.source.recv()
        except (EOFError, OSError):
            self._process.join(5.0)
            self.runs = False
            self.failure = (
                f"sending process {self.number} died (exit code {self._process.exitcode}):"
                " is there enough memory? start the run again"
            )
            return
        if isinstance(self.answer, Tally):
            self.tally = self.answer
        elif isinstance(self.answer, Held):
            self.position = self.answer.position
        elif isinstance(self.answer, Ended):
            self.tally, self.failure = self.answer
            self.runs = False

    def end(self) -> None:
        self.source.close()
        self._process.join(2.0 if self.failure is None and not self.runs else 0.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


# In the sending process


class _GaveUpError(Exception):
    """What was sent before an interrupt is not acknowledged in time."""


def _work(parent: Connection, task: Task, bootstrap: str, config: dict[str, str]) -> None:
    # Records come and go by the thousand and never refer to each other: looking for cycles costs a tenth.
    gc.freeze()
    gc.set_threshold(100_000)
    tally, failure = Tally(position=task.schedule.first), None
    try:
        sender = Sender(bootstrap, task.topic, config)
        parent.send(Ready())
        start: Start = parent.recv()
        pacer = Pacer(task, sender, lambda: time.monotonic() - start.zero_s, start.zero_ms)
        tally = pacer.tally
        try:
            pacer.run(_Duty(parent, sender))
        except _GaveUpError:
            sender.abandon()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the parent is gone
    except FogscaleError as error:
        failure = str(error)
    except Exception as error:  # a faulty record format, say: the parent prints one line
        failure = f"{type(error).__name__}: {error}"
    parent.send(Ended(tally, failure))


class _Duty:
    """What a sending process does besides sending: tell how it goes, take orders."""

    def __init__(self, parent: Connection, sender: Sender) -> None:
        self._parent = parent
        self._sender = sender
        self._told_s = time.monotonic()
        self._give_up_s = float("inf")

    def __call__(self, pacer: Pacer) -> None:
        now_s = time.monotonic()
        pacer.count_backlog()
        pacer.tally.broker_errors = self._sender.broker_errors
        if now_s - self._told_s >= TELL_EVERY_S:
            self._parent.send(
                replace(pacer.tally, lateness=Lateness(), sent_per_s={})
            )  # the rest, at the end
            self._told_s = now_s
        if self._parent.poll() and self._parent.recv() == "hold":
            self._parent.send(Held(pacer.tally.position))
            pacer.until = self._parent.recv()
            self._give_up_s = time.monotonic() + PATIENCE_S  # the answer waited for the other processes
        if now_s > self._give_up_s:
            raise _GaveUpError
