"""When each record of a replay is due: fixed by the clock alone, whatever the broker does (open loop).

The counts per second are the arrivals of the simulated testbed, drawn from the same seed, so that a policy
meets the same load there and here, second by second. Within a second, records follow at equal distances.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fogscale.errors import FogscaleError
from workloads.profile import RateProfile
from workloads.records.format import IntArray
from workloads.replay import ReplaySettings, arrivals

FloatArray = npt.NDArray[np.float64]

STEP_S = 1.0  # as the simulated testbed's


@dataclass(frozen=True, eq=False)
class Schedule:
    """Records are numbered from 0 over the whole replay; what is sent is those from `first` to before `last`.

    A record stands for all its copies, which are due together. Times are replay seconds from the start of
    the whole replay.
    """

    counts: IntArray  # records due in each second of the replay, before copies
    copies: int = 1
    speed: float = 1.0  # trace seconds per replay second
    trace_start_ms: int = 0
    first: int = 0
    last: int = -1  # -1: to the end
    run_first: int = -1  # where the run began, of which this may be a later leg; -1: here

    def __post_init__(self) -> None:
        if self.run_first < 0:
            object.__setattr__(self, "run_first", self.first)
        if self.last < 0:
            object.__setattr__(self, "last", self.total)

    @property
    def total(self) -> int:
        """Records of the whole replay, before copies."""
        return int(self._before[-1])

    @property
    def records(self) -> int:
        """Records to send, copies included."""
        return max(0, self.last - self.first) * self.copies

    @property
    def starts_at_s(self) -> float:
        """Where in the replay the sending starts."""
        return float(self.due_s(np.array([self.first]))[0]) if self.records else 0.0

    @property
    def ends_at_s(self) -> float:
        """When the last record is due."""
        return float(self.due_s(np.array([self.last - 1]))[0]) if self.records else 0.0

    @property
    def peak_per_s(self) -> float:
        """The most that is due in one second, copies included."""
        return float(self.wanted_per_s().max(initial=0)) / STEP_S

    def due_before(self, time_s: float) -> int:
        """How many records of the replay are due before that time."""
        steps = len(self.counts)
        position = min(max(time_s / STEP_S, 0.0), float(steps))
        step = min(int(position), steps - 1)
        # Record i of n is due in the middle of its n-th of the step: (i + ½) / n.
        within = int(np.ceil(self.counts[step] * (position - step) - 0.5))
        return int(self._before[step]) + min(max(within, 0), int(self.counts[step]))

    def due_s(self, numbers: IntArray) -> FloatArray:
        """The time at which each of these records is due."""
        step = np.searchsorted(self._before, numbers, side="right") - 1
        return (step + (numbers - self._before[step] + 0.5) / self.counts[step]) * STEP_S

    def event_times_ms(self, numbers: IntArray) -> IntArray:
        """The time in the trace at which each of these records happened, in milliseconds since 1970."""
        return self.trace_start_ms + np.floor(self.due_s(numbers) * (self.speed * 1000)).astype(np.int64)

    def wanted_per_s(self) -> IntArray:
        """Records due in each second of the replay that this schedule sends, copies included."""
        sent_before = np.clip(self._before, self.first, max(self.first, self.last))
        return np.diff(sent_before) * np.int64(self.copies)

    def window(self, first: int, last: int, run_first: int = -1) -> Schedule:
        """The same replay, of which only the records from first to before last are sent."""
        return replace(self, first=first, last=last, run_first=run_first)

    @cached_property
    def _before(self) -> IntArray:
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(self.counts)))


def schedule_of(profile: RateProfile, replay: ReplaySettings, rng: np.random.Generator) -> Schedule:
    """The whole replay of a profile. The generator decides the arrivals as it does in a simulated run."""
    counts = arrivals(profile, replay, STEP_S, rng) // replay.copies
    if not counts.any():
        raise FogscaleError(f"workload '{profile.name}' offers no records: raise its scale or speed")
    return Schedule(counts, replay.copies, replay.speed, _start_ms(profile))


def part_of(
    schedule: Schedule, start_at_s: float = 0.0, duration_s: float | None = None, first_record: int = 0
) -> Schedule:
    """Only what is due within a window of the replay, and not before the record to go on with."""
    run_first = schedule.due_before(start_at_s)
    first = max(run_first, first_record)
    last = schedule.total if duration_s is None else schedule.due_before(start_at_s + duration_s)
    if last <= first:
        span_s = len(schedule.counts) * STEP_S
        raise FogscaleError(
            f"no record is due in that part of the replay: it lasts {span_s:.0f} s and has records 0 to"
            f" {schedule.total - 1}; choose another --start-at, --duration or --first-record"
        )
    return schedule.window(first, last, run_first)


def _start_ms(profile: RateProfile) -> int:
    """A trace without a date starts in 1970, which keeps its records the same in every run."""
    if profile.start is None:
        return 0
    start = datetime.fromisoformat(profile.start)
    return int((start if start.tzinfo else start.replace(tzinfo=UTC)).timestamp() * 1000)
