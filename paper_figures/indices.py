"""Which parameter a result hangs on: first-order sensitivity indices from any sample.

The index of a parameter is the share of a result's variance that goes away if the parameter is known. Sorted
by the parameter, and then laid out so that it rises and falls once, what it does to the result shows in the
lowest frequencies of its spectrum (EASI, Plischke 2010: RBD-FAST for samples that were drawn anyway).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HARMONICS = 6  # more would follow what chance does
CHANCE = 0.95  # of samples in which no parameter does anything, so many stay below
SAMPLES_OF_CHANCE = 400
CHANCE_SEED = 20130501


def first_order(parameter: Floats, result: Floats) -> float:
    """NaN where the result never changes. Corrected for what chance adds; so it may be a little below 0."""
    sorted_by = np.argsort(parameter, kind="stable")
    up_and_down = np.concatenate([sorted_by[::2], sorted_by[1::2][::-1]])
    spectrum = np.abs(np.fft.rfft(result[up_and_down] - result.mean())[1:]) ** 2
    if len(result) % 2 == 0:
        spectrum[-1] /= 2  # the other frequencies stand for two each
    if spectrum.sum() <= 1e-12 * max(1.0, float(result.mean() ** 2)):
        return float("nan")
    share = spectrum[:HARMONICS].sum() / spectrum.sum()
    by_chance = 2 * HARMONICS / len(result)
    return float((share - by_chance) / (1 - by_chance))


def largest_by_chance(sample_size: int, parameters: int) -> float:
    """What the largest index of all parameters stays below, where none of them does anything."""
    rng = np.random.default_rng(CHANCE_SEED)
    largest = [
        max(first_order(rng.random(sample_size), result) for _ in range(parameters))
        for result in rng.standard_normal((SAMPLES_OF_CHANCE, sample_size))
    ]
    return float(np.quantile(largest, CHANCE))
