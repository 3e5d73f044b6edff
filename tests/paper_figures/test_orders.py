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


def test_runs_with_one_seed_are_compared_with_each_other(metrics, published):
    """b is 1 below a with every seed, while seeds differ by 20: only pairs show it."""
    costs = [80.0, 100.0, 120.0, 140.0]
    metrics["cost"] = [*costs, *(cost - 1 - 0.01 * place for place, cost in enumerate(costs))]
    assert judged_orders(metrics, published).set_index("metric").loc["cost", "verdict"] == "agree"
    apart = published.model_copy(update={"test": "welch"})
    assert judged_orders(metrics, apart).set_index("metric").loc["cost", "verdict"] == "not_significant"


def test_pairs_are_found_by_seed_not_by_place(metrics, published):
    shuffled = metrics.sample(frac=1, random_state=3)
    ordered, mixed = (judged_orders(runs, published) for runs in (metrics, shuffled))
    assert mixed["p"].tolist() == pytest.approx(ordered["p"].tolist())


def test_all_orders_of_a_table_are_corrected_together(metrics, published):
    orders = judged_orders(metrics, published).set_index("metric")
    assert orders.loc["cost", "p_holm"] == pytest.approx(2 * orders.loc["cost", "p"])  # two orders
    assert orders.loc["reconfigurations", "p_holm"] == orders.loc["reconfigurations", "p"]
