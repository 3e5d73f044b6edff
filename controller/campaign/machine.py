"""How busy the machine was during a run: on emulated nodes, other work takes from what is measured."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

LOOK_EVERY_S = 5.0
PRESSURE = Path("/proc/pressure/cpu")


@dataclass
class Load:
    """Load averages (of one minute) and the share of time in which a runnable task waited for a processor (by
    Linux' pressure stall information; None where the kernel does not tell)."""

    averages: list[float] = field(default_factory=list)
    waiting_ratio: float | None = None

    def as_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"cores": os.cpu_count()}
        if self.averages:
            found["load_average_mean"] = round(fmean(self.averages), 2)
            found["load_average_max"] = round(max(self.averages), 2)
        if self.waiting_ratio is not None:
            found["cpu_waiting_ratio"] = round(self.waiting_ratio, 3)
        return found


@contextmanager
def watched_load() -> Iterator[Load]:
    """Of the time in the block; complete once it is left."""
    load, over = Load(), threading.Event()
    waited_s, begun_s = _waited_s(), time.monotonic()

    def look() -> None:
        while True:
            load.averages.append(os.getloadavg()[0])
            if over.wait(LOOK_EVERY_S):
                return

    thread = threading.Thread(target=look, name="load", daemon=True)
    thread.start()
    try:
        yield load
    finally:
        over.set()
        thread.join()
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
