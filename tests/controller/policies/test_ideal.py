"""The ideal autoscaler: the fewest replicas that cover the load, at once."""

import numpy as np
import pytest

from controller.model import Capability, OperatorMetrics
from controller.policies import create
from controller.policies.ideal import smallest_sufficient
from tests.support.jobs import chain, placed, replicas_of, seen

LADDER = (100.0, 190.0, 270.0, 340.0, 400.0)


def started(topology=None, ladder=LADDER):
    policy = create("ideal", {"capacity_per_s": {"map": ladder}})
    policy.start(topology or chain(), np.random.default_rng(1))
    return policy


def offered(rate_per_s, nodes=("fog1", "fog2"), topology=None):
    return seen(nodes, topology=topology, map=OperatorMetrics(offered_rate_per_s=rate_per_s))


@pytest.mark.parametrize(
    ("rate_per_s", "expected"),
    [(0, 1), (99.9, 1), (100, 1), (100.1, 2), (190, 2), (200, 3), (400, 5), (401, 5), (1e9, 5)],
)
def test_the_fewest_that_cover_the_rate(rate_per_s, expected):
    assert smallest_sufficient(LADDER, rate_per_s) == expected


@pytest.mark.parametrize(
    ("rate_per_s", "expected"),
    [
        pytest.param(150, None, id="two are right"),
        pytest.param(400, 5, id="three more at once"),
        pytest.param(50, 1, id="one is enough"),
        pytest.param(None, None, id="not measured"),
    ],
)
def test_it_follows_the_load(rate_per_s, expected):
    assert replicas_of(started().decide(offered(rate_per_s))) == expected


def test_it_takes_the_nearest_nodes():
    assert started().decide(offered(330, ("fog2", "fog3"))).placement == placed(
        "fog2", "fog3", "fog1", "fog4"
    )


def test_it_keeps_the_bounds_of_the_operator():
    topology = chain(n_min=2, n_max=3)
    policy = started(topology)
    assert policy.decide(offered(5, topology=topology)) is None
    assert replicas_of(policy.decide(offered(1e6, topology=topology))) == 3


def test_without_a_ladder_it_leaves_an_operator_alone():
    policy = create("ideal")
    assert policy.decide(offered(1e6)) is None


def test_with_more_wanted_than_slots_it_does_not_ask_again_and_again():
    """Seven replicas would be right, five fog nodes are all there are."""
    topology = chain(n_max=None)
    policy = started(topology, ladder=tuple(100.0 * n for n in range(1, 9)))
    all_nodes = ("fog1", "fog2", "fog3", "fog4", "fog5")
    assert policy.decide(offered(700, all_nodes, topology)) is None


def test_it_needs_what_no_real_testbed_has():
    assert Capability.INSTANT_RESCALE in create("ideal").needs
