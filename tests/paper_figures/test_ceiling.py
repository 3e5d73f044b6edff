"""What agreement could be at best, on metrics for which it is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from paper_figures.ceiling import DRAWS, cells, near, with_ceiling
from paper_figures.orders import judged_orders


def ceiling_of(metrics, published):
    return with_ceiling(judged_orders(metrics, published), metrics, published, 0.05)


def normal_runs(gap: float, n: int = 400) -> pd.DataFrame:
    """a and b are normal with one deviation, independent of each other, their means so far apart."""
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "scenario": "",
            "policy": ["a"] * n + ["b"] * n,
            "seed": [*range(n)] * 2,
            "cost": np.concatenate([rng.normal(100 + gap, 1, n), rng.normal(100, 1, n)]),
            "reconfigurations": np.concatenate([np.full(n, 9.0), np.full(n, 5.0)]),
            "processed_ratio": 1.0,
        }
    )


@pytest.mark.parametrize("runs_per_value", [1, 4])
def test_the_share_of_tables_that_show_an_order_is_that_of_the_normal_distribution(published, runs_per_value):
    published = published.model_copy(update={"runs_per_value": runs_per_value})
    orders, found = ceiling_of(normal_runs(gap=1.0), published)
    expected = norm.cdf(1.0 / np.sqrt(2 / runs_per_value))  # P(a drawn a is above a drawn b)
    assert orders.set_index("metric").loc["cost", "expected"] == pytest.approx(expected, abs=0.05)
    assert found.agree == pytest.approx(1 + expected, abs=0.05)  # the other order is certain


def test_without_spread_a_perfect_simulator_agrees_with_every_order(published):
    metrics = normal_runs(gap=50.0)
    orders, found = ceiling_of(metrics, published)
    assert (found.agree, found.low, found.high, found.informative) == (2.0, 2.0, 2.0, 2)
    assert orders["expected"].tolist() == [1.0, 1.0]


def test_an_order_that_is_not_significant_is_shown_by_ties_alone(metrics, published):
    orders, _ = ceiling_of(metrics, published)
    ties = orders.set_index("metric").loc["reconfigurations", "expected"]
    # a is 6, 7, 7, 8 and b is 6, 7, 7, 8: of 16 pairs 1 + 4 + 1 are equal.
    assert ties == pytest.approx(6 / 16, abs=3 * np.sqrt(0.25 / DRAWS))


def test_values_are_away_by_standard_deviations_of_a_mean_of_the_paper_s_runs(metrics, published):
    of_four = published.model_copy(update={"runs_per_value": 4})
    for paper, deviation in ((published, np.sqrt(2 / 3)), (of_four, np.sqrt(2 / 3) / 2)):
        found = cells(metrics, paper).set_index(["policy", "metric"])
        assert found.loc[("b", "cost"), "away"] == pytest.approx(-10 / deviation)  # 50 published, 60 ours
        assert found.loc[("a", "cost"), "away"] == 0.0
    assert near(cells(metrics, published)) == 3


def test_runs_that_never_differ_give_no_deviation(published):
    found = cells(normal_runs(gap=1.0), published).set_index(["policy", "metric"])
    assert np.isnan(found.loc[("a", "reconfigurations"), "away"])
