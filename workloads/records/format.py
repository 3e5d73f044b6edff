"""What a supply of records is, whether generated or read from an imported trace: a pure function of a seed
and of the records' numbers, so that any process can make any part of it, again and in any order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


class Share(NamedTuple):
    """A part of all keys: each key belongs to exactly one of the shares, so one process keeps its order."""

    number: int = 0
    total: int = 1


WHOLE = Share()


@dataclass(frozen=True, slots=True)
class Batch:
    """Records in the order in which they are sent."""

    numbers: IntArray  # of each record within the workload, from 0 and without gaps over all shares
    keys: list[bytes]
    values: list[bytes]


class Records(Protocol):
    """Records of one format."""

    @property
    def name(self) -> str: ...

    def batch(self, seed: int, first: int, event_times_ms: IntArray, share: Share = WHOLE) -> Batch:
        """The records numbered first, first + 1, … with these event times, as far as they fall to a share."""
        ...
