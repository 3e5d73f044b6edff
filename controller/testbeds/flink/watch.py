"""Truth: a thread that counts what enters and leaves the job and takes a sample at a fixed interval, whatever
the policy's period. It also keeps the lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller.model import Sample
from controller.testbeds.flink.broker import Offsets, Output
from controller.testbeds.flink.http import UnreachableError
from controller.testbeds.flink.ledger import Ledger
from fogscale.errors import FogscaleError

READ_WITHIN_S = 0.1


@dataclass(frozen=True)
class State:
    """What only the testbed knows, at this moment."""

    replicas: Mapping[str, int]
    reconfigurations: int
    standby: int
    allocated: int


@dataclass
class Watch:
    """`now_s` is the run's clock, which `zero_ms` was at 0."""

    input: Offsets
    output: Output
    committed: Output
    base: Mapping[int, int]  # the input's offsets when the run began
    ledger: Ledger
    state: Callable[[], State]
    now_s: Callable[[], float]
    zero_ms: Callable[[], float]
    interval_s: float
    chores: Callable[[], None] = lambda: None  # once per sample, whether it can be taken or not
    taken: Callable[[], None] = lambda: None
    missed: Callable[[UnreachableError], None] = lambda _: None  # hears of a sample that could not be taken
    offered: int = 0
    flows_since_s: float | None = None  # by the clock: since when records come in that were not there before
    failure: Exception | None = None
    latest: tuple[Sample, ...] = ()  # the last two
    _offered_before: int | None = None  # when this watch began
    _samples: list[Sample] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _done: threading.Event = field(default_factory=threading.Event)
    _wanted_now: threading.Event = field(default_factory=threading.Event)
    _taken_now: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
        for each in (self.input, self.output, self.committed):
            each.close()

    def sample_now(self, patience_s: float) -> None:
        """One more, between those at the interval: the end of a run belongs to it."""
        self._taken_now.clear()
        self._wanted_now.set()
        self._taken_now.wait(patience_s)

    def take(self) -> list[Sample]:
        with self._lock:
            taken, self._samples = self._samples, []
        return taken

    def catch_up(self, patience_s: float) -> None:
        """Reads what came out before this watch began; its response times are another's business."""
        deadline_s, quiet = time.monotonic() + patience_s, 0
        while quiet < 10 and time.monotonic() < deadline_s:
            quiet = 0 if self._read() else quiet + 1
        self.ledger.responses()

    def _work(self) -> None:
        next_s = self.now_s()
        while not self._done.is_set():
            try:
                self._read()
                is_due, is_wanted = self.now_s() >= next_s, self._wanted_now.is_set()
                if is_due:
                    next_s = max(next_s + self.interval_s, self.now_s())
                if is_due or is_wanted:
                    self.chores()
                    self._sample()
                    self.taken()
                if is_wanted:
                    self._wanted_now.clear()
                    self._taken_now.set()
            except UnreachableError as error:
                self.missed(error)  # a service is away for a while: the next sample tells of it
            except Exception as error:  # shown by the main thread, which would wait in vain otherwise
                self.failure = error
                return

    def _read(self) -> bool:
        left = self.output.read(READ_WITHIN_S)
        kept = self.committed.read(0)
        self.ledger.leave(left, self.zero_ms())
        self.ledger.commit(kept, self.now_s())
        return bool(left or kept)

    def _sample(self) -> None:
        ends = self.input.ends()
        offered = sum(end - self.base.get(part, 0) for part, end in ends.items())
        if self._offered_before is None:
            self._offered_before = offered
        elif offered > self._offered_before and self.flows_since_s is None:
            self.flows_since_s = time.time()
        self.offered = offered
        state, responses = self.state(), self.ledger.responses()
        # Read after the offsets, a record may have left that was not there yet when they were asked for.
        processed = min(self.ledger.processed, self.offered)
        sample = Sample(
            time_s=self.now_s(),
            offered_records=self.offered,
            processed_records=processed,
            lag_records=self.offered - processed,
            replicas=dict(state.replicas),
            reconfigurations=state.reconfigurations,
            response_p50_ms=responses.p50_ms,
            response_p95_ms=responses.p95_ms,
            response_p99_ms=responses.p99_ms,
            response_mean_ms=responses.mean_ms,
            standby=state.standby,
            allocated=state.allocated,
        )
        with self._lock:
            self._samples.append(sample)
            self.latest = (*self.latest[-1:], sample)

    def check(self) -> None:
        """Raises what ended the thread."""
        if isinstance(self.failure, FogscaleError):
            raise self.failure
        if self.failure is not None:
            reason = f"{type(self.failure).__name__}: {self.failure}"
            raise FogscaleError(
                f"the watch over the run ended ({reason}): run it again to go on"
            ) from self.failure
