"""How late records are: the time from when a record was due until the broker acknowledged as many records.

That is the distance between two curves, what was due and what is acknowledged, first in, first out; where one
partition overtakes another, the mean is exact and single records are attributed to each other.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

LATE_S = 1.0  # what is counted as late
_EDGES_S = np.geomspace(1e-3, 1e5, 801)  # 2.3 % apart


@dataclass
class Lateness:
    """A histogram that several processes can add up."""

    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(_EDGES_S) + 1, np.int64))
    max_s: float = 0.0
    late_records: int = 0

    def add(self, lateness_s: FloatArray) -> None:
        if lateness_s.size == 0:
            return
        self.counts += np.bincount(np.searchsorted(_EDGES_S, lateness_s), minlength=len(self.counts))
        self.max_s = max(self.max_s, float(lateness_s.max()))
        self.late_records += int((lateness_s > LATE_S).sum())

    def merge(self, other: Lateness) -> None:
        self.counts += other.counts
        self.max_s = max(self.max_s, other.max_s)
        self.late_records += other.late_records

    def quantile_s(self, q: float) -> float | None:
        """The upper edge of the bin in which the quantile lies; None without records."""
        total = int(self.counts.sum())
        if total == 0:
            return None
        place = int(np.searchsorted(np.cumsum(self.counts), max(1, np.ceil(q * total))))
        return min(self.max_s, float(_EDGES_S[min(place, len(_EDGES_S) - 1)]))


class Unacknowledged:
    """The due times of what was handed over and not acknowledged yet."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self._waiting: deque[FloatArray] = deque()

    def hand_over(self, due_s: FloatArray) -> None:
        if due_s.size:
            self._waiting.append(due_s)

    @property
    def oldest_due_s(self) -> float | None:
        return float(self._waiting[0][0]) if self._waiting else None

    def acknowledge(self, total: int) -> FloatArray:
        """Takes out what is acknowledged now that it is this many in total; returns their due times."""
        fresh = total - self.acknowledged
        taken = []
        while fresh > 0 and self._waiting:
            head = self._waiting.popleft()
            if len(head) > fresh:
                self._waiting.appendleft(head[fresh:])
                head = head[:fresh]
            taken.append(head)
            fresh -= len(head)
            self.acknowledged += len(head)
        return np.concatenate(taken) if taken else np.empty(0)
