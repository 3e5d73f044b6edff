"""Random values that belong to a record's number: the same for every process, batch and order of asking.

SplitMix64 (Steele, Lea and Flood 2014) makes the n-th value of a stream from n alone, so that nothing has
to be drawn before it. Each property of a record has a stream of its own, named by a number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from workloads.profile import FloatArray
from workloads.records.format import IntArray

GAMMA, FIRST, SECOND = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)


def uniform(seed: int, stream: int, numbers: IntArray) -> FloatArray:
    """A value in [0, 1) for each record."""
    x = numbers.astype(np.uint64) * GAMMA + _start(seed, stream)
    x = (x ^ (x >> np.uint64(30))) * FIRST
    x = (x ^ (x >> np.uint64(27))) * SECOND
    x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53


def normal(seed: int, stream: int, numbers: IntArray) -> FloatArray:
    """A standard normal value for each record (Box and Muller 1958); takes this stream and the next."""
    radius = np.sqrt(-2 * np.log1p(-uniform(seed, stream, numbers)))
    return np.asarray(radius * np.cos(2 * np.pi * uniform(seed, stream + 1, numbers)))


@lru_cache(maxsize=256)
def _start(seed: int, stream: int) -> np.uint64:
    return np.uint64(np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0])


class Weighted:
    """Chooses among so many things with given weights."""

    def __init__(self, weights: npt.ArrayLike) -> None:
        cumulative = np.cumsum(np.asarray(weights, dtype=np.float64))
        self._upper = cumulative[:-1] / cumulative[-1]

    def choose(self, uniforms: FloatArray) -> npt.NDArray[np.intp]:
        return np.searchsorted(self._upper, uniforms, side="right")


def zipf(size: int, exponent: float) -> Weighted:
    """Few are chosen often and many rarely: the n-th by 1 / n^exponent."""
    return Weighted(np.arange(1, size + 1) ** -exponent)


def bytes_array(values: Sequence[bytes]) -> npt.NDArray[np.object_]:
    """To be picked from by index, many at once."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
