"""Values by number: evenly spread, independent of each other, and SplitMix64's own."""

import numpy as np
from scipy import stats

from workloads.records.draws import Weighted, _start, normal, uniform, zipf

NUMBERS = np.arange(100_000)


def test_it_is_splitmix64_worked_in_python_integers():
    mask = (1 << 64) - 1
    for number in (0, 1, 12_345, 2**40):
        x = (number * 0x9E3779B97F4A7C15 + int(_start(7, 3))) & mask
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        x ^= x >> 31
        assert uniform(7, 3, np.array([number]))[0] == (x >> 11) / 2**53


def test_values_are_even():
    counts = np.bincount((uniform(1, 0, NUMBERS) * 100).astype(int), minlength=100)
    assert stats.chisquare(counts).pvalue > 0.001
    assert uniform(1, 0, NUMBERS).max() < 1


def test_neighbours_and_streams_are_independent():
    values = np.array([uniform(1, stream, NUMBERS) for stream in range(5)] + [uniform(2, 0, NUMBERS)])
    correlation = np.corrcoef(values)[np.triu_indices(6, k=1)]
    assert np.abs(correlation).max() < 5 / np.sqrt(len(NUMBERS))
    pairs = np.histogram2d(values[0][:-1:2], values[0][1::2], bins=20)[0]
    assert stats.chisquare(pairs.ravel()).pvalue > 0.001


def test_normal_values_are_normal():
    assert stats.kstest(normal(1, 0, NUMBERS[:20_000]), "norm").pvalue > 0.001


def test_weights_are_kept():
    chosen = Weighted((1, 2, 5)).choose(uniform(4, 0, NUMBERS))
    assert stats.chisquare(np.bincount(chosen), len(NUMBERS) * np.array([1, 2, 5]) / 8).pvalue > 0.001
    assert Weighted((1, 1)).choose(np.array([0.0, 0.49, 0.5, 0.999])).tolist() == [0, 0, 1, 1]


def test_zipf_ranks():
    counts = np.bincount(zipf(50, 0.8).choose(uniform(4, 1, NUMBERS)), minlength=50)
    weights = 1 / np.arange(1, 51) ** 0.8
    assert stats.chisquare(counts, len(NUMBERS) * weights / weights.sum()).pvalue > 0.001
