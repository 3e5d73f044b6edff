"""What a build costs: CPU seconds of this process and of all it started (Spark's JVM, its Python workers)."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100

Process = tuple[int, int]
"""A process's number and when it started: numbers are used again."""


class CpuMeter:
    """CPU seconds since it was made. Spark ends idle workers, so it remembers what each process had used when
    it was last read: read it before they are gone. Machines of a cluster are not counted, and where there is
    no /proc only this process is."""

    def __init__(self) -> None:
        self._before_s = _used_by_process_s()
        self._used_s: dict[Process, float] = {}

    def read_s(self) -> float:
        for process, used_s in _used_by_process_s().items():
            self._used_s[process] = used_s - self._before_s.get(process, 0.0)
        return round(sum(self._used_s.values()), 1)


def _used_by_process_s() -> dict[Process, float]:
    """Of this process and its descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    known: dict[int, tuple[Process, float]] = {}
    for number, fields in _stats():
        children[int(fields[1])].append(number)
        known[number] = (number, int(fields[19])), (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
    if os.getpid() not in known:
        return {(os.getpid(), 0): time.process_time()}
    used_s: dict[Process, float] = {}
    waiting = [os.getpid()]
    while waiting:
        number = waiting.pop()
        process, process_s = known[number]
        used_s[process] = process_s
        waiting += children[number]
    return used_s


def _stats() -> Iterator[tuple[int, list[str]]]:
    """Every process with the fields of its stat file that follow its name: state, parent, …"""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name stands in brackets and may hold spaces and brackets itself.
            yield int(path.parent.name), path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
