"""Orders on metrics made by hand."""

from __future__ import annotations

import pytest

from paper_figures.orders import counted, judged_orders


def test_an_order_agrees_when_the_published_one_is_significant_in_our_runs(metrics, published):
    orders = judged_orders(metrics, published).set_index("metric")
    assert orders.loc["cost", "verdict"] == "agree"
    assert orders.loc["cost", ["ours_a", "ours_b"]].tolist() == [100.0, 60.0]


def test_a_published_tie_agrees_with_runs_that_do_not_differ(metrics, published):
    orders = judged_orders(metrics, published).set_index("metric")
    assert orders.loc["reconfigurations", "verdict"] == "agree"


@pytest.mark.parametrize(
    ("of_b", "expected"),
    [
        pytest.param([139.0, 141.0, 140.0, 140.0], "disagree", id="significantly the other way round"),
        pytest.param([60.0, 140.0, 90.0, 111.0], "not_significant", id="too much spread to tell"),
    ],
)
def test_orders_that_are_not_reproduced(metrics, published, of_b, expected):
    metrics.loc[metrics["policy"] == "b", "cost"] = of_b
    orders = judged_orders(metrics, published)
    assert orders.loc[orders["metric"] == "cost", "verdict"].tolist() == [expected]
    assert counted(orders) == {"agree": 1, "disagree": 0, "not_significant": 0} | {expected: 1}


def test_a_policy_without_runs_makes_no_order_significant(metrics, published):
    orders = judged_orders(metrics[metrics["policy"] == "a"], published).set_index("metric")
    assert orders.loc["cost", "verdict"] == "not_significant"
