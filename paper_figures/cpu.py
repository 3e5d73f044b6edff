"""What a build costs: CPU seconds of this process and of all it started (Spark's JVM, its Python workers)."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def cpu_seconds() -> float:
    """Since their start, those of finished children included. Machines of a cluster are not counted, and
    where there is no /proc only this process is."""
    children: dict[int, list[int]] = defaultdict(list)
    spent_s: dict[int, float] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The second field is a name in brackets that may hold spaces.
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        process, parent = int(path.parent.name), int(fields[1])
        children[parent].append(process)
        spent_s[process] = sum(map(int, fields[11:15])) / _TICKS_PER_S
    if os.getpid() not in spent_s:
        return time.process_time()
    total_s, waiting = 0.0, [os.getpid()]
    while waiting:
        process = waiting.pop()
        total_s += spent_s[process]
        waiting += children[process]
    return total_s
