"""Intervals and comparisons, by hand and against scipy."""

from __future__ import annotations

from math import isnan, nan
from statistics import mean

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.statistics import (
    Estimate,
    compare,
    estimate,
    holm,
    judge_order,
    paired,
    signed_rank,
    welch,
)

SOME = [10.0, 12.0, 14.0]
MORE = [20.0, 21.0, 25.0, 30.0]


def test_estimate_by_hand():
    # Mean 12, s = 2, s/√3 = 1.1547, t(0.975, 2) = 4.30265.
    ours = estimate(SOME)
    assert (ours.mean, ours.n) == (12.0, 3)
    assert (ours.low, ours.high) == pytest.approx((12 - 4.96827, 12 + 4.96827), abs=1e-5)


@pytest.mark.parametrize(
    ("values", "mean", "n"),
    [
        pytest.param([], nan, 0, id="nothing"),
        pytest.param([nan, np.inf], nan, 0, id="nothing finite"),
        pytest.param([7.0], 7.0, 1, id="one value"),
        pytest.param([7.0, nan], 7.0, 1, id="one value and one unknown"),
    ],
)
def test_too_little_for_an_interval(values, mean, n):
    ours = estimate(values)
    assert ours.n == n
    assert ours.mean == pytest.approx(mean, nan_ok=True)
    assert isnan(ours.low)
    assert isnan(ours.high)


def test_equal_values_have_an_interval_of_no_width():
    assert estimate([0.1] * 10) == Estimate(0.1, 0.1, 0.1, 10)


def test_welch_is_scipys():
    assert welch(SOME, MORE) == pytest.approx(stats.ttest_ind(SOME, MORE, equal_var=False).pvalue)
    assert welch(SOME, [nan, *MORE]) == welch(SOME, MORE)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param([1, 1], [1, 1], 1.0, id="the same without spread"),
        pytest.param([1, 1], [2, 2], 0.0, id="different without spread"),
        pytest.param([1], [2, 3], nan, id="one value alone"),
        pytest.param([], [2, 3], nan, id="no value"),
        pytest.param([1e-200, 3e-200], [1e-200, 3e-200], 1.0, id="spread that squares to nothing"),
    ],
)
def test_welch_at_its_edges(a, b, expected):
    assert welch(a, b) == pytest.approx(expected, nan_ok=True)


def frame(a, b):
    return pd.DataFrame({"policy": ["a"] * len(a) + ["b"] * len(b), "cost": [*a, *b]})


def test_compare_by_hand():
    # Means 12 and 24; the difference's interval is scipy's.
    ours = compare(frame(SOME, MORE), "cost", "a", "b")
    interval = stats.ttest_ind(MORE, SOME, equal_var=False).confidence_interval()
    assert (ours.mean_a, ours.mean_b, ours.difference, ours.relative) == (12.0, 24.0, 12.0, 1.0)
    assert (ours.low, ours.high) == pytest.approx((interval.low, interval.high))
    assert ours.relative_low < 1.0 < ours.relative_high


def test_relative_change_covers_the_truth_in_19_of_20_cases():
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(2000):
        ours = compare(frame(rng.normal(10, 1, 8), rng.normal(8, 2, 12)), "cost", "a", "b")
        covered += ours.relative_low <= -0.2 <= ours.relative_high
    assert 0.935 < covered / 2000 < 0.965


def test_relative_change_without_spread_is_exact():
    ours = compare(frame([10, 10], [8, 8]), "cost", "a", "b")
    assert (ours.relative, ours.relative_low, ours.relative_high) == pytest.approx((-0.2, -0.2, -0.2))
    assert ours.p == 0.0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param([0, 0], [1, 2], id="from nothing"),
        pytest.param([], [1, 2], id="from unknown"),
        pytest.param([-9, 10], [1, 2], id="from what may be nothing"),
    ],
)
def test_a_relative_change_that_cannot_be_bounded(a, b):
    ours = compare(frame(a, b), "cost", "a", "b")
    assert isnan(ours.relative_low)
    assert isnan(ours.relative_high)


@pytest.mark.parametrize(
    ("published", "ours_a", "ours_b", "expected"),
    [
        pytest.param((1, 2), [1, 2, 3], [11, 12, 13], "agree", id="same order"),
        pytest.param((2, 1), [1, 2, 3], [11, 12, 13], "disagree", id="opposite order"),
        pytest.param((1, 2), [1, 20, 3], [2, 19, 5], "not_significant", id="too noisy to tell"),
        pytest.param((1, 1), [1, 20, 3], [2, 19, 5], "agree", id="a tie, and ours do not differ"),
        pytest.param((1, 1), [1, 2, 3], [11, 12, 13], "disagree", id="a tie, but ours differ"),
        pytest.param((1, 2), [1], [9], "not_significant", id="one run each tells nothing"),
        pytest.param((1, 2), [4, 4], [5, 5], "agree", id="without spread any difference counts"),
    ],
)
def test_judge_order(published, ours_a, ours_b, expected):
    assert judge_order(*published, mean(ours_a), mean(ours_b), welch(ours_a, ours_b)) == expected


def test_the_level_decides():
    p = welch(SOME, [13.0, 15.0, 17.0])
    assert 0.05 < p < 0.2
    assert judge_order(1, 2, 12.0, 15.0, p) == "not_significant"
    assert judge_order(1, 2, 12.0, 15.0, p, level=0.2) == "agree"


def test_tests_for_pairs_are_scipys():
    other = [value + 3 + 0.1 * place for place, value in enumerate(SOME)]
    assert paired(SOME, other) == pytest.approx(stats.ttest_rel(SOME, other).pvalue)
    assert signed_rank(SOME, other) == pytest.approx(stats.wilcoxon(SOME, other).pvalue)
    assert paired([nan, *SOME], [1.0, *other]) == paired(SOME, other)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        pytest.param([1, 5], [1, 5], 1.0, id="the same"),
        pytest.param([1, 5], [2, 6], 0.0, id="always by as much"),
        pytest.param([1], [2], nan, id="one pair alone"),
    ],
)
def test_pairs_at_their_edges(a, b, expected):
    assert paired(a, b) == pytest.approx(expected, nan_ok=True)


def test_holm_by_hand():
    # Ascending .01 .02 .03 .04 times 4 3 2 1, never falling; what is unknown is no test.
    assert holm([0.04, 0.01, nan, 0.03, 0.02]) == pytest.approx([0.06, 0.04, nan, 0.06, 0.06], nan_ok=True)
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []


def test_a_relative_change_of_pairs_covers_the_truth_in_19_of_20_cases():
    rng, covered = np.random.default_rng(7), 0
    for _ in range(1000):
        shared = rng.normal(100, 10, 12)
        runs = frame(shared + rng.normal(0, 1, 12), 1.2 * shared + rng.normal(0, 1, 12))
        found = compare(runs.assign(seed=[*range(12)] * 2), "cost", "a", "b", test="paired")
        covered += found.relative_low <= 0.2 <= found.relative_high
    assert 930 <= covered <= 970
