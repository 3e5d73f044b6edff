"""A paper with several scenarios: a table for each, orders in each, claims about one or about all of them."""

from __future__ import annotations

import pandas as pd
import pytest
from pydantic import ValidationError

from paper_figures.claims import from_published_table, judged_claims
from paper_figures.doubts import means
from paper_figures.orders import counted, judged_orders
from paper_figures.published import Doubt, Published

REDUCED = {"relative_reduction": {"metrics": ["cost"], "of": "b", "against": "a"}}
PAPER = {
    "title": "A paper",
    "reference": "Somebody, 2020",
    "labels": {"a": "A", "b": "B"},
    "metrics": ["cost", "reconfigurations"],
    "tables": {
        "calm": {"a": {"cost": 100, "reconfigurations": 4}, "b": {"cost": 80, "reconfigurations": 2}},
        "rush": {"a": {"cost": 300}, "b": {"cost": 120}},
    },
    "claims": [
        {"text": "20 % in calm times", "scenario": "calm", "published": 20, **REDUCED},
        {"text": "50 % in all", "published": 50, **REDUCED},
    ],
}


@pytest.fixture
def paper() -> Published:
    return Published.model_validate(PAPER)


@pytest.fixture
def metrics() -> pd.DataFrame:
    """Ours: in calm times b costs more, in the rush less than half."""
    rows = [
        (scenario, policy, seed, cost + seed, 3 + seed)
        for scenario, costs in {"calm": (100, 110), "rush": (300, 90)}.items()
        for policy, cost in zip("ab", costs, strict=True)
        for seed in (0, 1, 2)
    ]
    return pd.DataFrame(rows, columns=["scenario", "policy", "seed", "cost", "reconfigurations"])


def test_orders_are_those_of_every_table_that_has_both_values(paper):
    assert [(order.scenario, order.metric) for order in paper.orders()] == [
        ("calm", "cost"),
        ("calm", "reconfigurations"),
        ("rush", "cost"),
    ]


def test_each_scenario_is_judged_by_its_own_runs(paper, metrics):
    orders = judged_orders(metrics, paper).set_index(["scenario", "metric"])
    assert orders.loc[("calm", "cost"), "verdict"] == "disagree"
    assert orders.loc[("rush", "cost"), "verdict"] == "agree"
    assert orders.loc[("calm", "reconfigurations"), "verdict"] == "not_significant"
    assert counted(orders) == {"agree": 1, "disagree": 1, "not_significant": 1}


def test_a_claim_about_one_scenario_sees_only_that(paper, metrics):
    calm, _ = judged_claims(metrics, paper)
    assert calm.ours == pytest.approx(100 * (1 - 111 / 101))
    assert not calm.holds


def test_a_claim_about_all_adds_the_scenarios_up(paper, metrics):
    """(111 + 91) / (101 + 301)."""
    _, total = judged_claims(metrics, paper)
    assert total.ours == pytest.approx(100 * (1 - 202 / 402))
    assert total.holds


def test_the_published_tables_give_the_published_claims(paper):
    assert [from_published_table(claim, paper) for claim in paper.claims] == [
        pytest.approx(20),
        pytest.approx(50),
    ]


def test_means_are_told_apart_by_scenario(metrics):
    found = means(metrics.assign(variation=""), "")
    assert found["calm"]["a"]["cost"] == 101
    assert found["rush"]["b"]["cost"] == 91


def test_a_doubt_may_be_about_some_scenarios_only():
    doubt = Doubt(title="Rush", metrics=("cost",), scenarios=("rush",), text="")
    assert doubt.covers("rush", "cost", "a", "b")
    assert not doubt.covers("calm", "cost", "a", "b")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"claims": [{"text": "x", "scenario": "clam", **REDUCED}]},
            "unknown scenario 'clam': did you mean calm?",
        ),
        ({"tables": {"calm": {"a": {"csot": 1}}}}, "unknown metric 'csot': did you mean cost?"),
        ({"tables": {"calm": {"c": {"cost": 1}}}}, "nothing is given for policy 'c'"),
    ],
)
def test_mistakes_are_explained(change, message):
    with pytest.raises(ValidationError) as error:
        Published.model_validate(PAPER | change)
    assert message in str(error.value)
