"""A record format to be checked by hand: record n has the key k<n mod keys> and says seed, n and its time."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workloads.records.format import WHOLE, Batch, IntArray, Share


@dataclass(frozen=True)
class Counted:
    keys: int = 10
    padding: int = 0
    name: ClassVar[str] = "counted"

    def batch(self, seed: int, first: int, event_times_ms: IntArray, share: Share = WHOLE) -> Batch:
        numbers = np.arange(first, first + len(event_times_ms))
        mine = numbers % self.keys % share.total == share.number
        return Batch(
            numbers[mine],
            [b"k%d" % (number % self.keys) for number in numbers[mine].tolist()],
            [
                b"%d,%d,%d%s" % (seed, number, time_ms, b"." * self.padding)
                for number, time_ms in zip(numbers[mine].tolist(), event_times_ms[mine].tolist(), strict=True)
            ],
        )
