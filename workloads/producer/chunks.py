"""The records of a schedule, rendered ahead of time by the chunk: what falls due in a quarter of a second, or
as many records as take a few milliseconds to render."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from workloads.producer.header import Headers, headers_of
from workloads.producer.schedule import FloatArray, Schedule
from workloads.records.format import WHOLE, IntArray, Records, Share

CHUNK_S = 0.25
MOST_RECORDS = 1024
MOST_AHEAD = 64  # chunks, at most some 50 MB

Message = tuple[bytes, bytes, int, Headers]


@dataclass(frozen=True)
class Task:
    """What one process sends: its share of a schedule into one topic."""

    topic: str
    schedule: Schedule
    records: Records
    seed: int
    run: str
    share: Share = WHOLE


@dataclass(frozen=True)
class Chunk:
    """Records in the order in which they are sent, copies included."""

    until: int  # the next chunk starts with this record
    numbers: IntArray  # of the records, the same for all copies of one
    due_s: FloatArray
    keys: list[bytes]
    values: list[bytes]
    stamps_ms: list[int]  # CreateTime: when the record is due by the clock, whenever it is sent
    headers: list[Headers]

    def __len__(self) -> int:
        return len(self.keys)

    def messages(self, first: int, until: int) -> Iterator[Message]:
        part = slice(first, until)
        return zip(self.keys[part], self.values[part], self.stamps_ms[part], self.headers[part], strict=True)


class Ahead:
    """Chunks rendered before their time, so that a moment without a core is caught up by sending alone."""

    def __init__(self, source: Iterator[Chunk]) -> None:
        self._source = source
        self._ready: deque[Chunk] = deque()

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        return self._ready.popleft() if self._ready else next(self._source)

    def render_one(self) -> bool:
        """Renders one more chunk; false where enough are ready, or none is left."""
        chunk = next(self._source, None) if len(self._ready) < MOST_AHEAD else None
        if chunk is not None:
            self._ready.append(chunk)
        return chunk is not None


def chunks(task: Task, zero_ms: float) -> Iterator[Chunk]:
    """All records of a task; zero_ms is the wall clock at the start of the whole replay."""
    schedule = task.schedule
    first = schedule.first
    while first < schedule.last:
        soon = schedule.due_before(float(schedule.due_s(np.array([first]))[0]) + CHUNK_S)
        most = first + max(1, MOST_RECORDS // schedule.copies)
        until = min(max(soon, first + 1), most, schedule.last)
        yield _rendered(task, first, until, zero_ms)
        first = until


def _rendered(task: Task, first: int, until: int, zero_ms: float) -> Chunk:
    schedule, copies = task.schedule, task.schedule.copies
    event_times_ms = schedule.event_times_ms(np.arange(first, until))
    batch = task.records.batch(task.seed, first, event_times_ms, task.share)
    numbers = np.repeat(batch.numbers, copies)
    due_s = schedule.due_s(numbers)
    copy = np.tile(np.arange(copies), len(batch.numbers))
    return Chunk(
        until,
        numbers,
        due_s,
        _repeated(batch.keys, copies),
        _repeated(batch.values, copies),
        np.rint(zero_ms + due_s * 1000).astype(np.int64).tolist(),
        headers_of(task.run, (numbers * copies + copy).tolist()),
    )


def _repeated(items: list[bytes], copies: int) -> list[bytes]:
    return items if copies == 1 else [item for item in items for _ in range(copies)]
