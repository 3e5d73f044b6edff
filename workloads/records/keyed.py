"""What all generated formats share: which key a record has, who sends it, and only then what it says."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

from workloads.records.draws import bytes_array
from workloads.records.format import WHOLE, Batch, IntArray, Share

Indices = npt.NDArray[np.intp]


class Keys:
    """All keys that records of one seed can have."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.keys = bytes_array(keys)
        self._checksums = np.array([crc32(key) for key in keys], dtype=np.int64)

    def falls_to(self, share: Share, chosen: Indices) -> npt.NDArray[np.bool_]:
        """A key alone says whose it is, so it is the same process for every record that has it."""
        return np.equal(self._checksums[chosen] % share.total, share.number)


class KeyedRecords(ABC):
    """Records of a generated format, as workloads.records.format.Records asks for."""

    name: str

    def batch(self, seed: int, first: int, event_times_ms: IntArray, share: Share = WHOLE) -> Batch:
        numbers = np.arange(first, first + len(event_times_ms), dtype=np.int64)
        keys = self.all_keys(seed)
        chosen = self.choose_keys(seed, numbers)
        if share.total > 1:
            mine = keys.falls_to(share, chosen)
            numbers, chosen, event_times_ms = numbers[mine], chosen[mine], event_times_ms[mine]
        values = self.render(seed, numbers, event_times_ms, chosen)
        return Batch(numbers, keys.keys[chosen].tolist(), values)

    @abstractmethod
    def all_keys(self, seed: int) -> Keys: ...

    @abstractmethod
    def choose_keys(self, seed: int, numbers: IntArray) -> Indices:
        """The key of each record, as an index of all keys."""

    @abstractmethod
    def render(self, seed: int, numbers: IntArray, event_times_ms: IntArray, chosen: Indices) -> list[bytes]:
        """The records' contents; what a number has does not depend on the others beside it."""
