"""Indices against functions whose indices are known in closed form."""

import numpy as np
import pytest
from scipy.stats import qmc

from paper_figures.indices import first_order, largest_by_chance


def test_ishigami():
    """The usual test function; with a = 7 and b = 0.1 the indices are 0.3139, 0.4424 and 0."""
    x = np.pi * (2 * qmc.Halton(3, scramble=True, rng=1).random(4000) - 1)
    y = np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0])
    assert [first_order(x[:, i], y) for i in range(3)] == pytest.approx([0.3139, 0.4424, 0.0], abs=0.02)


def test_shares_of_a_sum_are_those_of_its_variances():
    """y = 3 a + b + noise of deviation 1, a and b even: variances 9/12, 1/12 and 1."""
    points = qmc.Halton(2, scramble=True, rng=2).random(4000)
    y = 3 * points[:, 0] + points[:, 1] + np.random.default_rng(3).standard_normal(4000)
    total = 9 / 12 + 1 / 12 + 1
    assert first_order(points[:, 0], y) == pytest.approx(9 / 12 / total, abs=0.03)
    assert first_order(points[:, 1], y) == pytest.approx(1 / 12 / total, abs=0.03)


def test_what_rank_correlation_cannot_see():
    """A result that is low at both ends of the range."""
    x = qmc.Halton(1, scramble=True, rng=4).random(401)[:, 0]
    assert first_order(x, -((x - 0.5) ** 2)) > 0.95


def test_a_result_that_never_changes_hangs_on_nothing_that_can_be_told():
    assert np.isnan(first_order(np.random.default_rng(5).random(50), np.full(50, 3.0)))


@pytest.mark.parametrize("sample_size", [100, 201])
def test_chance_alone_stays_below_what_is_promised(sample_size):
    rng = np.random.default_rng(6)
    limit = largest_by_chance(sample_size, 5)
    above = sum(
        max(first_order(rng.random(sample_size), y) for _ in range(5)) > limit
        for y in rng.random((300, sample_size))
    )
    assert above / 300 < 0.1
