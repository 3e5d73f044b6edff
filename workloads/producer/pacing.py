"""The open loop: records are handed over when the clock says so. Where there is no room for them, the backlog
is only how far the clock is ahead, and is caught up as fast as the broker takes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from workloads.producer.chunks import Ahead, Chunk, Task, chunks
from workloads.producer.lateness import LATE_S, Lateness, Unacknowledged

TICK_S = 0.002  # records due within a tick are handed over together
LOOK_UP_S = 0.1  # how often to look for orders and tell how it goes


class Outlet(Protocol):
    """Where records go; sender.Sender is the real one."""

    def offer(self, chunk: Chunk, first: int, until: int) -> int: ...
    def waiting(self) -> int: ...
    def poll(self, timeout_s: float) -> None: ...


@dataclass
class Tally:
    """What one process has sent so far."""

    position: int = 0  # one after the last record handed over
    sent: int = 0  # handed over, copies included
    acknowledged: int = 0
    backlog: int = 0  # due, not acknowledged
    backlog_peak: int = 0
    behind_s: float = 0.0  # how long the oldest record not acknowledged was late
    broker_errors: int = 0
    lateness: Lateness = field(default_factory=Lateness)
    sent_per_s: dict[int, int] = field(default_factory=dict)  # by second of the replay


class Pacer:
    """Sends one task against a clock, which counts replay seconds."""

    def __init__(self, task: Task, outlet: Outlet, clock: Callable[[], float], zero_ms: float) -> None:
        self.task = task
        self.tally = Tally(position=task.schedule.first)
        self.until = task.schedule.last  # an interrupted run ends earlier
        self._passed = task.schedule.first  # of the records before it, none of this share is left
        self._outlet = outlet
        self._clock = clock
        self._ahead = Ahead(chunks(task, zero_ms))
        self._unacknowledged = Unacknowledged()
        self._last_tick_s = clock()
        self._next_look_s = -float("inf")

    def run(self, look_up: Callable[[Pacer], None]) -> None:
        """Sends everything and waits until it is acknowledged."""
        for chunk in self._ahead:
            at = 0
            while at < (end := int(np.searchsorted(chunk.numbers, self.until))):
                at = self._step(chunk, at, end)
                self._look_up_now_and_then(look_up)
            self._passed = chunk.until
            self._look_up_now_and_then(look_up)  # the chunk may hold nothing of this share
            if chunk.until >= self.until:
                break
        self._wait_for_the_rest(look_up)

    def _look_up_now_and_then(self, look_up: Callable[[Pacer], None]) -> None:
        now_s = self._clock()
        if now_s >= self._next_look_s:
            look_up(self)
            self._next_look_s = now_s + LOOK_UP_S

    def _step(self, chunk: Chunk, at: int, end: int) -> int:
        """Hands over what is due by now, or waits a moment."""
        begun_s = self._clock()
        due = min(int(np.searchsorted(chunk.due_s, begun_s)), end)
        reached = self._outlet.offer(chunk, at, due) if due > at else at
        if reached > at:
            self._unacknowledged.hand_over(chunk.due_s[at:reached])
            self.tally.sent += reached - at
            self.tally.position = self._passed = int(chunk.numbers[reached - 1]) + 1
            second = int(self._clock())
            self.tally.sent_per_s[second] = self.tally.sent_per_s.get(second, 0) + reached - at
        pause_s = self._pause_s(chunk, begun_s, reached, due, end)
        self._outlet.poll(0.0 if pause_s > 0 and self._ahead.render_one() else pause_s)
        self._account(float(chunk.due_s[reached]) if reached < end else None)
        return reached

    def _pause_s(self, chunk: Chunk, begun_s: float, reached: int, due: int, end: int) -> float:
        """For the rest of the tick, or until the next record is due: without it, a record or two would be
        handed over at a time, and the core that this takes is one that the broker may need."""
        if reached == end:
            return 0.0  # more is to be rendered
        wait_s = TICK_S if reached < due else float(chunk.due_s[reached]) - begun_s
        return float(np.clip(wait_s, TICK_S, LOOK_UP_S)) - min(self._clock() - begun_s, TICK_S)

    def _account(self, next_due_s: float | None = None) -> None:
        now_s, tally = self._clock(), self.tally
        acknowledged_due_s = self._unacknowledged.acknowledge(tally.sent - self._outlet.waiting())
        tally.lateness.add(np.maximum(now_s - acknowledged_due_s, 0.0))
        tally.acknowledged = self._unacknowledged.acknowledged
        oldest_s = self._unacknowledged.oldest_due_s
        oldest_s = next_due_s if oldest_s is None else oldest_s
        if oldest_s is not None and now_s - oldest_s > LATE_S:
            tally.behind_s += now_s - self._last_tick_s
        self._last_tick_s = now_s

    def count_backlog(self) -> None:
        """Due, but not acknowledged; of several shares, each counts its part of what is not rendered yet."""
        schedule, tally = self.task.schedule, self.tally
        due = min(schedule.due_before(self._clock()), self.until) - self._passed
        not_handed_over = max(0, due) * schedule.copies // self.task.share.total
        tally.backlog = not_handed_over + tally.sent - tally.acknowledged
        tally.backlog_peak = max(tally.backlog_peak, tally.backlog)

    def _wait_for_the_rest(self, look_up: Callable[[Pacer], None]) -> None:
        while self._outlet.waiting():
            self._outlet.poll(LOOK_UP_S)
            self._account()
            self._look_up_now_and_then(look_up)
        self._account()
