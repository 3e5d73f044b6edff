"""DS2 on a job that branches, worked out by hand."""

from dataclasses import replace

import pytest

from controller.model import Node, Observation, Operator, OperatorMetrics, Topology
from controller.network import RttUniform
from controller.policies.ds2 import DS2

NODES = tuple(Node(f"n{i}", 4, 2048) for i in range(20))
OPERATORS = (
    Operator("source", n_max=1, selectivity=2.0),
    Operator("left", ("source",), n_max=6, selectivity=0.5, shares=(0.75,)),
    Operator("right", ("source",), n_max=6, shares=(0.25,)),
    Operator("join", ("left", "right"), n_max=6),
)


def observed(offered_per_s, replicas, true_per_s):
    """100/s offered: left gets 150, right 50, join 75 + 50."""
    names = iter(node.name for node in NODES)
    placement = {name: tuple(next(names) for _ in range(count)) for name, count in replicas.items()}
    operators = {
        name: OperatorMetrics(
            offered_rate_per_s=offered_per_s if name == "source" else None,
            true_rate_per_s=true_per_s.get(name),
        )
        for name in replicas
    }
    return Observation(60.0, Topology(NODES, OPERATORS, RttUniform(1.0)), placement, placement, operators)


ONE_EACH = {"source": 1, "left": 1, "right": 1, "join": 1}


def counts(plan):
    return {name: len(nodes) for name, nodes in plan.placement.items()}


def test_every_operator_is_sized_in_one_pass():
    """An instance of left does 40/s, of right 50, of join 60: 150/40, 50/50 and 125/60."""
    plan = DS2().decide(observed(100, ONE_EACH, {"source": 1000, "left": 40, "right": 50, "join": 60}))
    assert counts(plan) == {"source": 1, "left": 4, "right": 1, "join": 3}
    assert plan.reason == "left +3: 150 records/s; join +2: 125 records/s"


def test_the_true_rate_is_of_all_instances_together():
    """Three instances of left do 120/s: still 40 each."""
    running = {"source": 1, "left": 3, "right": 1, "join": 3}
    plan = DS2().decide(observed(100, running, {"left": 120, "right": 50, "join": 180}))
    assert counts(plan) == running | {"left": 4}


@pytest.mark.parametrize(("headroom_ratio", "left"), [(0.0, 4), (0.05, 4), (0.2, 5), (1.0, 6)])
def test_headroom_comes_on_top_within_n_max(headroom_ratio, left):
    plan = DS2(headroom_ratio=headroom_ratio).decide(observed(100, ONE_EACH, {"left": 40}))
    assert counts(plan)["left"] == left


def test_what_is_too_much_goes_at_once():
    running = {"source": 1, "left": 6, "right": 4, "join": 5}
    plan = DS2().decide(observed(20, running, {"left": 240, "right": 200, "join": 300}))
    assert counts(plan) == ONE_EACH


def test_an_idle_operator_stays_as_it_is():
    assert DS2().decide(observed(0, ONE_EACH | {"left": 3}, {})) is None


def test_a_change_too_small_is_not_worth_it():
    seen = observed(100, ONE_EACH | {"left": 3}, {"left": 120})
    assert counts(DS2().decide(seen))["left"] == 4
    assert DS2(min_change=2).decide(seen) is None


def test_without_the_sources_rate_nothing_is_decided():
    seen = observed(100, ONE_EACH, {"left": 40})
    unknown = {**seen.operators, "source": OperatorMetrics()}
    assert DS2().decide(replace(seen, operators=unknown)) is None
