"""When records left a job, by their own stamps: rates, silences, and how a job gets going again."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import pairwise

from controller.testbeds.flink.broker import Left

BIN_S = 5.0
WARM_RATIO = 0.95  # of the warm rate: as fast as it gets


class Stamps:
    """In seconds by the clock, in order."""

    def __init__(self) -> None:
        self._times_s: list[float] = []

    def add(self, records: Iterable[Left]) -> None:
        for record in records:
            time_s = record.done_ms / 1000
            if not self._times_s or time_s >= self._times_s[-1]:
                self._times_s.append(time_s)
            else:
                insort(self._times_s, time_s)  # partitions are read one after the other

    @property
    def count(self) -> int:
        return len(self._times_s)

    def between(self, since_s: float, until_s: float) -> int:
        return bisect_left(self._times_s, until_s) - bisect_left(self._times_s, since_s)

    def rate_per_s(self, since_s: float, until_s: float) -> float:
        return self.between(since_s, until_s) / (until_s - since_s)

    def first_after(self, since_s: float) -> float | None:
        place = bisect_right(self._times_s, since_s)
        return self._times_s[place] if place < len(self._times_s) else None

    def longest_gap(self, since_s: float, until_s: float) -> tuple[float, float]:
        """The longest time without a record that the window touches, and when it ended."""
        first = max(0, bisect_left(self._times_s, since_s) - 1)
        inside = self._times_s[first : bisect_right(self._times_s, until_s)]
        gaps = [(later - earlier, later) for earlier, later in pairwise(inside)]
        return max(gaps, default=(0.0, until_s))

    def catch_up(
        self, since_s: float, until_s: float, warm_per_s: float
    ) -> tuple[float | None, float | None]:
        """The rate of a job that gets warm, as a share of its warm rate, and how long that takes. In spans of
        some seconds: the first that is fast enough, and followed by another such, ends it."""
        if warm_per_s <= 0:
            return None, None
        spans = int((until_s - since_s) / BIN_S)
        rates = [self.rate_per_s(since_s + i * BIN_S, since_s + (i + 1) * BIN_S) for i in range(spans)]
        is_warm = [rate >= WARM_RATIO * warm_per_s for rate in rates]
        ends = next((i for i in range(len(rates) - 1) if is_warm[i] and is_warm[i + 1]), len(rates))
        if ends == 0:
            return 1.0, 0.0
        return min(1.0, sum(rates[:ends]) / ends / warm_per_s), ends * BIN_S
