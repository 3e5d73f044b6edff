"""Rejection sampling against posteriors that are known in closed form."""

import numpy as np
import pytest
from scipy.stats import kstest, norm, qmc

from paper_figures.acceptance import FAR, as_draw, distances, spread_by_neighbours

WORLDS = 4000


def worlds(parameters: int) -> np.ndarray:
    return qmc.Halton(parameters, scramble=True, rng=1).random(WORLDS)


def test_the_kept_worlds_of_a_normal_toy_follow_its_posterior():
    """One value, x = 10 θ + noise of deviation 0.5, published 4. Accepted within ε of it, θ is distributed as
    (4 + uniform(−ε, ε) + noise) / 10: for ε → 0 the exact posterior."""
    points = worlds(1)
    tables = 10 * points + 0.5 * np.random.default_rng(2).standard_normal((WORLDS, 1))
    spread = spread_by_neighbours(points, tables)
    distance = distances(tables, np.array([4.0]), np.full_like(tables, 0.5))
    kept = np.argsort(distance)[:200]
    radius = 0.5 * distance[kept].max()

    def cumulative(theta):
        shifts = np.linspace(-radius, radius, 201)
        return norm.cdf((10 * np.asarray(theta)[:, None] - 4 - shifts) / 0.5).mean(axis=1)

    assert kstest(points[kept, 0], cumulative).pvalue > 0.05
    assert kstest(points[kept, 0], lambda theta: cumulative(theta + 0.02)).pvalue < 0.01  # it can tell
    assert np.median(spread) == pytest.approx(0.5, rel=0.1)


def test_with_the_estimated_spread_two_parameters_find_their_posterior():
    """x = (θ1 + θ2, θ1 − θ2) + noise of deviation 0.1: the posterior of both is normal with a variance of
    0.1²/2 around the solution, far from the edges of the prior. Tables are accepted within a disc around the
    published one; a disc of radius r adds a variance of r²/4 to each value, r²/8 to each parameter."""
    points = worlds(2)
    mixed = np.column_stack([points.sum(axis=1), points[:, 0] - points[:, 1]])
    tables = mixed + 0.1 * np.random.default_rng(3).standard_normal((WORLDS, 2))
    spread = spread_by_neighbours(points, tables)
    assert np.median(spread, axis=0) == pytest.approx([0.1, 0.1], rel=0.1)
    distance = distances(tables, np.array([1.0, 0.1]), spread)
    kept = np.argsort(distance)[:150]
    radius = 0.1 * np.sqrt(2) * distance[kept].max()
    assert points[kept].mean(axis=0) == pytest.approx([0.55, 0.45], abs=0.03)
    assert points[kept].std(axis=0) == pytest.approx([np.sqrt(0.01 / 2 + radius**2 / 8)] * 2, rel=0.15)


def test_a_plane_through_neighbours_does_not_count_as_chance():
    points = worlds(3)
    steep = 100 * points.sum(axis=1, keepdims=True)
    assert spread_by_neighbours(points, steep).max() < 1e-9


def test_a_spread_that_differs_between_worlds_is_found_where_it_is():
    points = worlds(1)
    truth = 0.1 + points
    tables = truth * np.random.default_rng(4).standard_normal((WORLDS, 1))
    many = spread_by_neighbours(np.repeat(points, 1, axis=1), tables)
    low, high = many[points[:, 0] < 0.2].mean(), many[points[:, 0] > 0.8].mean()
    assert high / low == pytest.approx(1.0 / 0.2, rel=0.2)


def test_values_that_are_missing_are_far_but_no_farther_than_far():
    spread = np.ones((3, 2))
    tables = np.array([[0.0, 0.0], [np.nan, 0.0], [1e9, 0.0]])
    assert distances(tables, np.zeros(2), spread).tolist() == pytest.approx([0, FAR / 2**0.5, FAR / 2**0.5])


def test_a_world_without_some_values_has_a_spread_of_those_that_are_there():
    points = worlds(1)
    tables = np.random.default_rng(5).standard_normal((WORLDS, 2))
    tables[::2, 1] = np.nan
    spread = spread_by_neighbours(points, tables)
    whole = spread_by_neighbours(points, np.nan_to_num(tables))
    assert spread[:, 0].tolist() == pytest.approx(whole[:, 0].tolist())
    assert np.nanmedian(spread[:, 1]) == pytest.approx(1.0, rel=0.2)


@pytest.mark.parametrize("runs_per_value", [1, 20])
def test_a_true_table_is_called_implausible_about_as_often_as_promised(runs_per_value):
    """Five values, two of which are the same one twice."""
    rng = np.random.default_rng(6)
    implausible = 0
    for _ in range(300):
        own = rng.standard_normal((20, 4))
        runs = 3 + np.column_stack([own, own[:, 0]])
        drawn = rng.standard_normal((runs_per_value, 4)).mean(axis=0)
        table = 3 + np.append(drawn, drawn[0])
        implausible += as_draw(runs, table, np.full(5, 1e-9), runs_per_value).p < 0.05
    assert 0.02 <= implausible / 300 <= 0.14  # of 20 runs, deviations are estimates: a little too often


def test_a_table_from_elsewhere_is_implausible_and_says_how_far_away_it_is():
    runs = np.random.default_rng(7).standard_normal((20, 3))
    found = as_draw(runs, np.array([0.0, 0.0, 9.0]), np.full(3, 1e-9), 1)
    assert found.p == 0.0
    assert found.away[2] == pytest.approx((9 - runs[:, 2].mean()) / runs[:, 2].std(ddof=1))


def test_what_never_varies_is_known_to_its_resolution_only():
    runs = np.column_stack([np.random.default_rng(8).standard_normal(20), np.full(20, 2.0)])
    assert as_draw(runs, np.array([0.0, 2.01]), np.array([1e-9, 0.1]), 1).p > 0.05
    assert as_draw(runs, np.array([0.0, 3.0]), np.array([1e-9, 0.1]), 1).p == 0.0
