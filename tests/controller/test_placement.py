"""Counts become nodes: which one joins, which one leaves, and what happens when there is none."""

import numpy as np
import pytest

from controller.model import Node, Operator, Topology
from controller.network import RttCoordinates, RttMatrix, RttUniform
from controller.placement import (
    at_random,
    farthest,
    free_nodes,
    grown,
    in_order,
    largest_rtt_ms,
    nearest,
    resized,
)
from fogscale.errors import FogscaleError
from tests.support.jobs import chain, placed, seen

FOG = ("fog1", "fog2", "fog3", "fog4", "fog5")
# On a line: a and b close together, c in the middle, d far out.
LINE = Topology(
    nodes=tuple(Node(name, 1, 1024) for name in "abcd"),
    operators=(Operator("map"),),
    rtt_ms=RttCoordinates({"a": (0.0,), "b": (1.0,), "c": (5.0,), "d": (20.0,)}),
)


@pytest.mark.parametrize(
    ("choose", "nodes", "joins"),
    [
        pytest.param(nearest, ("a",), "b", id="nearest to a is b"),
        pytest.param(nearest, ("d",), "c", id="nearest to d is c"),
        pytest.param(nearest, ("a", "b"), "c", id="nearest to both is c"),
        pytest.param(farthest, ("a",), "d", id="farthest from a is d"),
        pytest.param(farthest, ("d",), "a", id="farthest from d is a"),
        pytest.param(in_order, ("c",), "a", id="the first free one is a"),
        pytest.param(nearest, (), "a", id="with none to be near to, the first"),
    ],
)
def test_which_node_joins(choose, nodes, joins):
    free = tuple(node for node in "abcd" if node not in nodes)
    assert choose.add(LINE, nodes, free) == (*nodes, joins)


@pytest.mark.parametrize(
    ("choose", "nodes", "leaves"),
    [
        pytest.param(nearest, ("a", "b", "d"), "d", id="d is 20 ms from the others"),
        pytest.param(nearest, ("d", "a", "b"), "d", id="wherever it stands in the list"),
        pytest.param(nearest, ("a", "c", "d"), "d", id="a and d are 20 apart, and d is farther from c"),
        pytest.param(farthest, ("a", "b", "d"), "b", id="b is 19 from d, a is 20"),
        pytest.param(in_order, ("c", "a", "b"), "b", id="the youngest of equals"),
    ],
)
def test_which_node_leaves(choose, nodes, leaves):
    assert choose.remove(LINE, nodes) == tuple(node for node in nodes if node != leaves)


def test_the_largest_of_the_rtts_counts_before_their_sum():
    """To e it is 6 + 6 ms, to f 7 + 1: e keeps the largest round trip smaller."""
    rows = ((0, 1, 6, 7), (1, 0, 6, 1), (6, 6, 0, 9), (7, 1, 9, 0))
    topology = Topology(LINE.nodes, LINE.operators, RttMatrix(("a", "b", "e", "f"), rows))
    assert nearest.add(topology, ("a", "b"), ("f", "e")) == ("a", "b", "e")


def test_of_the_same_largest_rtt_the_smaller_sum_joins():
    """Both are at most 6 ms away, but f is only 1 from b."""
    rows = ((0, 1, 6, 6), (1, 0, 6, 1), (6, 6, 0, 9), (6, 1, 9, 0))
    topology = Topology(LINE.nodes, LINE.operators, RttMatrix(("a", "b", "e", "f"), rows))
    assert nearest.add(topology, ("a", "b"), ("e", "f")) == ("a", "b", "f")


def test_growing_by_nearest_and_shrinking_again_returns_to_the_start():
    small = placed("fog1", "fog2")
    large = grown(chain(), small, {"map": 5}, nearest)
    assert large["map"] == FOG
    assert grown(chain(), large, {"map": 2}, nearest) == small


def test_at_random_every_free_node_is_drawn_about_equally_often():
    choose = at_random(np.random.default_rng(1))
    drawn = [choose.add(LINE, ("a",), ("b", "c", "d"))[-1] for _ in range(3000)]
    for node in "bcd":  # binomial: 1000 ± 5 × 26
        assert abs(drawn.count(node) - 1000) < 130


def test_at_random_every_replica_leaves_about_equally_often():
    choose = at_random(np.random.default_rng(1))
    left = [({*"abc"} - {*choose.remove(LINE, ("a", "b", "c"))}).pop() for _ in range(3000)]
    for node in "abc":
        assert abs(left.count(node) - 1000) < 130


def test_at_random_repeats_with_the_same_seed():
    def drawn(seed):
        return grown(chain(), placed("fog1"), {"map": 5}, at_random(np.random.default_rng(seed)))["map"]

    assert drawn(4) == drawn(4)
    assert len({drawn(seed) for seed in range(20)}) > 5


@pytest.mark.parametrize(
    ("nodes", "expected_ms"),
    [
        pytest.param((), 0, id="nobody"),
        pytest.param(("c",), 0, id="one node"),
        pytest.param(("c", "c"), 0, id="two slots of one node"),
        pytest.param(("a", "b", "c"), 5, id="a to c"),
        pytest.param(("d", "c", "a"), 20, id="a to d"),
    ],
)
def test_largest_rtt(nodes, expected_ms):
    assert largest_rtt_ms(LINE, nodes) == expected_ms


def test_free_nodes_have_an_empty_slot():
    assert free_nodes(chain(), placed("fog2", "fog4")) == ("fog1", "fog3", "fog5")


def test_a_node_of_two_slots_is_free_while_one_is_empty():
    assert free_nodes(chain(), {"source": ("services",), "map": (), "sink": ()}) == ("services", *FOG)


def test_an_elastic_topology_always_has_one_more_node():
    topology = chain(n_max=None, elastic=True, rtt_ms=RttUniform(10.0))
    full = placed(*FOG)
    assert free_nodes(topology, full) == ("elastic-1",)
    assert grown(topology, full, {"map": 7}, nearest)["map"] == (*FOG, "elastic-1", "elastic-2")


def test_an_elastic_topology_uses_its_own_nodes_first():
    topology = chain(elastic=True, rtt_ms=RttUniform(10.0))
    assert grown(topology, placed("fog1"), {"map": 2}, nearest)["map"] == ("fog1", "fog2")


def test_a_given_up_elastic_node_can_be_created_again():
    topology = chain(n_max=None, elastic=True, rtt_ms=RttUniform(10.0))
    assert free_nodes(topology, placed(*FOG, "elastic-2")) == ("elastic-1",)


def test_growing_without_a_free_slot_says_what_to_change():
    with pytest.raises(FogscaleError, match=r"no free slot for replica 6 of 'map': add nodes or slots"):
        grown(chain(n_max=None), placed(*FOG), {"map": 6}, nearest)


def test_resizing_takes_as_many_as_there_are_slots_for():
    """Five fog nodes; source and sink hold the two other slots."""
    observation = seen(["fog1", "fog2"], topology=chain(n_max=None))
    assert resized(observation, {"map": 9})["map"] == FOG


def test_resizing_frees_slots_before_it_fills_them():
    """map gives its slots to the sink: 5 + 1 replicas become 2 + 4 on the same seven slots."""
    observation = seen(FOG, topology=chain(n_max=None))
    placement = resized(observation, {"sink": 4, "map": 2})
    assert placement["map"] == ("fog1", "fog2")
    assert placement["sink"] == ("services", "fog3", "fog4", "fog5")


def test_where_slots_do_not_suffice_for_all_the_last_one_waits():
    observation = seen(["fog1"], topology=chain(n_max=None))
    placement = resized(observation, {"map": 4, "sink": 4})
    assert [len(placement[name]) for name in ("source", "map", "sink")] == [1, 4, 2]


def test_resizing_starts_from_what_was_requested_not_from_what_runs():
    """While the job is stopped nothing runs; what was asked for is still the base of the next plan."""
    observation = seen(["fog1", "fog2"], running={"source": (), "map": (), "sink": ()})
    assert resized(observation, {"map": 3}) == placed("fog1", "fog2", "fog3")
