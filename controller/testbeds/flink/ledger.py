"""What came out of a job and when: counted once per record, however often a failure made Flink repeat it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from controller.testbeds.flink.broker import Left

KEPT_S = 1800.0  # how far back silences can be looked up
APART_S = 0.05  # what comes closer together is one moment


@dataclass(frozen=True)
class Responses:
    """Response times of the records that left since the last sample."""

    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    mean_ms: float | None = None


@dataclass
class Ledger:
    """`processed`: records that left the job. `committed`: those that a reader of committed records sees."""

    processed: int = 0
    committed: int = 0
    doubled: int = 0  # committed more than once
    _seen: bytearray = field(default_factory=bytearray, repr=False)
    _kept: bytearray = field(default_factory=bytearray, repr=False)
    _responses_ms: list[float] = field(default_factory=list, repr=False)
    _processed_at_s: deque[float] = field(default_factory=deque, repr=False)
    _committed_at_s: deque[float] = field(default_factory=deque, repr=False)

    def leave(self, records: Sequence[Left], zero_ms: float) -> None:
        """Times are by the job's own stamps, in seconds since zero."""
        for record in records:
            if self._is_new(record):
                self._responses_ms.append(max(0.0, record.done_ms - record.due_ms))
                _note(self._processed_at_s, (record.done_ms - zero_ms) / 1000)

    def commit(self, records: Sequence[Left], now_s: float) -> None:
        self._keep(records)
        if records:
            _note(self._committed_at_s, now_s)

    def _is_new(self, record: Left) -> bool:
        is_new = record.number is not None and _mark(self._seen, record.number) == 1
        self.processed += is_new
        return is_new

    def _keep(self, records: Sequence[Left]) -> None:
        for record in records:
            if record.number is not None and _mark(self._kept, record.number) == 1:
                self.committed += 1
            else:
                self.doubled += 1

    def responses(self) -> Responses:
        """Of the records since the last call; None where there were none."""
        taken, self._responses_ms = self._responses_ms, []
        if not taken:
            return Responses()
        p50, p95, p99 = np.percentile(taken, (50, 95, 99)).tolist()
        return Responses(p50, p95, p99, float(np.mean(taken)))

    def processed_since(self, since_s: float) -> bool:
        return bool(self._processed_at_s) and self._processed_at_s[-1] > since_s

    def committed_since(self, since_s: float) -> bool:
        return bool(self._committed_at_s) and self._committed_at_s[-1] > since_s

    def silence_s(self, since_s: float, until_s: float) -> float:
        """The longest time without a processed record that touches the window."""
        return _longest_gap(self._processed_at_s, since_s, until_s)

    def committed_silence_s(self, since_s: float, until_s: float) -> float:
        return _longest_gap(self._committed_at_s, since_s, until_s)


@dataclass
class WindowLedger(Ledger):
    """Of results of several records, of which only sums are known: a record has left when each of the
    operators that count it has told of it. What a failure undid is told again, mostly alike; where it is not,
    it counts until the reader of committed records is beyond it, and twice is found by the audit's sums."""

    counted_by: Sequence[str] = ()
    _committed: Counter[str] = field(default_factory=Counter, repr=False)  # records, by operator
    _left: Counter[str] = field(default_factory=Counter, repr=False)  # these, and those pending
    _pending: dict[tuple[Any, ...], Left] = field(default_factory=dict, repr=False)  # not known as committed
    _read_to: dict[int, int] = field(default_factory=dict, repr=False)  # by the reader of committed records

    def _is_new(self, record: Left) -> bool:
        if record.offset < self._read_to.get(record.partition, 0):
            return True  # that reader was here first
        is_new = _which(record) not in self._pending
        self._pending[_which(record)] = record
        if is_new:
            self._left[record.by] += record.records
            self.processed = max(self.processed, self._told_by_all(self._left))
        return is_new

    def _keep(self, records: Sequence[Left]) -> None:
        for record in records:
            self._committed[record.by] += record.records
            self._read_to[record.partition] = record.offset + 1
            self._pending.pop(_which(record), None)
        self._pending = {
            which: each
            for which, each in self._pending.items()
            if each.offset >= self._read_to.get(each.partition, 0)
        }
        self._left = self._committed.copy()
        for each in self._pending.values():
            self._left[each.by] += each.records
        self.committed = self._told_by_all(self._committed)
        self.processed = max(self.processed, self.committed)

    def _told_by_all(self, records: Counter[str]) -> int:
        """What was refused on its own stands under no operator, and nobody counts it any more."""
        return records[""] + min(records[name] for name in self.counted_by)


def _which(record: Left) -> tuple[Any, ...]:
    return record.by, record.number, record.records, record.mix


def _mark(flags: bytearray, number: int) -> int:
    """How often this number was seen, now included; 255 is as good as more."""
    if number >= len(flags):
        flags.extend(bytes(max(number + 1 - len(flags), 65_536)))
    flags[number] = min(flags[number] + 1, 255)
    return flags[number]


def _note(times_s: deque[float], now_s: float) -> None:
    """In order: partitions are read one after the other, so stamps may come a moment apart."""
    if times_s and now_s - times_s[-1] < APART_S:
        return
    times_s.append(now_s)
    while times_s[0] < now_s - KEPT_S:
        times_s.popleft()


def _longest_gap(times_s: Sequence[float], since_s: float, until_s: float) -> float:
    """Between two arrivals of which the window touches the time in between; its ends count as arrivals where
    there is none outside."""
    before = [time_s for time_s in times_s if time_s <= since_s][-1:] or [since_s]
    inside = [time_s for time_s in times_s if since_s < time_s < until_s]
    after = [time_s for time_s in times_s if time_s >= until_s][:1] or [until_s]
    edges = [*before, *inside, *after]
    return max(later - earlier for earlier, later in pairwise(edges))
