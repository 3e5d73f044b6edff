"""How busy the machine was during a run: on emulated nodes, other work takes from what is measured."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

LOOK_EVERY_S = 5.0
PRESSURE = Path("/proc/pressure/cpu")


@dataclass
class Load:
    """Load averages (of one minute) and the share of time in which a runnable task waited for a processor (by
    Linux' pressure stall information; None where the kernel does not tell).

    Both are of the whole machine. Where the rest of it has a lower priority than the testbed, they say little
    about the run; `own_wait_ms` does: how long a task of the watched processes waited for its turn, in the
    mean. On an idle machine it is a small part of a millisecond."""

    averages: list[float] = field(default_factory=list)
    waiting_ratio: float | None = None
    own_wait_ms: float | None = None

    def as_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"cores": os.cpu_count()}
        if self.averages:
            found["load_average_mean"] = round(fmean(self.averages), 2)
            found["load_average_max"] = round(max(self.averages), 2)
        if self.waiting_ratio is not None:
            found["cpu_waiting_ratio"] = round(self.waiting_ratio, 3)
        if self.own_wait_ms is not None:
            found["own_wait_ms"] = round(self.own_wait_ms, 3)
        return found


class Turns:
    """How often tasks had their turn on a processor, and how long they had waited for it, between the first
    look and the last. What a task did before it was first seen, or after it was last seen, is not counted."""

    def __init__(self) -> None:
        self.count = self.waited_ns = 0
        self._seen: dict[str, tuple[int, int]] = {}

    def look(self, processes: Iterable[int]) -> None:
        now = dict(_turns_of_tasks(processes))
        for task, (count, waited_ns) in now.items():
            if task in self._seen:
                self.count += count - self._seen[task][0]
                self.waited_ns += waited_ns - self._seen[task][1]
        self._seen = now

    @property
    def mean_wait_ms(self) -> float | None:
        return self.waited_ns / self.count / 1e6 if self.count else None


def _turns_of_tasks(processes: Iterable[int]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Task -> its turns, and the nanoseconds that it waited for them, since it began."""
    for process in processes:
        with suppress(OSError):  # it ended meanwhile
            for task in Path(f"/proc/{process}/task").iterdir():
                with suppress(OSError):
                    _, waited_ns, count = (task / "schedstat").read_text().split()
                    yield task.name, (int(count), int(waited_ns))


@contextmanager
def watched_load(own: Callable[[], Iterable[int]] = lambda: (os.getpid(),)) -> Iterator[Load]:
    """Of the time in the block; complete once it is left. `own` tells the processes of the run itself."""
    load, turns, over = Load(), Turns(), threading.Event()
    waited_s, begun_s = _waited_s(), time.monotonic()

    def look() -> None:
        while True:
            load.averages.append(os.getloadavg()[0])
            turns.look(own())
            if over.wait(LOOK_EVERY_S):
                return

    thread = threading.Thread(target=look, name="load", daemon=True)
    thread.start()
    try:
        yield load
    finally:
        over.set()
        thread.join()
        load.own_wait_ms = turns.mean_wait_ms
        until_s, now_s = _waited_s(), time.monotonic()
        if waited_s is not None and until_s is not None and now_s > begun_s:
            load.waiting_ratio = min(1.0, (until_s - waited_s) / (now_s - begun_s))


def _waited_s() -> float | None:
    """Since the machine started: "some avg10=… total=<microseconds>"."""
    try:
        first = PRESSURE.read_text().splitlines()[0]
        return int(first.rpartition("total=")[2]) / 1e6
    except (OSError, IndexError, ValueError):
        return None
